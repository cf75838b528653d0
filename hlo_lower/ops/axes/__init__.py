"""Subsets: which part of a tensor an operation reads or writes, apart from how it is read or written.

The vocabulary (full, tile, filter, point) is that of Google's structured dialect (gml_st).

    kinds             the vocabulary
    tensor_subset     parts as values, with a kind of that vocabulary
    dynamic_tile      a tile at runtime offsets
    materialize       slice, dynamic_slice; and what writes a part
    nested_slices     slices of slices, of which XLA makes one
    axis_link, rules  what follows what in an op, registered by the op's name; families/ has the rules
    cut               a piece of an op: the parts of operands and results that are cut at the same places
"""
