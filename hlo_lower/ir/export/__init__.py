"""From a Python function to StableHLO: which function, with which arguments, and text that is the same everywhere."""
