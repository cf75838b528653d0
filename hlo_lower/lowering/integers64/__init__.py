"""Portable input: 64-bit integers made 32 bits wide. What is no plain StableHLO are kinds of `hlo_lower.lowering`."""
