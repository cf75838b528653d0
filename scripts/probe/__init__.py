"""The parts of `scripts/probe_target.py`: modules of one op, their arguments, and the target's file."""
