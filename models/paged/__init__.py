"""The parts of `paged_attention.py`: sizes, cache writes, kernels, the plan of loads, and the loops over it."""
