"""Sines, cosines and tangents that one version reduces to the first half of a quadrant: written out by the judge.

A function of a float that is not rounded correctly has no one right value, and none of a consumer's is XLA's. So the
law says which one is meant where a version reduces its angles itself: this one, which is within 3 units in the last
place of the true value for every f32 (tests/verify/test_angles.py), where the functions are right on the first half of
a quadrant. Both versions are compared, and run, with it in the place of each function of an angle that is not reduced.
So the reduction of the other version has to be the same, bit for bit.

    quadrants = m * (2/pi * 2^e), m and e those of |x| = m * 2^e, in units of 2^-62 and modulo 4, the last unit cut off
    k, r      = the nearest whole number of them, and the rest times pi/2, rounded twice
    sine x    = one of sine a, cosine a and their negatives, of a = |x| up to 0.785, |r| beyond

Which versions it is done for is a guess that no verdict rests on: those with another number of open angles.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import pi
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import HALF_FLOATS
from hlo_lower.ir import mlir
from hlo_lower.ops.names import ABS, COSINE, SELECT, SINE, TAN
from hlo_lower.verify.align.inlined import put_in_place

_jax: Any = jax
Array = Any

ANGLES = (SINE, COSINE, TAN, "chlo.tan")

UNIT, HALF = 62, 0.785
"""Bits behind the point of an angle in quadrants, and a number that is just within the first half of a quadrant."""


def angles_written_out(texts: Sequence[str]) -> list[str] | None:
    """Two versions with their angles written out, None where both leave as many as they are."""
    if not any(name in texts[0] for name in ANGLES):
        return None
    context = mlir.shared_context(sum(map(len, texts)))
    with mlir.active(context):
        modules = [mlir.parse_module(text, context) for text in texts]
        ops = [[op for op in mlir.operations_within(module.operation) if _is_open(op)] for module in modules]
        if len(ops[0]) == len(ops[1]):
            return None
        for op in (*ops[0], *ops[1]):
            put_in_place(op, _FUNCTIONS[op.name])
        return [mlir.print_module(module, locations=True) for module in modules]


def _is_open(op: mlir.RawOperation) -> bool:
    """Whether it is of an angle that may be large: not of the size of something that was chosen."""
    if op.name not in ANGLES or not mlir.is_static(op.operands[0].type):
        return False
    if mlir.tensor_element_name(op.operands[0].type) not in ("f32", *HALF_FLOATS):
        return False
    size = mlir.producer(op.operands[0])
    chosen = mlir.producer(size.operands[0]) if size is not None and size.name == ABS else None
    return chosen is None or chosen.name != SELECT


@cache
def _quadrants_of_units() -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """For each exponent the quadrants in a unit of a mantissa, in units of 2^-62: modulo 2^64, and the part of one."""
    bits = 512
    of_pi, one = _pi(bits), 1 << 2 * bits + 1
    whole, part = list[int](), list[float]()
    for exponent in range(-150, 106):
        number = (one << UNIT + 150 + exponent) // of_pi  # 2/pi * 2^exponent in units of 2^-(bits + 62 + 150)
        whole.append(number >> bits + 150 & (1 << 64) - 1)
        part.append((number & (1 << bits + 150) - 1) / (1 << bits + 150))
    return np.asarray(whole, np.uint64).view(np.int64), np.asarray(part, np.float32)


def _pi(bits: int) -> int:
    """Pi in units of 2^-bits, but for its last ten: 16 arccot 5 - 4 arccot 239."""

    def arccot(x: int) -> int:
        term = (1 << bits) // x
        total, count = term, 1
        while term:
            term, count = -term // (x * x), count + 2
            total += term // count
        return total

    return 16 * arccot(5) - 4 * arccot(239)


def _function(given: Array, name: str) -> Array:
    lax = _jax.lax
    x = lax.convert_element_type(given, np.float32)
    size = lax.abs(x)
    bits = lax.bitcast_convert_type(size, np.int32)
    exponent = lax.div(bits, _like(bits, 1 << 23))
    mantissa = bits - exponent * _like(bits, 1 << 23) + _like(bits, 1 << 23)
    whole, part = (_taken(table, exponent) for table in _quadrants_of_units())
    quadrants = mantissa.astype(np.int64) * whole + (mantissa.astype(np.float32) * part).astype(np.int64)
    k = quadrants.astype(np.float32) * _like(size, 2.0**-UNIT)
    k = lax.round(k, lax.RoundingMethod.TO_NEAREST_EVEN)
    rest = (quadrants - k.astype(np.int64) * _like(quadrants, 1 << UNIT)).astype(np.float32)
    rest = rest * _like(rest, pi / 2 * 2.0**-UNIT)
    a = lax.abs(lax.select(size > _like(size, HALF), rest + (size - size), size))
    even, one = _like(k, 1.0) - lax.abs(k), _like(k, 1.0)
    if name in (SINE, COSINE):
        s, c = lax.sin(a), lax.cos(a)
        s = lax.select(rest < _like(rest, 0.0), -s, s)
        odd = even == _like(even, 0.0)
        found = lax.select(odd, k * c, even * s) * lax.sign(x) if name == SINE else lax.select(odd, -k * s, even * c)
    else:
        t = lax.tan(a)
        t = lax.select(rest < _like(rest, 0.0), -t, t)
        found = lax.select(lax.abs(k) == one, -one / t, t) * lax.sign(x)
    return lax.convert_element_type(found, given.dtype)


def _like(numbers: Array, number: float) -> Array:
    return _jax.lax.full_like(numbers, number)


def _taken(table: Array, places: Array) -> Array:
    lax = _jax.lax
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    places = lax.expand_dims(places, (places.ndim,))
    return lax.gather(table, places, numbers, (1,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {name: partial(_function, name=name) for name in ANGLES}
