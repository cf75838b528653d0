"""What is carried as two along a last dim: taken apart, put together, and what stands between it and its own type."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.types.carried.carrier import PAIRED
from hlo_lower.ops.names import CONCATENATE, CONSTANT, RESHAPE
from hlo_lower.ops.purity import PURE_OPS

Pair = tuple[Value, Value]
"""The lower and the upper half of an integer, or the real and the imaginary part of a complex number."""


def split(build: Builder, x: Value) -> Pair:
    """The two that are along a last dim; where they were put together right here, what they were."""
    node, shape = x.node, x.static_shape
    if node is not None and (known := _joined(node)) is not None:
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


def _joined(node: Node) -> Pair | None:
    """The two that a node puts together along a last dim."""
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
    left = [Node(raw) for raw in mlir.named(graph.module.operation, {PAIRED})[0]]
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
