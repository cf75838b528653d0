"""Arithmetic of 64-bit integers on their halves: sums with carries, products of parts of 16 bits, order, shifts.

A number is two signed integers of 32 bits along a last dim, the lower bits first; both are read modulo 2^32, the upper
one with the number's sign.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlo_lower.analysis.transfer import comparison_direction
from hlo_lower.graph import Node, Value
from hlo_lower.lowerings.carried.carrier import MARK, bits_of, is_integer, is_unsigned
from hlo_lower.lowerings.carried.carrying import Carrying
from hlo_lower.lowerings.carried.exactness import ON_HALVES
from hlo_lower.lowerings.carried.pairs import Pair, join, split
from hlo_lower.lowerings.carried.written_ops import half_of
from hlo_lower.registry import DoesNotApply

HALF = "i32"


def on_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> list[Value]:
    """An op of 64-bit integers on halves.

    Raises:
      DoesNotApply: it has no such form, or shifts by what is not known.
    """
    name = node.name.removeprefix("stablehlo.")
    if name == "convert":
        return [_converted(c, node, operands[0])]
    if name == "compare":
        return [_compared(c, node, _split(c, operands[0]), _split(c, operands[1]), comparison_direction(node))]
    if name in ("minimum", "maximum"):
        x, y = (_split(c, value) for value in operands)
        first = _compared(c, node, x, y, "LT" if name == "minimum" else "GT")
        return [_join(c, (c.choose(first, x[0], y[0]), c.choose(first, x[1], y[1])))]
    if name in ON_HALVES:
        return [_moved(c, node, operands)]
    if name in SHIFTS:
        return [_join(c, SHIFTS[name](c, _split(c, operands[0]), _amount(node)))]
    if name in ARITHMETIC:
        return [_join(c, ARITHMETIC[name](c, *(_split(c, value) for value in operands)))]
    raise DoesNotApply(f"{node.name} has no form on halves")


def _moved(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """An op that moves elements, each of them a row of two."""
    build, x, name = c.build, operands[-1], node.name.removeprefix("stablehlo.")
    shape, last = node.result().static_shape, len(x.static_shape) - 1
    if name == "reshape":
        return build.reshape(x, (*shape, 2))
    if name == "broadcast_in_dim":
        return build.broadcast(x, (*shape, 2), (*node.integers("broadcast_dimensions"), len(shape)))
    if name == "transpose":
        return build.transpose(x, (*node.integers("permutation"), last))
    if name == "slice":
        starts, limits, strides = (node.integers(kind) for kind in ("start_indices", "limit_indices", "strides"))
        return build.slice(x, (*starts, 0), (*limits, 2), (*strides, 1))
    if name == "concatenate":
        return build.concatenate(operands, node.integer("dimension"))
    if name == "reverse":
        return build.reverse(x, node.integers("dimensions"))
    predicate = operands[0]
    if predicate.static_shape:
        predicate = build.broadcast(predicate, (*shape, 2), range(len(shape)))
    return build.select(predicate, operands[1], x)


def _split(c: Carrying, x: Value) -> Pair:
    return split(c.build, x)


def _join(c: Carrying, pair: Pair) -> Value:
    return join(c.build, pair)


def _one_where(c: Carrying, predicate: Value, like: Value) -> Value:
    return c.choose(predicate, 1, c.number(0, like))


def _is_below(c: Carrying, left: Value, right: Value) -> Value:
    """Whether a half is below another one, both without sign."""
    return c.holds(c.flip(left), "LT", c.flip(right))


def add(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The sum: the lower halves carry where their sum is below one of them."""
    low = c.do("add", x[0], y[0])
    carry = _one_where(c, _is_below(c, low, x[0]), low)
    return low, c.do("add", c.do("add", x[1], y[1]), carry)


