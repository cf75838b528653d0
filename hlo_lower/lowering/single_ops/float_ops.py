"""Elementwise ops of floats out of plainer ones: exact ones bit for bit, functions within a bound where it is allowed.

Bounds are in units in the last place of the true result, if the consumer's own exponential, logarithm, power, sine and
cosine are within one.
"""

from collections.abc import Sequence
from math import factorial, pi

import jax.numpy as jnp
from jax import Array

from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.lowering.engine.traced import of_elements
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainOp

FLOAT, BOUNDED = {Elements.FLOAT}, {Numbers.BOUNDED}

rules = RuleList()


# --- exact ---


@rules.lowers(PLAIN, named={PlainOp.ROUND_AFZ}, elements=FLOAT, form="floor(|x|), one more from a half on, x's sign")
@of_elements
def round_afz_to_floor(x: Array) -> Array:
    """Round halves away from zero.

        t = floor(|x|);  r = |x| - t >= 1/2 ? t + 1 : t;  r == |x| ? x : (x < 0 ? -r : r)

    Equal, bit for bit: |x| - t is exact, so nothing is rounded but by what is asked. What is whole already comes back
    itself: zeros of both signs and infinities.
    """
    size = jnp.abs(x)
    low = jnp.floor(size)
    rest, above = size - low, low + 1.0
    return _with_sign(x, size, jnp.where(rest >= 0.5, above, low))


@rules.lowers(PLAIN, named={PlainOp.ROUND_EVEN}, elements=FLOAT, form="the same, a half to the even neighbour")
@of_elements
def round_even_to_floor(x: Array) -> Array:
    """Round halves to even.

        t = floor(|x|);  h = |x| - t;  up = h > 1/2 or (h == 1/2 and t - 2 floor(t / 2) == 1)

    Equal, bit for bit: t / 2 and the differences are exact.
    """
    size = jnp.abs(x)
    low = jnp.floor(size)
    rest, above, half = size - low, low + 1.0, jnp.floor(low * 0.5)
    tied = jnp.where(low - (half + half) == 1.0, above, low)
    return _with_sign(x, size, jnp.where(rest > 0.5, above, jnp.where(rest == 0.5, tied, low)))


def _with_sign(x: Array, size: Array, found: Array) -> Array:
    """What was found of the size of a number, with its sign; the number itself where it is that."""
    return jnp.where(found == size, x, jnp.where(x < 0.0, -found, found))


@rules.lowers(PLAIN, named={PlainOp.IS_FINITE}, elements=FLOAT, form="x - x == 0")
@of_elements
def is_finite_to_subtract(x: Array) -> Array:
    """Subtract it from itself. Equal: that is 0 for numbers, NaN for NaN and infinities, and NaN is not equal to 0."""
    return x - x == 0.0


@rules.lowers(PLAIN, named={PlainOp.SIGN}, elements=FLOAT, form="1 above 0, -1 below, else x")
@of_elements
def float_sign_to_select(x: Array) -> Array:
    """Compare with zero. Equal: zeros of both signs and NaN come back themselves."""
    return jnp.where(x > 0.0, 1.0, jnp.where(x < 0.0, -1.0, x))


# --- within a bound ---


@rules.lowers(PLAIN, named={PlainOp.LOGISTIC}, elements=FLOAT, numbers=BOUNDED, form="1 / (1 + exp(-x)), within 4 ulp")
@of_elements
def logistic_to_exponential(x: Array) -> Array:
    """Write it out. Within 4 units in the last place; where exp(-x) overflows, 0."""
    return 1.0 / (jnp.exp(-x) + 1.0)


@rules.lowers(PLAIN, named={PlainOp.TAN}, elements=FLOAT, numbers=BOUNDED, form="sin / cos, within 4 ulp")
@of_elements
def tan_to_sine(x: Array) -> Array:
    """Divide the sine by the cosine. Within 4 units in the last place."""
    return jnp.sin(x) / jnp.cos(x)


