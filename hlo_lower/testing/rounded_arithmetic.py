"""The ops of fuzzed regions in NumPy: each rounds once, as IEEE 754 says, or wraps around.

Integers are computed in 64 bits and cut to their width, so that the narrow types of ml_dtypes need no arithmetic of
their own. No op stands here whose rounding is left open: no transcendental function, no product of complex numbers.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.testing.drawn_types import DrawnType

Array = NDArray[Any]


def apply(op: str, element: DrawnType, inputs: Sequence[Array]) -> Array:
    """An op on arrays of one element type; a comparison gives booleans.

    Args:
      op: the name without its dialect; a comparison as "compare LT".
      element: the type of the (last) input.
      inputs: arrays of one shape.
    """
    if op.startswith("compare"):
        return _compare(op.split()[1], element, inputs)
    if op == "select":
        return np.where(inputs[0], inputs[1], inputs[2])
    if element.kind == "bool":
        return np.asarray(_BOOLEAN[op](*inputs), np.bool_)
    if element.kind in ("signed", "unsigned"):
        return _integer(op, element, inputs)
    return np.asarray(_FLOAT[op](*inputs)).astype(element.dtype)


def convert(array: Array, element: DrawnType) -> Array:
    """Convert between types of one kind."""
    return array.astype(element.dtype)


def _integer(op: str, element: DrawnType, inputs: Sequence[Array]) -> Array:
    wide = np.uint64 if element.kind == "unsigned" else np.int64
    result: Array = np.asarray(_INTEGER[op](*(i.astype(wide) for i in inputs))).astype(np.uint64)
    mask = np.uint64((1 << element.bits) - 1)
    result = result & mask
    if element.kind == "signed" and element.bits < 64:
        half = 1 << (element.bits - 1)
        return (result.astype(np.int64) - (2 * half) * (result.astype(np.int64) >= half)).astype(element.dtype)
    return result.view(np.int64) if element.kind == "signed" else result.astype(element.dtype)


def _compare(direction: str, element: DrawnType, inputs: Sequence[Array]) -> Array:
    if element.kind in ("signed", "unsigned"):
        wide = np.uint64 if element.kind == "unsigned" else np.int64
        inputs = [i.astype(wide) for i in inputs]
    return np.asarray(_COMPARE[direction](*inputs), np.bool_)


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

_BITWISE: dict[str, Op] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
}
_BOOLEAN: dict[str, Op] = {
    **_BITWISE,
    "add": np.bitwise_or,
    "multiply": np.bitwise_and,
    "maximum": np.bitwise_or,
    "minimum": np.bitwise_and,
}
_ARITHMETIC: dict[str, Op] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "abs": np.abs}
_INTEGER: dict[str, Op] = {
    **_BITWISE,
    **_ARITHMETIC,
    "negate": np.negative,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": _power,
}
_FLOAT: dict[str, Op] = {
    **_ARITHMETIC,
    "negate": operator.neg,
    "divide": np.divide,
    "maximum": _extremum(operator.gt, False),
    "minimum": _extremum(operator.lt, True),
}
_COMPARE: dict[str, Op] = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "EQ": operator.eq}
