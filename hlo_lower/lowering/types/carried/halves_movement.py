"""Elements of 64 bits moved: as rows of two where the op is easily told so, else the two halves one by one."""

from collections.abc import Sequence

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.types.carried.carrier import Form
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.exactness import TABLE
from hlo_lower.lowering.types.carried.halves import HALF
from hlo_lower.lowering.types.carried.pairs import join, split
from hlo_lower.lowering.types.carried.regions_of_pairs import on_each_part
from hlo_lower.lowering.types.carried.written_ops import clamped_index


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