@rules.lowers(
    PLAIN, named={PlainOp.LOG1P}, elements=FLOAT, numbers=BOUNDED, form="log(1 + x), near 0 a series, within 4 ulp"
)
@of_elements
def log1p_to_log(x: Array) -> Array:
    """Near zero the series of the inverse hyperbolic tangent, elsewhere the logarithm.

        |x| < 0.29 ? 2 s (1 + s^2 / 3 + s^4 / 5 + ...), s = x / (2 + x) : log(1 + x)

    Within 4 units in the last place: there |s| is below 0.171, so what is left out is less than half a unit; elsewhere
    the rounding of 1 + x is that of a logarithm of 0.25 and more. (That log(u) x / (u - 1) corrects for the rounding is
    not used: XLA makes log(1 + x) exact, and then it does the opposite.)
    """
    if x.dtype == jnp.float64:
        raise DoesNotApply("its series is for f32 and narrower types")
    s = x / (x + 2.0)
    square = s * s
    series = _polynomial(square, [2.0 / (2 * k + 1) for k in reversed(range(1, 8))])
    near = series * square * s + s + s
    return jnp.where(jnp.abs(x) < 0.29, near, jnp.log(x + 1.0))


@rules.lowers(
    PLAIN, named={PlainOp.EXPM1}, elements=FLOAT, numbers=BOUNDED, form="exp(x) - 1, near 0 a series, within 6 ulp"
)
@of_elements
def expm1_to_exponential(x: Array) -> Array:
    """Near zero the series, elsewhere the exponential less one.

        |x| < 0.35 ? x + x^2 (1 / 2! + x / 3! + x^2 / 4! + ...) : exp(x) - 1

    Within 6 units in the last place: what is left out of the series is less than half a unit there, and elsewhere the
    difference is at least 0.29, so that the exponential's rounding is at most four of its units.
    """
    terms = [1.0 / factorial(k) for k in reversed(range(2, (14 if x.dtype == jnp.float64 else 8) + 2))]
    near = x + x * x * _polynomial(x, terms)
    return jnp.where(x == 0.0, x, jnp.where(jnp.abs(x) < 0.35, near, jnp.exp(x) - 1.0))


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """By Horner's scheme, the highest coefficient first."""
    found = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        found = (found + coefficient) * x
    return found + coefficients[-1]


@rules.lowers(PLAIN, named={PlainOp.CBRT}, elements=FLOAT, numbers=BOUNDED, form="|x| ^ (1/3), a step, within 4 ulp")
@of_elements
def cbrt_to_power(x: Array) -> Array:
    """Take the power, and one step of Newton's method.

        y = |x| ^ (1/3);  y - (y - |x| / y^2) / 3;  x's sign

    Within 4 units in the last place. Zeros and infinities come back themselves.
    """
    size = jnp.abs(x)
    y = size ** (1.0 / 3.0)
    better = y - (y - size / y / y) / 3.0
    signed = jnp.where(x < 0.0, -better, better)
    return jnp.where(better - better == 0.0, signed, x)


ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
"""Of S. Moshier's Cephes, for (atan(x) - x) / x^3 in x^2 on |x| <= tan(pi/8), the highest first."""


@rules.lowers(PLAIN, named={PlainOp.ATAN2}, elements=FLOAT, numbers=BOUNDED, form="a polynomial of y / x, within 6 ulp")
@of_elements
def atan2_to_polynomial(y: Array, x: Array) -> Array:
    """The angle of the smaller of |y| and |x| over the larger one, below pi/8 by a polynomial, and the octant.

    Within 6 units in the last place of f32: the polynomial is of f32, so wider types are no better. Signs of zeros, and
    infinities, are those of the op.
    """
    if y.dtype == jnp.float64:
        raise DoesNotApply("its polynomial is of f32")
    ay, ax = jnp.abs(y), jnp.abs(x)
    low, high = jnp.minimum(ay, ax), jnp.maximum(ay, ax)
    ratio = jnp.where(high == 0.0, 0.0, jnp.where(low == high, 1.0, low / high))
    is_far = ratio > 0.4142135623730950
    t = jnp.where(is_far, (ratio - 1.0) / (ratio + 1.0), ratio)
    square = t * t
    angle = _polynomial(square, ATAN) * square * t + t
    angle = jnp.where(is_far, angle + pi / 4, angle)
    angle = jnp.where(ay > ax, pi / 2 - angle, angle)
    # 1 / -0 is below 0, too.
    angle = jnp.where((1.0 / x < 0.0) | (x < 0.0), pi - angle, angle)
    angle = jnp.where((1.0 / y < 0.0) | (y < 0.0), -angle, angle)
    # The sum is NaN if one is NaN; so is inf - inf, which is none here.
    return jnp.where((x != x) | (y != y), x + y, angle)
