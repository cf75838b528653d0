"""`stablehlo.sort` and `top_k`: their kinds and their rules."""
