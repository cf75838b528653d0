"""Functions of complex numbers by functions of their parts: as XLA computes them, or within a bound of the true number.

The exponential, the logarithms and the root are jaxlib's own (`stablehlo-complex-math-expander`). The others are within
4 units in the last place of the result's size, if the consumer's functions of the parts are within one; of a power
times |y log x|, of the others near a pole or a zero times what the function makes of a unit of its argument.
"""

from collections.abc import Callable, Mapping

from hlo_lower.graph import Value
from hlo_lower.lowerings.carried.complex_arithmetic import Parts, negate, size
from hlo_lower.lowerings.carried.pairs import Pair, on_each


def expm1(at: Parts, x: Pair) -> Pair:
    """(expm1(a) cos b + (cos b - 1)) + e^a sin b i, cos b - 1 = -2 sin^2(b/2); the imaginary part of a real is 0."""
    a, b = x
    less = at.op("exponential_minus_one", a)
    half = at.op("sine", at.op("multiply", b, 0.5))
    cosine_less = at.op("multiply", at.op("multiply", half, half), -2.0)
    real = at.op("add", at.op("multiply", less, at.op("add", cosine_less, 1.0)), cosine_less)
    imag = at.op("multiply", at.op("add", less, 1.0), at.op("sine", b))
    return real, at.where(b, "EQ", 0.0, 0.0, imag)


def _hyperbolic(at: Parts, y: Value) -> Pair:
    """sinh y and cosh y: with m = expm1 |y| they are m (1 + 1/(m + 1)) / 2 and that with the sums the other way round.

    No digits are lost near 0, as they are in (e^y - e^-y) / 2. Where e^|y| overflows both are Inf.
    """
    grown = at.op("exponential_minus_one", at.op("abs", y))
    inverse = at.op("divide", at(1.0), at.op("add", grown, 1.0))
    sinh = at.op("multiply", at.op("multiply", grown, 0.5), at.op("add", inverse, 1.0))
    cosh = at.op("multiply", at.op("add", at.op("add", grown, 1.0), inverse), 0.5)
    signed = at.where(y, "LT", 0.0, at.op("negate", sinh), sinh)
    return at.where(y, "EQ", 0.0, y, signed), cosh


def sine(at: Parts, x: Pair) -> Pair:
    """sin a cosh b + cos a sinh b i."""
    sinh, cosh = _hyperbolic(at, x[1])
    return at.op("multiply", at.op("sine", x[0]), cosh), at.op("multiply", at.op("cosine", x[0]), sinh)


def cosine(at: Parts, x: Pair) -> Pair:
    """cos a cosh b - sin a sinh b i."""
    sinh, cosh = _hyperbolic(at, x[1])
    imag = at.op("multiply", at.op("sine", x[0]), sinh)
    return at.op("multiply", at.op("cosine", x[0]), cosh), at.op("negate", imag)


def tanh(at: Parts, x: Pair) -> Pair:
    """((e^2a - e^-2a) + 2 sin 2b i) / (e^2a + e^-2a + 2 cos 2b), by expm1, as it loses digits near 0.

    Where e^2a overflows the real part is 1 with the sign of a. Of b that is Inf or NaN the real part is NaN, but of a
    that is Inf; the imaginary part is 0 where b is, or where a is Inf and b has no sine.
    """
    a, b = x
    twice = at.op("add", a, a)
    grown, shrunk = (at.op("exponential_minus_one", value) for value in (twice, at.op("negate", twice)))
    sin_b, cos_b = at.op("sine", b), at.op("cosine", b)
    over = at.op("multiply", at(4.0), at.op("multiply", cos_b, sin_b))
    summed = at.op("add", grown, shrunk)
    under = at.op("add", summed, at.op("multiply", at.op("multiply", cos_b, cos_b), 4.0))
    limit = at.where(a, "LT", 0.0, -1.0, 1.0)
    real = at.op("divide", at.op("subtract", grown, shrunk), under)
    real = at.choose(at.is_infinite(summed), limit, real)
    has_no_sine, is_end = at.is_nan(over), at.is_infinite(a)
    nan = at.op("subtract", over, over)
    is_lost = at.all(has_no_sine, at.any(at.is_finite(a), at.is_nan(a)))
    is_zero = at.any(at.holds(b, "EQ", 0.0), at.all(is_end, has_no_sine))
    return at.choose(is_lost, nan, real), at.choose(is_zero, 0.0, at.op("divide", over, under))


def tan(at: Parts, x: Pair) -> Pair:
    """-i tanh(ix)."""
    real, imag = tanh(at, (at.op("negate", x[1]), x[0]))
    return imag, at.op("negate", real)


