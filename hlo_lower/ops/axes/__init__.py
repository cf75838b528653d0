"""Subsets: which part of a tensor an operation reads or writes, apart from how it is read or written.

The vocabulary (full, tile, filter, point) is that of Google's structured dialect (gml_st); `ops/subset.py` has it.

    parts    parts as values, tiles at runtime offsets, and the ops that read and write them
    cut      the axes of an op and a piece of it, and the registry of both, by the op's name
    op_axes  the rules
"""
