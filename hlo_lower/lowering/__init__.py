"""Lowering: the pipeline, its kinds of op, and the rules of each."""