def rsqrt(at: Parts, x: Pair) -> Pair:
    """|x|^(-1/2) at minus half the angle; of 0 Inf and NaN, of Inf 0 with the signs of the parts."""
    a, b = x
    large, small, square = at.larger_ratio(x)
    length = at.op("multiply", at.op("rsqrt", large), at.op("rsqrt", at.op("sqrt", square)))
    length = at.choose(at.is_nan(length), at.op("rsqrt", small), length)
    angle = at.op("multiply", at.op("atan2", b, a), -0.5)
    is_zero = at.all(at.holds(a, "EQ", 0.0), at.holds(b, "EQ", 0.0))
    is_end = at.any(at.is_infinite(a), at.all(at.is_infinite(b), at.is_nan(a)))
    real = at.choose(is_end, _zero_of_sign(at, a), at.op("multiply", length, at.op("cosine", angle)))
    imag = at.choose(is_end, at.op("negate", _zero_of_sign(at, b)), at.op("multiply", length, at.op("sine", angle)))
    zero = at(0.0)
    return at.choose(is_zero, at.op("divide", at(1.0), zero), real), at.choose(
        is_zero, at.op("divide", zero, zero), imag
    )


def _zero_of_sign(at: Parts, x: Value) -> Value:
    """0 with the sign of a part."""
    signed = at.where(x, "EQ", 0.0, x, 0.0)
    return at.where(x, "LT", 0.0, -0.0, signed)


def power(at: Parts, x: Pair, y: Pair) -> Pair:
    """r^c e^(-d t) (cos q + sin q i), r and t the size and the angle of x, y = c + di, q = c t + d log r.

    Anything to 0 is 1, 1 to anything is 1; a real power of 0 or of Inf is 0 or Inf.
    """
    (a, b), (c, d) = x, y
    length, angle = size(at, x), at.op("atan2", b, a)
    scale = at.op(
        "multiply", at.op("power", length, c), at.op("exponential", at.op("multiply", at.op("negate", d), angle))
    )
    turned = at.op("add", at.op("multiply", c, angle), at.op("multiply", d, at.op("log", length)))
    is_real, is_flat = at.holds(d, "EQ", 0.0), at.holds(b, "EQ", 0.0)
    is_end = at.all(
        is_real,
        at.any(at.holds(c, "LT", 0.0), at.holds(c, "GT", 0.0)),
        is_flat,
        at.is_infinite(a),
        at.holds(a, "GT", 0.0),
    )
    is_one = at.any(at.all(is_real, at.holds(c, "EQ", 0.0)), at.all(is_flat, at.holds(a, "EQ", 1.0)))
    is_zero = at.all(is_real, at.holds(length, "EQ", 0.0), at.holds(c, "GT", 0.0))
    is_end, parts = at.any(is_end, is_zero), (at.op("cosine", turned), at.op("sine", turned))
    real, imag = on_each(parts, lambda part: at.op("multiply", scale, part))
    real = at.choose(is_one, 1.0, at.choose(is_end, at.op("power", length, c), real))
    return real, at.choose(at.any(is_one, is_end), 0.0, imag)


def logistic(at: Parts, x: Pair) -> Pair:
    """1 / (1 + e^-x), the conjugate of the divisor over its squared size, both in units of its larger part.

    Where that is Inf, or its inverse too small for a float, the quotient is 0.
    """
    a, b = negate(at, x)
    grown = at.op("exponential", a)
    real, imag = on_each((at.op("cosine", b), at.op("sine", b)), lambda part: at.op("multiply", grown, part))
    divisor = at.op("add", real, 1.0), imag
    large = at.op("maximum", *on_each(divisor, lambda part: at.op("abs", part)))
    unit = at.op("divide", at(1.0), large)
    real, imag = on_each(divisor, lambda part: at.op("multiply", part, unit))
    square = at.op("add", at.op("multiply", real, real), at.op("multiply", imag, imag))
    scaled = on_each((real, at.op("negate", imag)), lambda part: at.op("multiply", at.op("divide", part, square), unit))
    is_over = at.any(*on_each(divisor, at.is_infinite), at.holds(square, "EQ", 0.0))
    return on_each(scaled, lambda part: at.choose(is_over, 0.0, part))


EXACT: Mapping[str, Callable[..., Pair]] = {"tanh": tanh, "tan": tan}
"""By name, of a pair, a pair: those that XLA computes so, bit for bit."""

BOUNDED: Mapping[str, Callable[..., Pair]] = {
    "exponential_minus_one": expm1,
    "sine": sine,
    "cosine": cosine,
    "rsqrt": rsqrt,
    "power": power,
    "logistic": logistic,
}
"""By name, of pairs, a pair: those that XLA computes otherwise."""

EXPANDED = ("exponential", "log", "log_plus_one", "sqrt")
"""Those that jaxlib writes out: for XLA, too, so that they are its own bit for bit."""
