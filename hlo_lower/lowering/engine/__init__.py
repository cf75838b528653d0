"""The engine: kinds, rules, legality and the replacement of one op."""
