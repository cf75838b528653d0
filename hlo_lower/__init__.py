"""Classify every scatter of a StableHLO module, lower it to plain ops, and prove that nothing changed.

    import hlo_lower as hl
    graph = hl.read("decode.mlir")
    records = hl.classify(graph)
    lowered = hl.lower("decode.mlir")
    verdict = hl.verify("decode.mlir", lowered)
"""

from hlo_lower.api import RuleRow, classify, export, lower, read, rules, verify
from hlo_lower.errors import DifferenceError, HloLowerError, InputError, NotLoweredError, RegistryError
from hlo_lower.graph import Graph
from hlo_lower.pipeline import Lowered
from hlo_lower.scatter.record import Fact, Rejection, ScatterRecord

__version__ = "0.1.0"

__all__ = [
    "DifferenceError",
    "Fact",
    "Graph",
    "HloLowerError",
    "InputError",
    "Lowered",
    "NotLoweredError",
    "RegistryError",
    "Rejection",
    "RuleRow",
    "ScatterRecord",
    "__version__",
    "classify",
    "export",
    "lower",
    "read",
    "rules",
    "verify",
]
