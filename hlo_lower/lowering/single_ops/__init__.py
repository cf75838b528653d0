"""Ops that a target lacks, written out one by one: their kinds and rules."""
