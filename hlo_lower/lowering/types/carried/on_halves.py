"""Elements of 64 bits moved: as rows of two where the op is easily told so, else the two halves one by one."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.types.carried.carrier import MARK, Carrying, Form
from hlo_lower.lowering.types.carried.exactness import BY_HALVES, ON_HALVES, TABLE
from hlo_lower.lowering.types.carried.halves import (
    HALF,
    PRODUCTS,
    add,
    choose,
    converted_halves,
    divide,
    folded_halves,
    is_folded,
    is_less,
    multiply,
    negate,
    product_of_halves,
    remainder,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sign_of,
    size,
    subtract,
)
from hlo_lower.lowering.types.carried.pairs import Body, Pair, join, on_each_part, parts_of, split, with_region
from hlo_lower.lowering.types.carried.written_ops import clamped_index
from hlo_lower.ops.names import BROADCAST_IN_DIM, COUNT_LEADING_ZEROS, POPCNT


def moved_rows(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
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


def moved_by_parts(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """The op on the lower halves and on the upper ones, with indices in i32; or on what is not of 64 bits once.

    Equal: where an element goes depends on indices alone. They are clamped into a dim by the op, and so are those that
    i32 does not hold by the nearest number that it does.
    """
    moved = TABLE[node.name].moved or range(len(operands))
    given = [value if k in moved else _index(c, node.operand(k), value) for k, value in enumerate(operands)]
    attributes = mlir.attributes_of(node.raw)
    if not c.is_on(node.result(), Form.HALVES):
        return c.build.op(node.name, given, [c.carried_type(node.result().raw.type)], attributes).result()
    parts = [split(c.build, value) if k in moved else (value, value) for k, value in enumerate(given)]
    return on_each_part(c, node, parts, attributes)


def _index(c: Carrying, of: Value, value: Value) -> Value:
    """An index in i32, that of 64 bits as the nearest number."""
    carrier = c.carrier(of)
    if carrier is None:
        return value
    if carrier.form is not Form.HALVES:
        return clamped_index(c, value, carrier)
    low, high = split(c.build, value)
    above = c.build.select(c.holds(high, "EQ", 0), c.holds(low, "LT", 0), c.holds(high, "NE", 0))
    found = c.choose(above, int(element_type(HALF).most), low)
    return c.choose(c.holds(high, "LT", 0), 0, found) if of.element.is_signed else found


def iota(c: Carrying, node: Node) -> Value:
    """Positions are below 2^31, so that their upper halves are 0."""
    result, dim = node.result(), node.integer("iota_dimension")
    if not result.is_static or result.static_shape[dim] > int(element_type(HALF).most):
        raise DoesNotApply("positions of a size that is not known, or beyond i32")
    low = c.build.iota(result.static_shape, dim, HALF)
    return join(c.build, (low, c.number(0, low)))


# --- an op of 64-bit integers on their halves: which form each op has ---


def on_halves(c: Carrying, node: Node, operands: Sequence[Value], body: Body) -> list[Value]:
    """An op of 64-bit integers on halves.

    Args:
      c: builds.
      node: the op.
      operands: those of the op, on their carriers.
      body: for its region.

    Raises:
      DoesNotApply: it has no such form.
    """
    name = node.name.removeprefix("stablehlo.")
    if name == "convert":
        return [converted_halves(c, node, operands[0])]
    if name in EACH and c.is_nested:
        return [on_each_part(c, node, parts_of(c, node.operands, operands))]
    if name in ON_HALVES:
        return [moved_rows(c, node, operands)]
    if name in BY_HALVES:
        return [moved_by_parts(c, node, operands)]
    if name == "iota":
        return [iota(c, node)]
    if node.has_regions:
        return [folded_halves(c, node, operands)] if is_folded(node) else with_region(c, node, operands, body)
    if name in PRODUCTS:
        return [product_of_halves(c, node, operands)]
    unsigned = not node.operand(0).element.is_signed
    if name in SHIFTS:
        return [join(c.build, _shift(c, node, operands))]
    pairs = [split(c.build, value) for value in operands]
    if name == "compare":
        return [is_less(c, *pairs, unsigned=unsigned, direction=comparison_direction(node))]
    if name in ARITHMETIC:
        return [join(c.build, ARITHMETIC[name](c, *pairs))]
    if name in WITH_SIGN:
        return [join(c.build, WITH_SIGN[name](c, unsigned, *pairs))]
    raise DoesNotApply(f"{node.name} has no form on halves")


EACH = ("and", "or", "xor", "not", "select")
"""Ops that are those of both halves: of both in one tensor, but in a body, which is of scalars."""


# --- order and sign ---


def _least(c: Carrying, unsigned: bool, x: Pair, y: Pair) -> Pair:
    return choose(c, is_less(c, x, y, unsigned=unsigned), x, y)


def _greatest(c: Carrying, unsigned: bool, x: Pair, y: Pair) -> Pair:
    return choose(c, is_less(c, x, y, unsigned=unsigned, direction="GT"), x, y)


def _clamp(c: Carrying, unsigned: bool, low: Pair, x: Pair, high: Pair) -> Pair:
    """min(max(x, low), high), as it is defined; bounds that are scalars are spread."""
    shape = x[0].static_shape
    low, high = (
        (c.build.broadcast(p[0], shape), c.build.broadcast(p[1], shape)) if p[0].shape == () else p for p in (low, high)
    )
    return _least(c, unsigned, _greatest(c, unsigned, x, low), high)


def _sign(c: Carrying, unsigned: bool, x: Pair) -> Pair:
    """-1, 0 or 1: the upper half's sign, and whether any half is other than 0."""
    zero = c.number(0, x[0])
    some = c.choose(c.holds(x[1], "NE", 0), 1, c.choose(c.holds(x[0], "NE", 0), 1, zero))
    if unsigned:
        return some, zero
    sign = sign_of(c, x[1])
    return c.choose(c.holds(x[1], "LT", 0), -1, some), sign


