"""Subsets: which part of a tensor an operation reads or writes, apart from how it is read or written.

The vocabulary (full, tile, filter, point) is that of Google's structured dialect (gml_st); `ops/subset.py` has it.

    tensor_subset  parts as values, with a kind of that vocabulary
    dynamic_tile   a tile at runtime offsets
    materialize    slice, dynamic_slice; and what writes a part
    cut            the axes of an op, and a piece of it: what of operands and results is cut at the same places
    rules          the axes and the piece of each op, registered by the op's name; the other files have the rules
"""
