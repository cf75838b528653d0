"""Elementwise ops of floats out of plainer ones: exact ones bit for bit, functions within a bound where it is allowed.

Bounds are in units in the last place of the true result, if the consumer's own exponential, logarithm, power, sine and
cosine are within one.
"""

from collections.abc import Sequence
from math import factorial

from hlo_lower.graph import Value
from hlo_lower.lowerings.plain_op import PLAIN, Elements, Elementwise, Numbers, PlainLowering, PlainOp
from hlo_lower.registry import DoesNotApply, RuleList

FLOAT, BOUNDED = {Elements.FLOAT}, {Numbers.BOUNDED}

rules = RuleList()


class Floats(Elementwise):
    """On floats."""

    def __call__(self, value: float) -> Value:
        """A constant."""
        return self.build.float_splat(value, self.shape, self.element)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """By Horner's scheme, the highest coefficient first."""
        found = self(coefficients[0])
        for coefficient in coefficients[1:]:
            found = self.op("add", self.op("multiply", found, x), coefficient)
        return found


# --- exact ---


@rules.lowers(PLAIN, named={PlainOp.ROUND_AFZ}, elements=FLOAT, form="floor(|x|), one more from a half on, x's sign")
def round_afz_to_floor(op: PlainLowering) -> Sequence[Value]:
    """Round halves away from zero.

        t = floor(|x|);  r = |x| - t >= 1/2 ? t + 1 : t;  r == |x| ? x : (x < 0 ? -r : r)

    Equal, bit for bit: |x| - t is exact, so nothing is rounded but by what is asked. What is whole already comes back
    itself: zeros of both signs and infinities.
    """
    return [_rounded(op, is_even=False)]


@rules.lowers(PLAIN, named={PlainOp.ROUND_EVEN}, elements=FLOAT, form="the same, a half to the even neighbour")
def round_even_to_floor(op: PlainLowering) -> Sequence[Value]:
    """Round halves to even.

        t = floor(|x|);  h = |x| - t;  up = h > 1/2 or (h == 1/2 and t - 2 floor(t / 2) == 1)

    Equal, bit for bit: t / 2 and the differences are exact.
    """
    return [_rounded(op, is_even=True)]


def _rounded(op: PlainLowering, *, is_even: bool) -> Value:
    x = op.node.operand(0)
    at = Floats(op.build, x)
    size = at.op("abs", x)
    low = at.op("floor", size)
    rest, above = at.op("subtract", size, low), at.op("add", low, 1.0)
    if is_even:
        half = at.op("floor", at.op("multiply", low, 0.5))
        is_odd = at.op("subtract", low, at.op("add", half, half))
        tied = at.where(is_odd, "EQ", 1.0, above, low)
        found = at.where(rest, "GT", 0.5, above, at.where(rest, "EQ", 0.5, tied, low))
    else:
        found = at.where(rest, "GE", 0.5, above, low)
    signed = at.where(x, "LT", 0.0, at.op("negate", found), found)
    return at.where(found, "EQ", size, x, signed)


@rules.lowers(PLAIN, named={PlainOp.IS_FINITE}, elements=FLOAT, form="x - x == 0")
def is_finite_to_subtract(op: PlainLowering) -> Sequence[Value]:
    """Subtract it from itself. Equal: that is 0 for numbers, NaN for NaN and infinities, and NaN is not equal to 0."""
    x = op.node.operand(0)
    at = Floats(op.build, x)
    return [op.build.compare(at.op("subtract", x, x), "EQ", at(0.0))]


@rules.lowers(PLAIN, named={PlainOp.SIGN}, elements=FLOAT, form="1 above 0, -1 below, else x")
def float_sign_to_select(op: PlainLowering) -> Sequence[Value]:
    """Compare with zero. Equal: zeros of both signs and NaN come back themselves."""
    x = op.node.operand(0)
    at = Floats(op.build, x)
    return [at.where(x, "GT", 0.0, 1.0, at.where(x, "LT", 0.0, -1.0, x))]


# --- within a bound ---


@rules.lowers(PLAIN, named={PlainOp.LOGISTIC}, elements=FLOAT, numbers=BOUNDED, form="1 / (1 + exp(-x)), within 4 ulp")
def logistic_to_exponential(op: PlainLowering) -> Sequence[Value]:
    """Write it out. Within 4 units in the last place; where exp(-x) overflows, 0."""
    x = op.node.operand(0)
    at = Floats(op.build, x)
    return [at.op("divide", at(1.0), at.op("add", at.op("exponential", at.op("negate", x)), 1.0))]


@rules.lowers(PLAIN, named={PlainOp.TAN}, elements=FLOAT, numbers=BOUNDED, form="sin / cos, within 4 ulp")
def tan_to_sine(op: PlainLowering) -> Sequence[Value]:
    """Divide the sine by the cosine. Within 4 units in the last place."""
    x = op.node.operand(0)
    at = Floats(op.build, x)
    return [at.op("divide", at.op("sine", x), at.op("cosine", x))]


