"""Factorizations and solves of matrices, which most consumers do not know, as loops over rows and columns."""
