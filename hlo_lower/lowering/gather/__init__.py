"""`stablehlo.gather` and `dynamic_gather`: their kinds and their rules."""
