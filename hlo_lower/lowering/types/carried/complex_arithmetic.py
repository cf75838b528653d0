"""Arithmetic of complex numbers on their real and imaginary parts, bit for bit as XLA computes it on a CPU.

Nothing is added to the definitions that XLA does not add, so that Inf, NaN and zeros of both signs come out alike. The
functions are of scalars, the parts a + bi and c + di (`hlo_lower.lowering.engine.traced`).
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array

Parts = tuple[Array, Array]


def is_nan(x: Array) -> Array:
    """Whether a part is NaN."""
    return x != x


def is_infinite(x: Array) -> Array:
    """Whether a part is Inf: no NaN, and its difference with itself is one. (Not all targets have the constant.)"""
    return (x == x) & is_nan(x - x)


def is_finite(x: Array) -> Array:
    """Whether a part is a number."""
    return x - x == 0.0


def larger_ratio(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """The larger and the smaller one of the sizes of two parts, and 1 + (smaller / larger)^2."""
    sizes = jnp.abs(a), jnp.abs(b)
    large, small = jnp.maximum(*sizes), jnp.minimum(*sizes)
    ratio = small / large
    return large, small, 1.0 + ratio * ratio


def add(a: Array, b: Array, c: Array, d: Array) -> Parts:
    """By parts."""
    return a + c, b + d


def subtract(a: Array, b: Array, c: Array, d: Array) -> Parts:
    """By parts."""
    return a - c, b - d


def negate(a: Array, b: Array) -> Parts:
    """By parts."""
    return -a, -b


def multiply(a: Array, b: Array, c: Array, d: Array) -> Parts:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, without a look at Inf, as XLA does it."""
    return a * c - b * d, a * d + b * c


def divide(a: Array, b: Array, c: Array, d: Array) -> Parts:
    """The quotient by Smith's method, which divides by the larger part of the divisor c + di first.

        |c| < |d|:  r = c/d, n = d + rc:  (ra + b)/n + ((rb - a)/n)i
        else        r = d/c, n = c + rd:  (rb + a)/n + ((b - ra)/n)i

    Where both parts come out as NaN, annex G of C says what they are: by a zero, of Inf by a number, of a number by
    Inf. There a part that is Inf counts as 1 with its sign, and others as 0; times Inf is written as a quotient by 0.
    """
    found = smith(jnp.abs(c) < jnp.abs(d), a, b, c, d)
    by_zero = (c == 0.0) & (d == 0.0) & ((a == a) | (b == b))
    signed = 1.0 / c  # Inf with the sign of c
    of_infinite = (is_infinite(a) | is_infinite(b)) & is_finite(c) & is_finite(d)
    by_infinite = (is_infinite(c) | is_infinite(d)) & is_finite(a) & is_finite(b)
    large, small = _by_conjugate(_boxed(a), _boxed(b), c, d), _by_conjugate(a, b, _boxed(c), _boxed(d))
    is_lost = is_nan(found[0]) & is_nan(found[1])

    def chosen(k: int) -> Array:
        special = jnp.where(by_infinite, 0.0 * small[k], found[k])
        special = jnp.where(of_infinite, large[k] / 0.0, special)
        return jnp.where(is_lost, jnp.where(by_zero, signed * (a, b)[k], special), found[k])

    return chosen(0), chosen(1)


def smith(is_steep: Array, a: Array, b: Array, c: Array, d: Array) -> Parts:
    """The quotient, divided by the imaginary part first where it is steep."""
    steep, flat = c / d, d / c
    under_steep, under_flat = d + steep * c, c + flat * d
    real = jnp.where(is_steep, (steep * a + b) / under_steep, (flat * b + a) / under_flat)
    return real, jnp.where(is_steep, (steep * b - a) / under_steep, (b - flat * a) / under_flat)


def _boxed(x: Array) -> Array:
    """1 with the sign of what is Inf, 0 with the sign of a number; of NaN 0."""
    one = jnp.where(x < 0.0, -1.0, x.dtype.type(1))
    return jnp.where(is_infinite(x), one, jnp.where(is_nan(x), 0.0, x * 0.0))


def _by_conjugate(a: Array, b: Array, c: Array, d: Array) -> Parts:
    return a * c + b * d, b * c - a * d


def size(a: Array, b: Array) -> Array:
    """max sqrt(1 + (min / max)^2) of the sizes of the parts: no square overflows.

    Of zeros, of two Inf and of NaN that is NaN; then it is the smaller one.
    """
    large, small, square = larger_ratio(a, b)
    found = large * jnp.sqrt(square)
    return jnp.where(is_nan(found), small, found)


def sign(a: Array, b: Array) -> Parts:
    """The number divided by its size; 0 of 0."""
    length = size(a, b)
    return jnp.where(length == 0.0, 0.0, a / length), jnp.where(length == 0.0, 0.0, b / length)


ARITHMETIC: Mapping[str, Callable[..., Parts]] = {
    "add": add,
    "subtract": subtract,
    "negate": negate,
    "multiply": multiply,
    "divide": divide,
    "sign": sign,
}
"""By name: of parts, parts."""
