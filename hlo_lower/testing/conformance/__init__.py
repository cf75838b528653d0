"""Scatter conformance of a consumer: a fixed suite of small modules, judged as they are and converted.

suite              the modules: forms of a scatter x combiners x element types x index types
suite_arguments    four sets of indices each: distinct, with duplicates, out of bounds, at the ends of the index type
conformance_run    both versions judged by the consumer, each set of arguments by itself
conformance_table  the counts, and what is not right
"""
