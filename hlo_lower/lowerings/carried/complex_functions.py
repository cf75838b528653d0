"""Functions of complex numbers by functions of their parts: within a bound, where the float mode allows one.

The exponential, the logarithms and the root are jaxlib's own (`stablehlo-complex-math-expander`); the others are the
definitions that XLA computes on a CPU.
"""

from collections.abc import Callable, Mapping

from hlo_lower.graph import Value
from hlo_lower.lowerings.carried.complex_arithmetic import Parts, divide, negate
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


def _halves_of_exponential(at: Parts, y: Value) -> Pair:
    """e^y / 2 and e^-y / 2."""
    grown = at.op("exponential", y)
    return at.op("multiply", at(0.5), grown), at.op("divide", at(0.5), grown)


def sine(at: Parts, x: Pair) -> Pair:
    """sin a cosh b + cos a sinh b i."""
    up, down = _halves_of_exponential(at, x[1])
    real = at.op("multiply", at.op("sine", x[0]), at.op("add", up, down))
    return real, at.op("multiply", at.op("cosine", x[0]), at.op("subtract", up, down))


def cosine(at: Parts, x: Pair) -> Pair:
    """cos a cosh b - sin a sinh b i."""
    up, down = _halves_of_exponential(at, x[1])
    real = at.op("multiply", at.op("cosine", x[0]), at.op("add", up, down))
    return real, at.op("negate", at.op("multiply", at.op("sine", x[0]), at.op("subtract", up, down)))


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
    """(a^2 + b^2)^(c/2) e^(-d t) (cos q + sin q i), t the angle of a + bi, q = c t + d/2 log(a^2 + b^2).

    0 to a real number from 0 on is 0, and to 0 it is 1.
    """
    (a, b), (c, d) = x, y
    square = at.op("add", at.op("multiply", a, a), at.op("multiply", b, b))
    angle = at.op("atan2", b, a)
    length = at.op("power", square, at.op("multiply", at(0.5), c))
    length = at.op("multiply", length, at.op("exponential", at.op("multiply", at.op("negate", d), angle)))
    turned = at.op("multiply", at.op("multiply", at(0.5), d), at.op("log", square))
    turned = at.op("add", at.op("multiply", c, angle), turned)
    is_zero = at.all(at.holds(square, "EQ", 0.0), at.holds(d, "EQ", 0.0), at.holds(c, "GE", 0.0))
    real = at.choose(is_zero, at.where(c, "EQ", 0.0, 1.0, 0.0), at.op("multiply", length, at.op("cosine", turned)))
    return real, at.choose(is_zero, 0.0, at.op("multiply", length, at.op("sine", turned)))


def cbrt(at: Parts, x: Pair) -> Pair:
    """The power 1/3."""
    return power(at, x, (at(1.0 / 3.0), at(0.0)))


def logistic(at: Parts, x: Pair) -> Pair:
    """1 / (1 + e^-x)."""
    a, b = negate(at, x)
    grown = at.op("exponential", a)
    real, imag = on_each((at.op("cosine", b), at.op("sine", b)), lambda part: at.op("multiply", grown, part))
    return divide(at, (at(1.0), at(0.0)), (at.op("add", real, 1.0), imag))


BOUNDED: Mapping[str, Callable[..., Pair]] = {
    "exponential_minus_one": expm1,
    "sine": sine,
    "cosine": cosine,
    "tanh": tanh,
    "tan": tan,
    "rsqrt": rsqrt,
    "power": power,
    "cbrt": cbrt,
    "logistic": logistic,
}
"""By name: of pairs, a pair."""

EXPANDED = ("exponential", "log", "log_plus_one", "sqrt")
"""Those that jaxlib writes out."""