def subtract(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The difference: the lower halves borrow where the first one is below the second."""
    low = c.do("subtract", x[0], y[0])
    borrow = _one_where(c, _is_below(c, x[0], y[0]), low)
    return low, c.do("subtract", c.do("subtract", x[1], y[1]), borrow)


def negate(c: Carrying, x: Pair) -> Pair:
    """0 less the number."""
    zero = c.number(0, x[0])
    return subtract(c, (zero, zero), x)


def multiply(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The product modulo 2^64: that of the lower halves in full, and the lower bits of the mixed ones.

    With x0 = a + 2^16 b and y0 = d + 2^16 e: t = b d + (a d) / 2^16 and u = a e + (t mod 2^16) are below 2^32, and the
    upper half of x0 y0 is b e + t / 2^16 + u / 2^16.
    """
    (a, b), (d, e) = (_sixteen(c, x[0]), _sixteen(c, y[0]))
    low_times_low = _sixteen(c, c.do("multiply", a, d))
    t = _sixteen(c, c.do("add", c.do("multiply", b, d), low_times_low[1]))
    u = _sixteen(c, c.do("add", c.do("multiply", a, e), t[0]))
    upper = c.do("add", c.do("add", c.do("multiply", b, e), t[1]), u[1])
    mixed = c.do("add", c.do("multiply", x[0], y[1]), c.do("multiply", x[1], y[0]))
    return c.do("multiply", x[0], y[0]), c.do("add", upper, mixed)


def _sixteen(c: Carrying, x: Value) -> Pair:
    """The lower and the upper 16 bits of a half."""
    upper = _right(c, x, 16)
    return c.do("subtract", x, _left(c, upper, 16)), upper


def _left(c: Carrying, x: Value, count: int) -> Value:
    """A half times 2^count modulo 2^32, count below 32."""
    factor = 1 << count if count < 31 else -(1 << 31)
    return x if not count else c.do("multiply", x, factor)


def _right(c: Carrying, x: Value, count: int) -> Value:
    """A half without sign, divided by 2^count, count below 32."""
    if not count:
        return x
    if c.takes("shift_right_logical", HALF):
        return c.do("shift_right_logical", x, count)
    half = half_of(c, x)
    return half if count == 1 else c.do("divide", half, 1 << count - 1)


def shift_left(c: Carrying, x: Pair, count: int) -> Pair:
    """The number times 2^count: what leaves the lower half enters the upper one, no bits of which meet."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return zero, _left(c, x[0], count - 32)
    moved = _left(c, x[1], count)
    return _left(c, x[0], count), moved if not count else c.do("add", moved, _right(c, x[0], 32 - count))


def shift_right_logical(c: Carrying, x: Pair, count: int) -> Pair:
    """The number without sign divided by 2^count: what leaves the upper half enters the lower one."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return _right(c, x[1], count - 32), zero
    moved = _right(c, x[0], count)
    return moved if not count else c.do("add", moved, _left(c, x[1], 32 - count)), _right(c, x[1], count)


ARITHMETIC: Mapping[str, Callable[..., Pair]] = {
    "add": add,
    "subtract": subtract,
    "negate": negate,
    "multiply": multiply,
}
SHIFTS: Mapping[str, Callable[[Carrying, Pair, int], Pair]] = {
    "shift_left": shift_left,
    "shift_right_logical": shift_right_logical,
}


def _amount(node: Node) -> int:
    """By how much all elements are shifted; what is negative is more than all bits."""
    given = node.operand(1).node
    while given is not None and (given.name == "stablehlo.broadcast_in_dim" or given.attribute(MARK) is not None):
        given = given.operand(0).node  # what is spread, or was put on halves before
    values = given.constant() if given is not None and given.name == "stablehlo.constant" else None
    if values is not None and values.dtype.itemsize == 4:
        values = np.ascontiguousarray(values).view(np.int64)
    if values is None or values.size == 0 or bool((values != values.reshape(-1)[0]).any()):
        raise DoesNotApply("it shifts by what is not one known number")
    amount = int(values.reshape(-1)[0])
    return amount if 0 <= amount < 64 else 64


def _compared(c: Carrying, node: Node, x: Pair, y: Pair, direction: str) -> Value:
    """The lower halves, without sign, decide where the upper ones are equal; else these do."""
    upper = (x[1], y[1])
    if is_unsigned(node.operand(0).element_type):
        upper = (c.flip(x[1]), c.flip(y[1]))
    lower_says = c.holds(c.flip(x[0]), direction, c.flip(y[0]))
    return c.build.select(c.holds(x[1], "EQ", y[1]), lower_says, c.holds(upper[0], direction, upper[1]))


def _converted(c: Carrying, node: Node, x: Value) -> Value:
    """A conversion between 64 bits and fewer, or another type of 64."""
    before, after = node.operand(0).element_type, node.result().element_type
    if not is_integer(before) or not is_integer(after):
        raise DoesNotApply("a float of 64-bit integers is not made of halves")
    if bits_of(before) == 64 == bits_of(after):
        return x
    if bits_of(after) < 64:
        low, high = _split(c, x)
        if after != "i1":
            return c.build.convert(low, after)
        return c.build.select(c.holds(high, "EQ", 0), c.holds(low, "NE", 0), c.holds(high, "NE", 0))
    low = c.build.convert(x, HALF)
    zero = c.number(0, low)
    return _join(c, (low, zero if is_unsigned(before) else c.choose(c.holds(low, "LT", 0), -1, zero)))