def _ones(c: Carrying, x: Pair) -> Pair:
    return c.add(*(c.build.elementwise(POPCNT, half) for half in x)), c.number(0, x[0])


def _zeros(c: Carrying, x: Pair) -> Pair:
    low, high = (c.build.elementwise(COUNT_LEADING_ZEROS, half) for half in x)
    return c.choose(c.holds(x[1], "EQ", 0), c.add(low, 32), high), c.number(0, x[0])


ARITHMETIC: Mapping[str, Callable[..., Pair]] = {
    "add": add,
    "subtract": subtract,
    "negate": negate,
    "multiply": multiply,
    "abs": size,
    "popcnt": _ones,
    "count_leading_zeros": _zeros,
}
WITH_SIGN: Mapping[str, Callable[..., Pair]] = {
    "minimum": _least,
    "maximum": _greatest,
    "clamp": _clamp,
    "sign": _sign,
    "divide": divide,
    "remainder": remainder,
}


# --- shifts ---

SHIFTS: Mapping[str, Callable[[Carrying, Pair, int], Pair]] = {
    "shift_left": shift_left,
    "shift_right_logical": shift_right_logical,
    "shift_right_arithmetic": shift_right_arithmetic,
}


def _shift(c: Carrying, node: Node, operands: Sequence[Value]) -> Pair:
    """A shift by what is known, or by each power of two that the amount has.

    Equal: a shift by 32 a + 16 b + ... + f is one by 32 where a is 1, then by 16, and so on; an amount of 64 or more,
    or a negative one, shifts all bits out.
    """
    shift, x = SHIFTS[node.name.removeprefix("stablehlo.")], split(c.build, operands[0])
    known = _amount(node)
    if known is not None:
        return shift(c, x, known)
    amount, beyond = split(c.build, operands[1])
    outside = c.build.select(
        c.holds(beyond, "EQ", 0), c.holds(c.flip(amount), "GE", 64 - (1 << 31)), c.holds(beyond, "NE", 0)
    )
    rest, found = amount, x
    for count in (32, 16, 8, 4, 2, 1):
        is_in = c.holds(rest, "GE", count)
        found = choose(c, is_in, shift(c, found, count), found)
        rest = c.choose(is_in, c.subtract(rest, count), rest)
    return choose(c, outside, shift(c, x, 64), found)


def is_by_known_amount(node: Node) -> bool:
    """Whether a shift's amount is looked at and not computed with."""
    return node.name.removeprefix("stablehlo.") in SHIFTS and _amount(node) is not None


def _amount(node: Node) -> int | None:
    """By how much all elements are shifted, where that is known; what is negative is more than all bits."""
    given = node.operand(1).node
    while given is not None and (given.name == BROADCAST_IN_DIM or given.attribute(MARK) is not None):
        given = given.operand(0).node  # what is spread, or was put on halves before
    values = None if given is None else given.constant()
    if values is not None and values.dtype.itemsize == 4:
        values = np.ascontiguousarray(values).view(np.int64)
    if values is None or values.size == 0 or bool((values != values.reshape(-1)[0]).any()):
        return None
    amount = int(values.reshape(-1)[0])
    return amount if 0 <= amount < 64 else 64
