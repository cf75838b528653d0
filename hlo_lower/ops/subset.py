"""The kinds of subsets that a scatter can write, and which kind is a case of which."""

from enum import Enum


class Subset(Enum):
    """The part of the result that a scatter writes.

    EMPTY: nothing. FULL: everything, once. TILE: one window at one start. POINT: one element. BATCHED_TILE: one window
    for each batch coordinate. ROWS: a run of rows, base + iota. FILTER: rows that the data picks. POINTS: elements
    that the data picks. WINDOWS: windows that the data places, possibly overlapping.
    """

    EMPTY = "Empty"
    FULL = "Full"
    TILE = "Tile"
    POINT = "Point"
    BATCHED_TILE = "BatchedTile"
    ROWS = "Rows"
    FILTER = "Filter"
    POINTS = "Points"
    WINDOWS = "Windows"


Empty = frozenset({Subset.EMPTY})
Full = frozenset({Subset.FULL})
Point = frozenset({Subset.POINT})
Tile = frozenset({Subset.TILE, Subset.POINT, Subset.FULL})
"""One window; a point is a tile of ones, and full is a tile that covers everything."""
Rows = frozenset({Subset.ROWS})
BatchedTile = frozenset({Subset.BATCHED_TILE})
"""As constraints of rules: a rule for the larger kind takes the smaller ones."""

MANY_WINDOWS = frozenset({Subset.BATCHED_TILE, Subset.FILTER, Subset.POINTS, Subset.WINDOWS})
"""Several windows whose places are not one run: each strategy of the table of costs is for them."""
