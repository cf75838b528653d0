"""Bit operations on carriers, for targets that have few of them on integers, or none: by sums, or bit by bit."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.view import Value
from hlo_lower.lowering.types.carried.carrier import Carrier, Carrying
from hlo_lower.lowering.types.carried.written_ops import half_of
from hlo_lower.ops.names import ADD, AND, NOT, OR, XOR

ByBits = Callable[[Carrying, Carrier, Sequence[Value]], Value]
"""A form of an op: on a carrier, of operands that are carried; its result is in the range of the type."""


def both(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """x and y, by what adds.

    Exact: x + y = (x xor y) + 2 (x and y) modulo 2^w, so half of x + y - (x xor y), without sign, has all bits of the
    result but the uppermost, which is set where both are negative. Of a mask of the lowest bits the rest by its size
    is what is asked.
    """
    x, y = operands
    for value, other in ((x, y), (y, x)):
        if (size := _size_of_mask(other)) is not None:
            return _rest(c, value, size)
    if not c.takes("xor", x.element_type):
        return _bit_by_bit(c, carrier, AND, operands)
    twice = c.do("subtract", c.do("add", x, y), c.do("xor", x, y))
    lower, least = half_of(c, twice), int(x.element.least)
    return c.choose(c.holds(c.do("maximum", x, y), "LT", 0), c.do("add", lower, least), lower)


def either(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """x or y: what only one has, and what both have, which have no bit in common."""
    if not c.takes("xor", operands[0].element_type):
        return _bit_by_bit(c, carrier, OR, operands)
    return c.add(c.xor(*operands), both(c, carrier, operands))


def apart(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """x xor y."""
    return _bit_by_bit(c, carrier, XOR, operands)


def inverted(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """not x: -1 - x, which is in the range of a signed type; of an unsigned one that is carried, its greatest - x."""
    before = element_type(carrier.before)
    all_ones = int(before.most) if before.is_unsigned and before.bits < operands[0].element.bits else -1
    return c.subtract(c.number(all_ones, operands[0]), operands[0])


BY_BITS: Mapping[str, ByBits] = {AND: both, OR: either, XOR: apart, NOT: inverted}
"""Bit operations for targets that do not have them."""


def _size_of_mask(value: Value) -> int | None:
    """2^k where a value is 2^k - 1 everywhere, as the carrier holds it; else None."""
    number = value.repeated_integer
    if number is None:
        return None
    size = number + 1
    return size if size > 0 and not size & size - 1 and size <= value.element.most else None


def _rest(c: Carrying, x: Value, size: int) -> Value:
    """x modulo 2^k: a quotient is rounded towards 0, so that of a negative number 2^k may be missing."""
    rest = c.subtract(x, c.multiply(c.divide(x, size), size))
    return c.choose(c.holds(rest, "LT", 0), c.add(rest, size), rest)


def _bit_by_bit(c: Carrying, carrier: Carrier, op: str, operands: Sequence[Value]) -> Value:
    """A bit operation on truth values, one for each bit along a last dim, and the sum of the bits that are set.

        low = x < 0 ? x - least : x                       no sign is left
        b   = (low / 2^k) - 2 (low / 2^k / 2) != 0        for each k
        r   = sum of b op b' ? 2^k : 0, and least where (x < 0) op (y < 0)

    Exact: a number of w bits is the sum of its bits, the uppermost one counted as `least` where it is signed. No sum
    leaves the range: those of the lower bits are below 2^(w-1).
    """
    if c.is_nested:
        raise DoesNotApply("bit by bit, in a region")
    declared = element_type(carrier.before)
    is_narrow = declared.is_unsigned and declared.bits < operands[0].element.bits
    width = min(declared.bits, operands[0].element.bits)  # of 64 bits the halves
    digits, least = (width, 0) if is_narrow else (width - 1, -(1 << width - 1))
    wide = (*operands[0].static_shape, digits)
    powers = c.build.broadcast(_powers(c, digits, operands[0].element_type), wide, [len(wide) - 1])
    signs, bits = list[Value](), list[Value]()
    for x in operands:
        low = x
        if least:
            signs.append(c.holds(x, "LT", 0))
            low = c.choose(signs[-1], c.do("subtract", x, least), x)
        moved = c.divide(c.build.broadcast(low, wide, range(len(wide) - 1)), powers)
        bits.append(c.holds(c.subtract(moved, c.multiply(c.divide(moved, 2), 2)), "NE", 0))
    set_bits = c.build.select(c.build.elementwise(op, *bits), powers, c.number(0, powers))
    start = c.build.constant(0, (), powers.element_type)
    total = reduce_along(c.build, set_bits, start, len(wide) - 1, ADD)
    return c.choose(c.build.elementwise(op, *signs), c.do("add", total, least), total) if signs else total


def _powers(c: Carrying, count: int, element: str) -> Value:
    powers: NDArray[np.object_] = np.array([1 << k for k in range(count)], object)
    return c.build.constant_array(powers, element)
