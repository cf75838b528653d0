"""What can be known without running: ranges and forms of index tensors, and what a scatter's region computes."""

from hlo_lower.analysis.affine import AffineAnalysis
from hlo_lower.analysis.affine_constants import fitted
from hlo_lower.analysis.axis_facts import AxisFacts, Monotonicity
from hlo_lower.analysis.distinct_queries import Entries
from hlo_lower.analysis.distinctness import Distinctness
from hlo_lower.analysis.evidence import Evidence
from hlo_lower.analysis.index_facts import IndexAnalysis
from hlo_lower.analysis.interval import Interval
from hlo_lower.analysis.linear import Element, Linear, Normalized, Position, Symbol, positions
from hlo_lower.analysis.places import Entry
from hlo_lower.analysis.region import ASSIGNING, Combiner, RegionFacts, classify_region
from hlo_lower.analysis.site import Site

__all__ = [
    "ASSIGNING",
    "AffineAnalysis",
    "AxisFacts",
    "Combiner",
    "Distinctness",
    "Element",
    "Entries",
    "Entry",
    "Evidence",
    "IndexAnalysis",
    "Interval",
    "Linear",
    "Monotonicity",
    "Normalized",
    "Position",
    "RegionFacts",
    "Site",
    "Symbol",
    "classify_region",
    "fitted",
    "positions",
]
