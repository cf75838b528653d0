"""The measurements behind `scripts/bench.py`, one per file."""
