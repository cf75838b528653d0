"""Functions of complex numbers by functions of their parts: as XLA computes them, or within a bound of the true number.

The exponential, the logarithms and the root are jaxlib's own (`stablehlo-complex-math-expander`). The others are within
4 units in the last place of the result's size, if the consumer's functions of the parts are within one; of a power
times |y log x|, of the others near a pole or a zero times what the function makes of a unit of its argument.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.lowering.types.carried.complex_arithmetic import (
    Parts,
    is_finite,
    is_infinite,
    is_nan,
    larger_ratio,
    size,
)


def expm1(a: Array, b: Array) -> Parts:
    """(expm1(a) cos b + (cos b - 1)) + e^a sin b i, cos b - 1 = -2 sin^2(b/2); the imaginary part of a real is 0."""
    less, half = jnp.expm1(a), jnp.sin(b * 0.5)
    cosine_less = half * half * -2.0
    return less * (cosine_less + 1.0) + cosine_less, jnp.where(b == 0.0, 0.0, (less + 1.0) * jnp.sin(b))


def _hyperbolic(y: Array) -> Parts:
    """sinh y and cosh y: with m = expm1 |y| they are m (1 + 1/(m + 1)) / 2 and that with the sums the other way round.

    No digits are lost near 0, as they are in (e^y - e^-y) / 2. Where e^|y| overflows both are Inf.
    """
    grown = jnp.expm1(jnp.abs(y))
    inverse = 1.0 / (grown + 1.0)
    sinh, cosh = grown * 0.5 * (inverse + 1.0), (grown + 1.0 + inverse) * 0.5
    return jnp.where(y == 0.0, y, jnp.where(y < 0.0, -sinh, sinh)), cosh


def sine(a: Array, b: Array) -> Parts:
    """sin a cosh b + cos a sinh b i."""
    sinh, cosh = _hyperbolic(b)
    return jnp.sin(a) * cosh, jnp.cos(a) * sinh


def cosine(a: Array, b: Array) -> Parts:
    """cos a cosh b - sin a sinh b i."""
    sinh, cosh = _hyperbolic(b)
    return jnp.cos(a) * cosh, -(jnp.sin(a) * sinh)


def tanh(a: Array, b: Array) -> Parts:
    """((e^2a - e^-2a) + 2 sin 2b i) / (e^2a + e^-2a + 2 cos 2b), by expm1, as it loses digits near 0.

    Where e^2a overflows the real part is 1 with the sign of a. Of b that is Inf or NaN the real part is NaN, but of a
    that is Inf; the imaginary part is 0 where b is, or where a is Inf and b has no sine.
    """
    twice = a + a
    grown, shrunk, sin_b, cos_b = jnp.expm1(twice), jnp.expm1(-twice), jnp.sin(b), jnp.cos(b)
    over = 4.0 * (cos_b * sin_b)
    summed = grown + shrunk
    under = summed + cos_b * cos_b * 4.0
    limit = jnp.where(a < 0.0, -1.0, a.dtype.type(1))
    real = jnp.where(is_infinite(summed), limit, (grown - shrunk) / under)
    has_no_sine = is_nan(over)
    is_lost = has_no_sine & (is_finite(a) | is_nan(a))
    is_zero = (b == 0.0) | (is_infinite(a) & has_no_sine)
    return jnp.where(is_lost, over - over, real), jnp.where(is_zero, 0.0, over / under)


def tan(a: Array, b: Array) -> Parts:
    """-i tanh(ix)."""
    real, imag = tanh(-b, a)
    return imag, -real


def rsqrt(a: Array, b: Array) -> Parts:
    """|x|^(-1/2) at minus half the angle; of 0 Inf and NaN, of Inf 0 with the signs of the parts."""
    large, small, square = larger_ratio(a, b)
    length = lax.rsqrt(large) * lax.rsqrt(jnp.sqrt(square))
    length = jnp.where(is_nan(length), lax.rsqrt(small), length)
    angle = jnp.arctan2(b, a) * -0.5
    is_zero = (a == 0.0) & (b == 0.0)
    is_end = is_infinite(a) | (is_infinite(b) & is_nan(a))
    real = jnp.where(is_end, _zero_of_sign(a), length * jnp.cos(angle))
    imag = jnp.where(is_end, -_zero_of_sign(b), length * jnp.sin(angle))
    return jnp.where(is_zero, 1.0 / jnp.abs(a), real), jnp.where(is_zero, a / a, imag)


def _zero_of_sign(x: Array) -> Array:
    """0 with the sign of a part."""
    return jnp.where(x < 0.0, -0.0, jnp.where(x == 0.0, x, 0.0))


def power(a: Array, b: Array, c: Array, d: Array) -> Parts:
    """r^c e^(-d t) (cos q + sin q i), r and t the size and the angle of a + bi, q = c t + d log r.

    Anything to 0 is 1, 1 to anything is 1; a real power of 0 or of Inf is 0 or Inf.
    """
    length, angle = size(a, b), jnp.arctan2(b, a)
    grown = length**c
    scale, turned = grown * jnp.exp(-d * angle), c * angle + d * jnp.log(length)
    is_real, is_flat = d == 0.0, b == 0.0
    is_zero = is_real & (length == 0.0) & (c > 0.0)
    is_end = (is_real & ((c < 0.0) | (c > 0.0)) & is_flat & is_infinite(a) & (a > 0.0)) | is_zero
    is_one = (is_real & (c == 0.0)) | (is_flat & (a == 1.0))
    real = jnp.where(is_one, 1.0, jnp.where(is_end, grown, scale * jnp.cos(turned)))
    return real, jnp.where(is_one | is_end, 0.0, scale * jnp.sin(turned))


def logistic(a: Array, b: Array) -> Parts:
    """1 / (1 + e^-x), the conjugate of the divisor over its squared size, both in units of its larger part.

    Where that is Inf, or its inverse too small for a float, the quotient is 0.
    """
    grown = jnp.exp(-a)
    c, d = grown * jnp.cos(-b) + 1.0, grown * jnp.sin(-b)
    unit = 1.0 / jnp.maximum(jnp.abs(c), jnp.abs(d))
    real, imag = c * unit, d * unit
    square = real * real + imag * imag
    is_over = is_infinite(c) | is_infinite(d) | (square == 0.0)
    return jnp.where(is_over, 0.0, real / square * unit), jnp.where(is_over, 0.0, -imag / square * unit)


EXACT: Mapping[str, Callable[..., Parts]] = {"tanh": tanh, "tan": tan}
"""By name, of parts, parts: those that XLA computes so, bit for bit."""

BOUNDED: Mapping[str, Callable[..., Parts]] = {
    "exponential_minus_one": expm1,
    "sine": sine,
    "cosine": cosine,
    "rsqrt": rsqrt,
    "power": power,
    "logistic": logistic,
}
"""By name, of parts, parts: those that XLA computes otherwise."""

EXPANDED = ("exponential", "log", "log_plus_one", "sqrt")
"""Those that jaxlib writes out: for XLA, too, so that they are its own bit for bit."""
