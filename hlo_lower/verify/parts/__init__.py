"""Equality of two pieces shown by the structure of the second one's loops, tile by tile: no run, at any size.

The second piece is read backwards from its outputs. A goal is "this value of the second piece is that part of a value
of the first one"; each op has a law that says which parts of its operands its result's part is computed from
(`place_laws`, `sum_laws`, `window_laws`), and a loop shows its results by what one iteration writes, wherever the
counter stands, and by the places that all iterations write (`tile_writes`). Nothing of the tiler is used.

    %t = exponential(dynamic_slice %a, %i)          is part [i:+8] of exponential(%a)
    %r = dynamic_update_slice %carried, %t, %i      in a loop with i = 0, 8, ..., 56: %r is all 64 of it

What no law shows is not told apart: it is judged by runs.
"""

from hlo_lower.verify.parts.by_parts import are_equal_by_parts

__all__ = ["are_equal_by_parts"]
