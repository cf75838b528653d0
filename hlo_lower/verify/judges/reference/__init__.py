"""References in NumPy: scatter, gather and update computations as the specification defines them."""

from hlo_lower.verify.judges.reference.gather import gather
from hlo_lower.verify.judges.reference.scatter import Hits, ScatterNumbers, count_hits, scatter, windows

__all__ = ["Hits", "ScatterNumbers", "count_hits", "gather", "scatter", "windows"]
