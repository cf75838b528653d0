"""Sines, cosines and tangents of numbers of any size: exact reductions to the first quadrant, and the rule."""

from collections.abc import Sequence
from functools import cache
from math import pi
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.kind import OpLowering
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.ops.names import COSINE, SINE
from hlo_lower.ops.quirks.angles import LARGE_ANGLE, LARGEST
from hlo_lower.ops.quirks.floats import FORM
from hlo_lower.ops.refused_forms import RefusedForm

TWO_OVER_PI, DIGITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB, 224
"""2/pi in units of 2^-DIGITS, and that number of bits."""

PLACES, MANTISSA, BIAS = 62, 23, 127
"""Bits behind the point of an angle in quadrants; bits of an f32 behind its first one; what its exponents begin at."""

SMALL = 0.785
"""Up to it, just below pi/4, an angle is taken as it is."""


rules = RuleList()


@cache
def _quadrants_by_exponent() -> tuple[NDArray[Any], NDArray[Any]]:
    """For each exponent of an f32 the quadrants in a unit of its mantissa, modulo 4: as a number of 2^-PLACES, and the
    part of one that is left."""
    shift = BIAS + MANTISSA + DIGITS - PLACES
    found = [divmod(TWO_OVER_PI << exponent, 1 << shift) for exponent in range(256)]
    whole = np.asarray([number % (1 << 64) for number, _ in found], np.uint64).view(np.int64)
    return whole, np.asarray([rest / (1 << shift) for _, rest in found], np.float32)


@rules.lowers(FORM, found={RefusedForm.of(LARGE_ANGLE)}, form="the op on x modulo pi/2, by quadrant, within 5 ulp")
def angle_to_quadrant(op: OpLowering[Any]) -> Sequence[Value]:
    """Take 2/pi times the number apart into quadrants and a rest, in integers, and the op on that.

        |x| = m * 2^e                          its bits
        q   = m * whole[e] + m * part[e]       quadrants in units of 2^-62, modulo 4: i64 wraps around
        k   = round(q)                         -2, -1, 0, 1, 2
        r   = (q - k) * pi/2                   an f32
        a   = 0.785 < |x| < inf ? |r| : |x|    in the first half of a quadrant, or not finite

    and sine x = sign(x) * (k odd ? k * cosine a : (1 - |k|) * sign(r) * sine a), cosine likewise; the tangent of an odd
    k is -1 / tangent.

    Equal within 3 units in the last place for every f32, a tangent within 5, where the consumer's own ops are within
    one on the first half of a quadrant: q has an error below 2 of its units, and no f32 but 0 is nearer than 2^-31 to a
    multiple of pi/2. Up to 0.785 it is the op itself. Narrower types are computed in f32. Products of integers are
    exact and those of floats stand alone, so that no contraction changes a bit.
    """
    build, [x] = op.build, op.node.operands
    given = build.convert(x, "f32")
    size, mantissa, exponent = on_each(build, _parts, given)
    rows = [
        _at(build, table, kind, exponent) for table, kind in zip(_quadrants_by_exponent(), ("i64", "f32"), strict=True)
    ]
    angle, rest, quadrant = on_each(build, _reduced, size, mantissa, *rows)
    if op.node.name in (SINE, COSINE):
        functions = build.elementwise(SINE, angle), build.elementwise(COSINE, angle)
        by_quadrant = _sine if op.node.name == SINE else _cosine
    else:
        functions = (build.elementwise(op.node.name, angle),)
        by_quadrant = _tangent
    [found] = on_each(build, by_quadrant, given, rest, quadrant, *functions)
    return [build.convert(found, x.element_type)]


def _at(build: Builder, table: NDArray[Any], element: str, places: Value) -> Value:
    """The numbers of a table at places that are within it."""
    shape = places.static_shape
    numbers = f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {len(shape)}"
    return build.gather(build.constant_array(table, element), places, numbers, [1], shape)


def _parts(x: Array) -> tuple[Array, Array, Array]:
    """The size of a number, its mantissa as a whole number, and its exponent."""
    size = jnp.abs(x)
    bits = lax.bitcast_convert_type(size, jnp.int32)
    exponent = lax.div(bits, np.int32(1 << MANTISSA))
    return size, bits - exponent * np.int32(1 << MANTISSA) + np.int32(1 << MANTISSA), exponent


def _reduced(size: Array, mantissa: Array, whole: Array, part: Array) -> tuple[Array, Array, Array]:
    """The angle in the first half of a quadrant, what is left with its sign, and how many quadrants were taken."""
    quadrants = mantissa.astype(np.int64) * whole + (mantissa.astype(np.float32) * part).astype(np.int64)
    quadrant = lax.round(quadrants.astype(np.float32) * np.float32(2.0**-PLACES), lax.RoundingMethod.TO_NEAREST_EVEN)
    left = (quadrants - quadrant.astype(np.int64) * np.int64(1 << PLACES)).astype(np.float32)
    angle = left * np.float32(pi / 2 * 2.0**-PLACES)
    is_beyond = jnp.logical_and(size > SMALL, size <= LARGEST)  # LiteRT takes inf - inf for 0
    return jnp.abs(lax.select(is_beyond, angle, size)), angle, quadrant


def _sine(x: Array, rest: Array, quadrant: Array, sine: Array, cosine: Array) -> Array:
    even = np.float32(1) - jnp.abs(quadrant)
    return lax.select(even == 0, quadrant * cosine, even * _signed(rest, sine)) * jnp.sign(x)


def _cosine(_x: Array, rest: Array, quadrant: Array, sine: Array, cosine: Array) -> Array:
    even = np.float32(1) - jnp.abs(quadrant)
    return lax.select(even == 0, -quadrant * _signed(rest, sine), even * cosine)


def _tangent(x: Array, rest: Array, quadrant: Array, tangent: Array) -> Array:
    tangent = _signed(rest, tangent)
    return lax.select(jnp.abs(quadrant) == 1, np.float32(-1) / tangent, tangent) * jnp.sign(x)


def _signed(rest: Array, found: Array) -> Array:
    return lax.select(rest < 0, -found, found)
