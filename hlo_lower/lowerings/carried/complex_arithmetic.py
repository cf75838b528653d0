"""Arithmetic of complex numbers on their real and imaginary parts, bit for bit as XLA computes it on a CPU.

Nothing is added to the definitions that XLA does not add, so that Inf, NaN and zeros of both signs come out alike.
"""

from collections.abc import Callable, Mapping

from hlo_lower.graph import Value
from hlo_lower.lowerings.carried.pairs import Pair, on_each
from hlo_lower.lowerings.float_ops import Floats


class Parts(Floats):
    """Builds on parts of one type and shape."""

    def all(self, *predicates: Value) -> Value:
        """Whether all of these hold."""
        return self._folded("and", predicates)

    def any(self, *predicates: Value) -> Value:
        """Whether one of these holds."""
        return self._folded("or", predicates)

    def _folded(self, op: str, predicates: tuple[Value, ...]) -> Value:
        found = predicates[0]
        for predicate in predicates[1:]:
            found = self.build.elementwise(op, found, predicate)
        return found

    def is_nan(self, x: Value) -> Value:
        """Whether a part is NaN."""
        return self.holds(x, "NE", x)

    def is_infinite(self, x: Value) -> Value:
        """Whether a part is Inf: no NaN, and its difference with itself is one. (Not all targets have the constant.)"""
        off = self.op("subtract", x, x)
        return self.all(self.holds(x, "EQ", x), self.is_nan(off))

    def is_finite(self, x: Value) -> Value:
        """Whether a part is a number."""
        return self.holds(self.op("subtract", x, x), "EQ", 0.0)

    def larger_ratio(self, x: Pair) -> tuple[Value, Value, Value]:
        """The larger and the smaller one of the sizes of two parts, and 1 + (smaller / larger)^2."""
        sizes = on_each(x, lambda part: self.op("abs", part))
        large, small = self.op("maximum", *sizes), self.op("minimum", *sizes)
        ratio = self.op("divide", small, large)
        return large, small, self.op("add", self(1.0), self.op("multiply", ratio, ratio))


def add(at: Parts, x: Pair, y: Pair) -> Pair:
    """By parts."""
    return at.op("add", x[0], y[0]), at.op("add", x[1], y[1])


def subtract(at: Parts, x: Pair, y: Pair) -> Pair:
    """By parts."""
    return at.op("subtract", x[0], y[0]), at.op("subtract", x[1], y[1])


def negate(at: Parts, x: Pair) -> Pair:
    """By parts."""
    return on_each(x, lambda part: at.op("negate", part))


def multiply(at: Parts, x: Pair, y: Pair) -> Pair:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, without a look at Inf, as XLA does it."""
    (a, b), (c, d) = x, y
    real = at.op("subtract", at.op("multiply", a, c), at.op("multiply", b, d))
    return real, at.op("add", at.op("multiply", a, d), at.op("multiply", b, c))


def divide(at: Parts, x: Pair, y: Pair) -> Pair:
    """The quotient by Smith's method, which divides by the larger part of the divisor c + di first.

        |c| < |d|:  r = c/d, n = d + rc:  (ra + b)/n + ((rb - a)/n)i
        else        r = d/c, n = c + rd:  (rb + a)/n + ((b - ra)/n)i

    Where both parts come out as NaN, annex G of C says what they are: by a zero, of Inf by a number, of a number by
    Inf. There a part that is Inf counts as 1 with its sign, and others as 0; times Inf is written as a quotient by 0.
    """
    (a, b), (c, d) = x, y
    is_steep = at.holds(at.op("abs", c), "LT", at.op("abs", d))
    found = _smith(at, is_steep, a, b, c, d)
    zero = at(0.0)
    by_zero = at.all(at.holds(c, "EQ", 0.0), at.holds(d, "EQ", 0.0), at.any(at.holds(a, "EQ", a), at.holds(b, "EQ", b)))
    signed = at.op("divide", at(1.0), c)  # Inf with the sign of c
    of_zero = at.op("multiply", signed, a), at.op("multiply", signed, b)
    is_large = at.any(at.is_infinite(a), at.is_infinite(b))
    is_over = at.any(at.is_infinite(c), at.is_infinite(d))
    of_infinite = at.all(is_large, at.is_finite(c), at.is_finite(d))
    by_infinite = at.all(is_over, at.is_finite(a), at.is_finite(b))
    boxed = on_each(x, lambda part: _boxed(at, part))
    large = on_each(_by_conjugate(at, boxed, y), lambda part: at.op("divide", part, zero))
    boxed = on_each(y, lambda part: _boxed(at, part))
    small = on_each(_by_conjugate(at, x, boxed), lambda part: at.op("multiply", zero, part))
    is_lost = at.all(at.is_nan(found[0]), at.is_nan(found[1]))

    def chosen(k: int) -> Value:
        special = at.choose(by_infinite, small[k], found[k])
        special = at.choose(of_infinite, large[k], special)
        return at.choose(is_lost, at.choose(by_zero, of_zero[k], special), found[k])

    return chosen(0), chosen(1)


def _smith(at: Parts, is_steep: Value, a: Value, b: Value, c: Value, d: Value) -> Pair:
    steep, flat = at.op("divide", c, d), at.op("divide", d, c)
    under_steep = at.op("add", d, at.op("multiply", steep, c))
    under_flat = at.op("add", c, at.op("multiply", flat, d))
    real = at.choose(
        is_steep,
        at.op("divide", at.op("add", at.op("multiply", steep, a), b), under_steep),
        at.op("divide", at.op("add", at.op("multiply", flat, b), a), under_flat),
    )
    imag = at.choose(
        is_steep,
        at.op("divide", at.op("subtract", at.op("multiply", steep, b), a), under_steep),
        at.op("divide", at.op("subtract", b, at.op("multiply", flat, a)), under_flat),
    )
    return real, imag


def _boxed(at: Parts, x: Value) -> Value:
    """1 with the sign of what is Inf, 0 with the sign of a number; of NaN 0."""
    one = at.where(x, "LT", 0.0, -1.0, 1.0)
    return at.choose(at.is_infinite(x), one, at.choose(at.is_nan(x), 0.0, at.op("multiply", x, 0.0)))


def _by_conjugate(at: Parts, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    real = at.op("add", at.op("multiply", a, c), at.op("multiply", b, d))
    return real, at.op("subtract", at.op("multiply", b, c), at.op("multiply", a, d))


def size(at: Parts, x: Pair) -> Value:
    """max sqrt(1 + (min / max)^2) of the sizes of the parts: no square overflows.

    Of zeros, of two Inf and of NaN that is NaN; then it is the smaller one.
    """
    large, small, square = at.larger_ratio(x)
    found = at.op("multiply", large, at.op("sqrt", square))
    return at.choose(at.is_nan(found), small, found)


def sign(at: Parts, x: Pair) -> Pair:
    """The number divided by its size; 0 of 0."""
    length = size(at, x)
    is_zero = at.holds(length, "EQ", 0.0)
    return on_each(x, lambda part: at.choose(is_zero, 0.0, at.op("divide", part, length)))


ARITHMETIC: Mapping[str, Callable[..., Pair]] = {
    "add": add,
    "subtract": subtract,
    "negate": negate,
    "multiply": multiply,
    "divide": divide,
    "sign": sign,
}
"""By name: of pairs, a pair."""
