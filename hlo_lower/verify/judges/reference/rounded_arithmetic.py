"""The ops of update computations in NumPy: each rounds once, as IEEE 754 says, or wraps around.

Integers are computed in 64 bits and cut to their width, so that the narrow types of ml_dtypes need no arithmetic of
their own; bfloat16 and the float8 types come from ml_dtypes, whose arithmetic rounds after each op. No op on floats
stands here whose rounding is left open: no transcendental function.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of

Array = NDArray[Any]


class UnsupportedRegionError(Exception):
    """The region has an op that is not computed here."""


def apply(op: str, dtype: np.dtype[Any], inputs: Sequence[Array]) -> Array:
    """An op on arrays of one element type; a comparison gives booleans.

    Args:
      op: the name without its dialect; a comparison as "compare LT".
      dtype: the type of the (last) input.
      inputs: arrays of one shape.

    Raises:
      UnsupportedRegionError: there is no such op on this type, or it divides an integer by zero.
    """
    if op == "select":
        return np.where(inputs[0], inputs[1], inputs[2])
    declared = element_type_of(dtype)
    is_integer = declared.is_integer and dtype != np.bool_
    if is_integer:
        inputs = [i.astype(np.int64 if declared.is_signed else np.uint64) for i in inputs]
    if op.startswith("compare "):
        return np.asarray(_COMPARE[op.split()[1]](*inputs), np.bool_)
    table = _INTEGER if is_integer else _BOOLEAN if dtype == np.bool_ else FLOAT
    if op not in table:
        raise UnsupportedRegionError(f"{op} in the region")
    found = np.asarray(table[op](*inputs))
    return _cut(found, dtype) if is_integer else found.astype(dtype)


def _cut(wide: Array, dtype: np.dtype[Any]) -> Array:
    """Integers of 64 bits modulo 2^width."""
    bits = element_type_of(dtype).bits
    found = wide.astype(np.uint64) & np.uint64((1 << bits) - 1)
    if element_type_of(dtype).is_unsigned:
        return found.astype(dtype)
    if bits == 64:
        return found.view(np.int64)
    half = 1 << (bits - 1)
    return (found.astype(np.int64) - (2 * half) * (found.astype(np.int64) >= half)).astype(dtype)


def _divide(a: Array, b: Array) -> Array:
    """Division of integers towards zero; a divisor of 0 is implementation-defined."""
    if np.any(b == 0):
        raise UnsupportedRegionError("integer division by zero")
    quotient = np.abs(a.astype(object)) // np.abs(b.astype(object))
    return np.where((a < 0) != (b < 0), -quotient, quotient) % (1 << 64)


def _extremum(first_wins: Callable[[Array, Array], Any], zero_first: bool) -> Callable[[Array, Array], Array]:
    """maximum or minimum of IEEE 754-2019: NaN wins, and -0 is less than +0."""

    def extremum(a: Array, b: Array) -> Array:
        chosen = np.where(first_wins(a, b), a, b)
        tie = np.where(np.signbit(a) == zero_first, a, b)
        chosen = np.where(a == b, tie, chosen)
        return np.where(a != a, a, np.where(b != b, b, chosen))

    return extremum


def _power(a: Array, b: Array) -> Array:
    """Power by a small exponent that is not negative, wrapping around."""
    result = np.ones_like(a)
    for step in range(int(b.max()) if b.size else 0):
        result = np.where(b > step, result * a, result)
    return result


Op = Callable[..., Any]
"""One of NumPy's or Python's operators on one or two arrays."""

BITWISE: Mapping[str, Op] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
}
_BOOLEAN: Mapping[str, Op] = {
    **BITWISE,
    "add": np.bitwise_or,
    "multiply": np.bitwise_and,
    "maximum": np.bitwise_or,
    "minimum": np.bitwise_and,
}
_ARITHMETIC: Mapping[str, Op] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "abs": np.abs}
_INTEGER: Mapping[str, Op] = {
    **BITWISE,
    **_ARITHMETIC,
    "negate": np.negative,
    "divide": _divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": _power,
}
FLOAT: Mapping[str, Op] = {
    **_ARITHMETIC,
    "negate": operator.neg,
    "divide": np.divide,
    "maximum": _extremum(operator.gt, False),
    "minimum": _extremum(operator.lt, True),
}
_COMPARE: Mapping[str, Op] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
