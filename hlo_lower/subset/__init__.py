"""Subsets: which part of a tensor an operation reads or writes, apart from how it is read or written.

The vocabulary (full, tile, filter, point) is that of Google's structured dialect (gml_st).
"""

from hlo_lower.subset.kinds import MANY_WINDOWS, Subset
from hlo_lower.subset.tile import DynamicTile

__all__ = ["MANY_WINDOWS", "DynamicTile", "Subset"]
