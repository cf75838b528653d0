"""`stablehlo.scatter`: its kinds and its rules."""
