"""Quotients and remainders of 64-bit integers on their halves: long division, by digits where the divisor is small."""

from collections.abc import Sequence

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.halves import HALF, choose, is_less, left, negate, right, sixteen, size, subtract
from hlo_lower.lowering.types.carried.pairs import Pair
from hlo_lower.ops.names import BROADCAST_IN_DIM, RESHAPE, SLICE

STEPS = 64


def divide(c: Carrying, unsigned: bool, x: Pair, d: Pair) -> Pair:
    """The quotient, towards zero; by 0 all ones, and of the least number by -1 that number, as XLA gives.

    Equal: the quotient of the sizes, with the sign of the product. The size of the least number is 2^63 without sign,
    which divided by 1 is that, and read with a sign the least number again.
    """
    if unsigned:
        return _parts(c, x, d)[0]
    quotient, _ = _parts(c, size(c, x), size(c, d))
    differs = c.multiply(_one_if_negative(c, x), _one_if_negative(c, d))
    negative = c.holds(differs, "LT", 0)
    ones = c.number(-1, x[0])
    is_zero = c.build.select(c.holds(d[0], "EQ", 0), c.holds(d[1], "EQ", 0), c.holds(d[0], "EQ", 0))
    return choose(c, is_zero, (ones, ones), choose(c, negative, negate(c, quotient), quotient))


def remainder(c: Carrying, unsigned: bool, x: Pair, d: Pair) -> Pair:
    """What is left, with the sign of the dividend; by 0 the dividend."""
    if unsigned:
        return _parts(c, x, d)[1]
    _, rest = _parts(c, size(c, x), size(c, d))
    return choose(c, c.holds(x[1], "LT", 0), negate(c, rest), rest)


def _one_if_negative(c: Carrying, x: Pair) -> Value:
    """-1 of a negative number, else 1."""
    return c.choose(c.holds(x[1], "LT", 0), -1, c.number(1, x[1]))


def _parts(c: Carrying, x: Pair, d: Pair) -> tuple[Pair, Pair]:
    """The quotient and the remainder of numbers without sign."""
    small = _small_constant(d)
    if small and c.takes("divide", HALF):
        return _by_digits(c, x, small)
    return _by_steps(c, x, d)


def _small_constant(d: Pair) -> int:
    """A divisor of at most 15 bits that is one known number, in both halves the same everywhere; 0 of others."""
    values: list[int] = []
    for half in d:
        node = half.node
        while node is not None and node.name in (BROADCAST_IN_DIM, RESHAPE, SLICE):
            node = node.operand(0).node
        found = None if node is None else node.constant()
        if found is None or not found.size:
            return 0
        flat = found.reshape(-1)
        if bool((flat != flat[0]).any()):
            return 0
        values.append(int(flat[0]))
    return values[0] if values[1] == 0 and 0 < values[0] < 1 << 15 else 0


def _by_digits(c: Carrying, x: Pair, d: int) -> tuple[Pair, Pair]:
    """Digits of 16 bits, the upper ones first: r 2^16 + digit is below d 2^16, so below 2^31, and divided by d it is a
    digit of the quotient."""
    digits: list[Value] = []
    rest = c.number(0, x[0])
    for half in (x[1], x[0]):
        for digit in reversed(sixteen(c, half)):
            given = c.add(left(c, rest, 16), digit)
            quotient = c.divide(given, d)
            rest = c.subtract(given, c.multiply(quotient, d))
            digits.append(quotient)
    high, low = (c.add(left(c, digits[k], 16), digits[k + 1]) for k in (0, 2))
    return (low, high), (rest, c.number(0, rest))


def _by_steps(c: Carrying, x: Pair, d: Pair) -> tuple[Pair, Pair]:
    """Long division, bit by bit, in a loop where the target has one.

        (r, x) = 2 (r, x);  where r >= d: r = r - d, x = x + 1      64 times

    Before each step r is below d, so that 2 r + 1 is below 2 d; where it is 2^64 or more, its upper bit is lost, but it
    is no less than d then, and the difference is right modulo 2^64. The bits of the quotient enter x from below. By 0
    every bit is 1, and r is x in the end.
    """
    zero = c.number(0, x[0])
    carried, kept = [*x, zero, zero], list(d)
    if c.is_nested or not c.takes("while", HALF):
        for _ in range(STEPS):
            carried = _step(c, carried, kept)
    else:

        def step(build: Builder, _counter: Value, carried: Sequence[Value], kept: Sequence[Value]) -> Sequence[Value]:
            return _step(c.inside(build), carried, kept)

        carried = StructuredLoop(STEPS, HALF).emit_while(c.build, carried, kept, step)
    return (carried[0], carried[1]), (carried[2], carried[3])


def _step(c: Carrying, carried: Sequence[Value], kept: Sequence[Value]) -> list[Value]:
    x, r, d = (carried[0], carried[1]), (carried[2], carried[3]), (kept[0], kept[1])
    lost = c.holds(r[1], "LT", 0)
    r = _doubled(c, r, right(c, x[1], 31))
    x = _doubled(c, x, c.number(0, x[0]))
    below = is_less(c, r, d, unsigned=True)
    rest = choose(c, below, r, subtract(c, r, d))
    rest = choose(c, lost, subtract(c, r, d), rest)
    zero = c.number(0, x[0])
    bit = c.choose(lost, 1, c.build.select(below, zero, c.number(1, zero)))
    return [c.add(x[0], bit), x[1], *rest]


def _doubled(c: Carrying, x: Pair, bit: Value) -> Pair:
    """Twice a number, and a bit; what it loses is lost."""
    carry = right(c, x[0], 31)
    return c.add(c.add(x[0], x[0]), bit), c.add(c.add(x[1], x[1]), carry)
