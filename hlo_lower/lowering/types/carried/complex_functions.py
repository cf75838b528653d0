"""Arithmetic of complex numbers on their real and imaginary parts, bit for bit as XLA computes it on a CPU.

Nothing is added to the definitions that XLA does not add, so that Inf, NaN and zeros of both signs come out alike. The
functions are of scalars, the parts a + bi and c + di (`hlo_lower.lowering.engine.traced`).
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array, lax

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
    large, small = (
        _by_conjugate(_box_infinity(a), _box_infinity(b), c, d),
        _by_conjugate(a, b, _box_infinity(c), _box_infinity(d)),
    )
    is_lost = is_nan(found[0]) & is_nan(found[1])

    def select_part(k: int) -> Array:
        special = jnp.where(by_infinite, 0.0 * small[k], found[k])
        special = jnp.where(of_infinite, large[k] / 0.0, special)
        return jnp.where(is_lost, jnp.where(by_zero, signed * (a, b)[k], special), found[k])

    return select_part(0), select_part(1)


def smith(is_steep: Array, a: Array, b: Array, c: Array, d: Array) -> Parts:
    """The quotient, divided by the imaginary part first where it is steep."""
    steep, flat = c / d, d / c
    under_steep, under_flat = d + steep * c, c + flat * d
    real = jnp.where(is_steep, (steep * a + b) / under_steep, (flat * b + a) / under_flat)
    return real, jnp.where(is_steep, (steep * b - a) / under_steep, (b - flat * a) / under_flat)


def _box_infinity(x: Array) -> Array:
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


# --- functions of complex numbers by functions of their parts ---
#
# As XLA computes them, or within a bound of the true number.
#
# The exponential, the logarithms and the root are jaxlib's own (`stablehlo-complex-math-expander`). The others are
# within 4 units in the last place of the result's size, if the consumer's functions of the parts are within one; of a
# power times |y log x|, of the others near a pole or a zero times what the function makes of a unit of its argument.


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
