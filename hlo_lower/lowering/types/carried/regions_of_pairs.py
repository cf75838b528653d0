"""Ops with a body on values that are two, halves or parts: each is two operands, two arguments and two results.

Equal: elements, or rows of a sort, meet as before, and the body gives of both the same two.
"""

from collections.abc import Callable, Mapping, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.types.carried.carrier import Carrier
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.pairs import Pair, erase_unread, join, split
from hlo_lower.ops.names import SORT

Body = Callable[[Block, Sequence[Value], Carrying], list[Value]]
"""Builds what a block returns, of arguments on their carriers."""


def with_region(c: Carrying, node: Node, operands: Sequence[Value], body: Body) -> list[Value]:
    """A `reduce`, `reduce_window` or `sort`, results on their carriers.

    Args:
      c: builds.
      node: the op.
      operands: those of the op, on their carriers.
      body: for its region.
    """
    [block] = node.blocks
    given, types = flat(c, node.operands, operands), flat_types(c, node.results)
    made = c.build.op(node.name, given, types, mlir.attributes_of(node.raw), regions=1)
    order = _order(c, node, block)

    def inside(build: Builder, arguments: tuple[Value, ...]) -> Sequence[Value]:
        inner, since = c.inside(build), len(build.built)
        ordered = [arguments[order.index(k)] for k in range(len(arguments))]
        found = flat(inner, block.terminator.operands, body(block, joined(inner, block.arguments, ordered), inner))
        erase_unread(build, found, since)
        return found

    listed = flat_types(c, block.arguments)
    c.build.region(made, 0, [listed[k] for k in order], inside)
    return joined(c, node.results, made.results)


def is_pair(c: Carrying, value: Value) -> bool:
    """Whether a value is carried as two."""
    return _pair_of(c, value) is not None


def _pair_of(c: Carrying, value: Value) -> Carrier | None:
    carrier = c.carrier(value)
    return None if carrier is None or carrier.shape_of(()) == () else carrier


def on_each_part(
    c: Carrying, node: Node, parts: Sequence[Pair], attributes: Mapping[str, mlir.RawAttribute] | None = None
) -> Value:
    """The op on the first of each two, and on the second, its result of two put together."""
    result, own = node.result(), dict(attributes or {})
    types = [mlir.tensor_type(result.shape, c.scheme[result.element_type].after)]
    first, second = (c.build.op(node.name, [two[k] for two in parts], types, own).result() for k in (0, 1))
    return join(c.build, (first, second))


def parts_of(c: Carrying, owners: Sequence[Value], values: Sequence[Value]) -> list[Pair]:
    """Values on their carriers as two each; what is one is taken twice."""
    return [split(c.build, v) if is_pair(c, owner) else (v, v) for owner, v in zip(owners, values, strict=True)]


def flat(c: Carrying, owners: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Values on their carriers, those that are two one after the other."""
    pairs = zip(owners, values, strict=True)
    return [one for owner, value in pairs for one in (split(c.build, value) if is_pair(c, owner) else (value,))]


def joined(c: Carrying, owners: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """The other way round."""
    left = iter(values)
    return [join(c.build, (next(left), next(left))) if is_pair(c, owner) else next(left) for owner in owners]


def flat_types(c: Carrying, owners: Sequence[Value]) -> list[mlir.RawType]:
    """The types of what `flat` gives."""
    return [raw_type for value in owners for raw_type in _types(c, value)]


def _types(c: Carrying, value: Value) -> list[mlir.RawType]:
    carrier = _pair_of(c, value)
    if carrier is None:
        return [c.carried_type(value.raw.type)]
    return [mlir.tensor_type(value.shape, carrier.after)] * 2


def _order(c: Carrying, node: Node, block: Block) -> list[int]:
    """The places of a body's arguments, each that is two as two, in the order of the flat op: a sort has two arguments
    of each operand."""
    counts = [2 if is_pair(c, value) else 1 for value in block.arguments]
    starts = [sum(counts[:k]) for k in range(len(counts))]
    group = 2 if node.name == SORT else 1
    groups = range(0, len(counts), group)
    return [starts[g + k] + part for g in groups for part in range(counts[g]) for k in range(group)]
