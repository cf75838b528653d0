"""How far rounding may move a result."""
