"""chlo ops, composites, custom calls and older ops as plain StableHLO: their kinds and rules."""
