"""`stablehlo.gather`: its canonical form, what is known of it, and a reference in NumPy."""
