"""Tile a module: find what is large, and compute it in loops over tiles, until its temporaries are within a bound.

In the order in which they are used:

    prepare    calls inlined, cheap values made for each use     program   the entry point, read
    liveness   what is live at the peak                          choose    plans, the cheapest first
    core       the large values that belong together             labels    the dim along which each is cut
    cut        loops, what leaves them, what is computed again   emit      the loops, their body and the order of nodes
    measure    what XLA needs                                    search    until the bound is reached
"""

from hlo_lower.tile.by_hand import ByHand
from hlo_lower.tile.entry import tile
from hlo_lower.tile.tiled import Tiled, TiledLoopRecord

__all__ = ["ByHand", "Tiled", "TiledLoopRecord", "tile"]
