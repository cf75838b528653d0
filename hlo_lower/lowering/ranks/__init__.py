"""Tensors of more dims than a target takes: their kind and its rules."""
