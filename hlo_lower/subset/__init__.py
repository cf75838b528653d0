"""Subsets: which part of a tensor an operation reads or writes, apart from how it is read or written.

The vocabulary (full, tile, filter, point) is that of Google's structured dialect (gml_st).

    kinds        the vocabulary             part         parts as values: composition, containment, disjointness
    tile         a tile at runtime offsets  materialize  slice, dynamic_slice, gather; and what writes a part
    axis, rules  what follows what in an op, registered by the op's name; families/ has the rules
    cut          a piece of an op           needs        from a part of a result to parts of operands, and back
"""

from hlo_lower.subset.axis import Axis, Boundary, OpAxes
from hlo_lower.subset.cut import Cut, Steps
from hlo_lower.subset.families import default_subset_rules
from hlo_lower.subset.kinds import MANY_WINDOWS, Subset
from hlo_lower.subset.materialize import Bindings, accumulate, materialize, yield_to
from hlo_lower.subset.needs import dependent, needed
from hlo_lower.subset.part import Offset, Part, Rows, Run, run
from hlo_lower.subset.rules import SubsetRules
from hlo_lower.subset.tile import DynamicTile

__all__ = [
    "MANY_WINDOWS",
    "Axis",
    "Bindings",
    "Boundary",
    "Cut",
    "DynamicTile",
    "Offset",
    "OpAxes",
    "Part",
    "Rows",
    "Run",
    "Steps",
    "Subset",
    "SubsetRules",
    "accumulate",
    "default_subset_rules",
    "dependent",
    "materialize",
    "needed",
    "run",
    "yield_to",
]
