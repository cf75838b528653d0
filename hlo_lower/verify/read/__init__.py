"""The judge's own reading of a module."""
