"""`stablehlo.gather`: its canonical form, what is known of it, and a reference in NumPy."""

from hlo_lower.gather.canonical import CanonicalGather, read_gather
from hlo_lower.gather.facts import GatherFacts, GatherStrategy, TakenGather, gather_facts

__all__ = [
    "CanonicalGather",
    "GatherFacts",
    "GatherStrategy",
    "TakenGather",
    "gather_facts",
    "read_gather",
]
