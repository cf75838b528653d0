"""Who says what a piece computes: XLA, StableHLO's interpreter, the definitions in NumPy."""
