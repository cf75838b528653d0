"""What is carried as two along a last dim: taken apart, put together, and what stands between it and its own type."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.types.carried.carrier import PAIRED, Carrier, Carrying
from hlo_lower.ops.names import CONCATENATE, CONSTANT, RESHAPE, SORT
from hlo_lower.ops.purity import PURE_OPS

Pair = tuple[Value, Value]
"""The lower and the upper half of an integer, or the real and the imaginary part of a complex number."""


def split(build: Builder, x: Value) -> Pair:
    """The two that are along a last dim; where they were put together right here, what they were."""
    node, shape = x.node, x.static_shape
    if node is not None and (known := _joined_parts(node)) is not None:
        return known
    values = x.constant()
    if values is not None:
        first, second = (_constant(build, values[..., k], x.element_type) for k in (0, 1))
        return first, second
    starts = [0] * (len(shape) - 1)

    def part(k: int) -> Value:
        return build.reshape(build.slice(x, [*starts, k], [*shape[:-1], k + 1]), shape[:-1])

    return part(0), part(1)


def join(build: Builder, pair: Pair) -> Value:
    """Two along a last dim of their own."""
    shape = pair[0].static_shape
    return build.concatenate([build.reshape(one, (*shape, 1)) for one in pair], len(shape))


def _joined_parts(node: Node) -> Pair | None:
    if node.name != CONCATENATE or len(node.operands) != 2:
        return None
    shape = node.result().static_shape
    reshapes = [value.node for value in node.operands]
    found = [n.operand(0) for n in reshapes if n is not None and n.name == RESHAPE]
    is_whole = node.integer("dimension") == len(shape) - 1 and shape[-1:] == (2,)
    if not is_whole or len(found) < 2 or any(value.shape != shape[:-1] for value in found):
        return None
    return found[0], found[1]


def _constant(build: Builder, values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", element: str) -> Value:
    raw_type = mlir.tensor_type(values.shape, element)
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    if bits.size and bool((bits == bits.reshape(-1)[0]).all()):
        values = values.reshape(-1)[:1]
    return build.op(CONSTANT, [], [raw_type], {"value": mlir.dense_attribute(values, raw_type)}).result()


def erase_unread(build: Builder, kept: Sequence[Value], since: int = 0) -> None:
    """Erase what was built and nothing reads, after so many nodes: what was put together and then taken apart."""
    for node in reversed(build.built[since:]):
        is_read = any(value.is_used or value in kept for value in node.results)
        if not is_read and node.name in PURE_OPS and node.results and not node.has_regions:
            build.forget(node)
            node.raw.erase()


def realize(graph: Graph) -> None:
    """Write out, in place, what stands between complex numbers and their parts: what is left of it."""
    left = [Node(raw) for raw in mlir.find_named(graph.module.operation, {PAIRED})[0]]
    if not left:
        return
    with mlir.active(graph.context):
        for node in left:
            value = written_out(Builder.before(node), node.operand(0))
            node.result().raw.replace_all_uses_with(value.raw)
        for node in reversed(left):
            node.raw.erase()
    graph.forget()


def written_out(build: Builder, x: Value) -> Value:
    """A complex number's parts along a last dim, or the complex number of such parts."""
    if not x.element.is_complex:
        return build.complex(split(build, x))
    return join(build, build.parts(x))


# --- ops with a body on values that are two, halves or parts: each is two operands, two arguments and two results ---
#
# Equal: elements, or rows of a sort, meet as before, and the body gives of both the same two.


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
        found = flat(inner, block.terminator.operands, body(block, join_pairs(inner, block.arguments, ordered), inner))
        erase_unread(build, found, since)
        return found

    listed = flat_types(c, block.arguments)
    c.build.region(made, 0, [listed[k] for k in order], inside)
    return join_pairs(c, node.results, made.results)


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


def join_pairs(c: Carrying, owners: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Join values in two parts; the inverse of `flat`."""
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
