"""The random programs of the tiler's tests, and the ops of the subset rules', are what laws of loops are tried on."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("tile", "subset")]
