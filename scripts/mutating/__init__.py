"""What `scripts/mutants.py` is made of; nothing of `hlo_lower.verify` is used but by the child that is on trial."""
