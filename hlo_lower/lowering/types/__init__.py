"""Element types that a target does not take: their kinds and rules."""
