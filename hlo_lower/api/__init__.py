"""The public functions: lower, verify, tile, jit, and what they return."""
