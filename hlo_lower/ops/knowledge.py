"""What the converter knows of ops beyond their declarations, and the judge does not read: what they are in NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hlo_lower.ops import names

NUMPY: Mapping[str, Any] = {
    names.ADD: np.add,
    names.SUBTRACT: np.subtract,
    names.MULTIPLY: np.multiply,
    names.NEGATE: np.negative,
    names.MAXIMUM: np.maximum,
    names.MINIMUM: np.minimum,
    names.AND: np.bitwise_and,
    names.OR: np.bitwise_or,
    names.XOR: np.bitwise_xor,
    names.NOT: np.invert,
}
"""Ops that NumPy computes as StableHLO does on numbers of one type; on booleans only those of `LOGIC`."""

LOGIC = frozenset({names.AND, names.OR, names.XOR, names.NOT})
"""Those that compute integers bit by bit, and truths."""
