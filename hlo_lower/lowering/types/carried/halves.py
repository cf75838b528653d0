"""Arithmetic of 64-bit integers on their halves: sums with carries, products of parts of 16 bits, order, shifts by
what is known.

A number is two signed integers of 32 bits along a last dim, the lower bits first; both are read modulo 2^32, the upper
one with the number's sign.
"""

from hlo_lower.ir.view import Value
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.pairs import Pair
from hlo_lower.lowering.types.carried.written_ops import half_of
from hlo_lower.ops.names import SHIFT_RIGHT_LOGICAL

HALF = "i32"


def _one_where(c: Carrying, predicate: Value, like: Value) -> Value:
    return c.choose(predicate, 1, c.number(0, like))


def _is_below(c: Carrying, left: Value, right: Value) -> Value:
    """Whether a half is below another one, both without sign."""
    return c.holds(c.flip(left), "LT", c.flip(right))


def add(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The sum: the lower halves carry where their sum is below one of them."""
    low = c.add(x[0], y[0])
    carry = _one_where(c, _is_below(c, low, x[0]), low)
    return low, c.add(c.add(x[1], y[1]), carry)


def subtract(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The difference: the lower halves borrow where the first one is below the second."""
    low = c.subtract(x[0], y[0])
    borrow = _one_where(c, _is_below(c, x[0], y[0]), low)
    return low, c.subtract(c.subtract(x[1], y[1]), borrow)


def negate(c: Carrying, x: Pair) -> Pair:
    """0 less the number."""
    zero = c.number(0, x[0])
    return subtract(c, (zero, zero), x)


def multiply(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The product modulo 2^64: that of the lower halves in full, and the lower bits of the mixed ones.

    With x0 = a + 2^16 b and y0 = d + 2^16 e: t = b d + (a d) / 2^16 and u = a e + (t mod 2^16) are below 2^32, and the
    upper half of x0 y0 is b e + t / 2^16 + u / 2^16.
    """
    (a, b), (d, e) = (sixteen(c, x[0]), sixteen(c, y[0]))
    low_times_low = sixteen(c, c.multiply(a, d))
    t = sixteen(c, c.add(c.multiply(b, d), low_times_low[1]))
    u = sixteen(c, c.add(c.multiply(a, e), t[0]))
    upper = c.add(c.add(c.multiply(b, e), t[1]), u[1])
    mixed = c.add(c.multiply(x[0], y[1]), c.multiply(x[1], y[0]))
    return c.multiply(x[0], y[0]), c.add(upper, mixed)


def sixteen(c: Carrying, x: Value) -> Pair:
    """The lower and the upper 16 bits of a half."""
    upper = right(c, x, 16)
    return c.subtract(x, left(c, upper, 16)), upper


def left(c: Carrying, x: Value, count: int) -> Value:
    """A half times 2^count modulo 2^32, count below 32."""
    factor = 1 << count if count < 31 else -(1 << 31)
    return x if not count else c.multiply(x, factor)


def right(c: Carrying, x: Value, count: int) -> Value:
    """A half without sign, divided by 2^count, count below 32."""
    if not count:
        return x
    if c.takes("shift_right_logical", HALF):
        return c.do(SHIFT_RIGHT_LOGICAL, x, count)
    half = half_of(c, x)
    return half if count == 1 else c.divide(half, 1 << count - 1)


def shift_left(c: Carrying, x: Pair, count: int) -> Pair:
    """The number times 2^count: what leaves the lower half enters the upper one, no bits of which meet."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return zero, left(c, x[0], count - 32)
    moved = left(c, x[1], count)
    return left(c, x[0], count), moved if not count else c.add(moved, right(c, x[0], 32 - count))


def shift_right_logical(c: Carrying, x: Pair, count: int) -> Pair:
    """The number without sign divided by 2^count: what leaves the upper half enters the lower one."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return right(c, x[1], count - 32), zero
    moved = right(c, x[0], count)
    return moved if not count else c.add(moved, left(c, x[1], 32 - count)), right(c, x[1], count)


def shift_right_arithmetic(c: Carrying, x: Pair, count: int) -> Pair:
    """The number divided by 2^count, rounded down: the upper half's sign moves in."""
    sign = sign_of(c, x[1])
    if count >= 64:
        return sign, sign
    if count >= 32:
        return _right_signed(c, x[1], sign, count - 32), sign
    moved = right(c, x[0], count)
    moved = moved if not count else c.add(moved, left(c, x[1], 32 - count))
    return moved, _right_signed(c, x[1], sign, count)


def size(c: Carrying, x: Pair) -> Pair:
    """The size of a signed number, without sign: of the least one 2^63."""
    return choose(c, c.holds(x[1], "LT", 0), negate(c, x), x)


def sign_of(c: Carrying, x: Value) -> Value:
    """-1 where a half is negative, else 0."""
    return c.choose(c.holds(x, "LT", 0), -1, c.number(0, x))


def _right_signed(c: Carrying, x: Value, sign: Value, count: int) -> Value:
    """A half divided by 2^count, rounded down: where it is negative the bits that move in are ones."""
    if not count:
        return x
    return c.add(right(c, x, count), left(c, sign, 32 - count))


def choose(c: Carrying, predicate: Value, on_true: Pair, on_false: Pair) -> Pair:
    """An elementwise choice."""
    return c.choose(predicate, on_true[0], on_false[0]), c.choose(predicate, on_true[1], on_false[1])


def is_less(c: Carrying, x: Pair, y: Pair, *, unsigned: bool, direction: str = "LT") -> Value:
    """An order of numbers: the lower halves, without sign, decide where the upper ones are equal; else these do."""
    upper = (c.flip(x[1]), c.flip(y[1])) if unsigned else (x[1], y[1])
    lower_says = c.holds(c.flip(x[0]), direction, c.flip(y[0]))
    return c.build.select(c.holds(x[1], "EQ", y[1]), lower_says, c.holds(upper[0], direction, upper[1]))