@rules.lowers(
    PLAIN, named={PlainOp.LOG1P}, elements=FLOAT, numbers=BOUNDED, form="log(1 + x), near 0 a series, within 4 ulp"
)
def log1p_to_log(op: PlainLowering) -> Sequence[Value]:
    """Near zero the series of the inverse hyperbolic tangent, elsewhere the logarithm.

        |x| < 0.29 ? 2 s (1 + s^2 / 3 + s^4 / 5 + ...), s = x / (2 + x) : log(1 + x)

    Within 4 units in the last place: there |s| is below 0.171, so what is left out is less than half a unit; elsewhere
    the rounding of 1 + x is that of a logarithm of 0.25 and more. (That log(u) x / (u - 1) corrects for the rounding is
    not used: XLA makes log(1 + x) exact, and then it does the opposite.)
    """
    x = op.node.operand(0)
    if x.element_type == "f64":
        raise DoesNotApply("its series is for f32 and narrower types")
    at = Floats(op.build, x)
    s = at.op("divide", x, at.op("add", x, 2.0))
    terms = [2.0 / (2 * k + 1) for k in reversed(range(1, 8))]
    square = at.op("multiply", s, s)
    series = at.op("add", at.op("multiply", at.op("multiply", at.polynomial(square, terms), square), s), s)
    near = at.op("add", series, s)
    return [at.where(at.op("abs", x), "LT", 0.29, near, at.op("log", at.op("add", x, 1.0)))]


@rules.lowers(
    PLAIN, named={PlainOp.EXPM1}, elements=FLOAT, numbers=BOUNDED, form="exp(x) - 1, near 0 a series, within 6 ulp"
)
def expm1_to_exponential(op: PlainLowering) -> Sequence[Value]:
    """Near zero the series, elsewhere the exponential less one.

        |x| < 0.35 ? x + x^2 (1 / 2! + x / 3! + x^2 / 4! + ...) : exp(x) - 1

    Within 6 units in the last place: what is left out of the series is less than half a unit there, and elsewhere the
    difference is at least 0.29, so that the exponential's rounding is at most four of its units.
    """
    x = op.node.operand(0)
    at = Floats(op.build, x)
    terms = [1.0 / factorial(k) for k in reversed(range(2, (14 if x.element_type == "f64" else 8) + 2))]
    near = at.op("add", x, at.op("multiply", at.op("multiply", x, x), at.polynomial(x, terms)))
    less = at.op("subtract", at.op("exponential", x), 1.0)
    return [at.where(x, "EQ", 0.0, x, at.where(at.op("abs", x), "LT", 0.35, near, less))]


@rules.lowers(PLAIN, named={PlainOp.CBRT}, elements=FLOAT, numbers=BOUNDED, form="|x| ^ (1/3), a step, within 4 ulp")
def cbrt_to_power(op: PlainLowering) -> Sequence[Value]:
    """Take the power, and one step of Newton's method.

        y = |x| ^ (1/3);  y - (y - |x| / y^2) / 3;  x's sign

    Within 4 units in the last place. Zeros and infinities come back themselves.
    """
    x = op.node.operand(0)
    at = Floats(op.build, x)
    size = at.op("abs", x)
    y = at.op("power", size, 1.0 / 3.0)
    off = at.op("subtract", y, at.op("divide", at.op("divide", size, y), y))
    better = at.op("subtract", y, at.op("divide", off, 3.0))
    signed = at.where(x, "LT", 0.0, at.op("negate", better), better)
    return [at.where(at.op("subtract", better, better), "EQ", 0.0, signed, x)]


ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
"""Of S. Moshier's Cephes, for (atan(x) - x) / x^3 in x^2 on |x| <= tan(pi/8), the highest first."""

PI = 3.141592653589793


@rules.lowers(PLAIN, named={PlainOp.ATAN2}, elements=FLOAT, numbers=BOUNDED, form="a polynomial of y / x, within 6 ulp")
def atan2_to_polynomial(op: PlainLowering) -> Sequence[Value]:
    """The angle of the smaller of |y| and |x| over the larger one, below pi/8 by a polynomial, and the octant.

    Within 6 units in the last place of f32: the polynomial is of f32, so wider types are no better. Signs of zeros, and
    infinities, are those of the op.
    """
    y, x = op.node.operands
    if y.element_type == "f64":
        raise DoesNotApply("its polynomial is of f32")
    build, at = op.build, Floats(op.build, op.node.operand(0))
    ay, ax = at.op("abs", y), at.op("abs", x)
    low, high = at.op("minimum", ay, ax), at.op("maximum", ay, ax)
    ratio = at.op("divide", low, high)
    ratio = at.where(high, "EQ", 0.0, 0.0, at.where(low, "EQ", high, 1.0, ratio))
    is_far = build.compare(ratio, "GT", at(0.4142135623730950))
    turned = at.op("divide", at.op("subtract", ratio, 1.0), at.op("add", ratio, 1.0))
    t = build.select(is_far, turned, ratio)
    square = at.op("multiply", t, t)
    angle = at.op("add", at.op("multiply", at.op("multiply", at.polynomial(square, ATAN), square), t), t)
    angle = build.select(is_far, at.op("add", angle, PI / 4), angle)
    angle = at.where(ay, "GT", ax, at.op("subtract", at(PI / 2), angle), angle)
    # 1 / -0 is below 0, too.
    is_left = build.compare(at.op("divide", at(1.0), x), "LT", at(0.0))
    is_left = build.elementwise("or", is_left, build.compare(x, "LT", at(0.0)))
    angle = build.select(is_left, at.op("subtract", at(PI), angle), angle)
    is_down = build.compare(at.op("divide", at(1.0), y), "LT", at(0.0))
    is_down = build.elementwise("or", is_down, build.compare(y, "LT", at(0.0)))
    angle = build.select(is_down, at.op("negate", angle), angle)
    joined = at.op("add", x, y)  # NaN if one is NaN; so is inf - inf, which is none here
    is_nan = build.elementwise("or", build.compare(x, "NE", x), build.compare(y, "NE", y))
    return [build.select(is_nan, joined, angle)]
