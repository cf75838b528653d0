"""Make a module ready for jaxlib's pass to linalg: what that pass does not take, or takes wrongly, in other words.

chlo                                      plain StableHLO, by jaxlib's own pass
composites without an op of their own     calls of their decompositions, by jaxlib's own pass
slices, pads, windows without elements    an empty constant: tensor.extract_slice has no start behind the last element
broadcast of an unsigned scalar           broadcast of one element: the named form does not verify
reduce over no dims, or of no elements    the operand; the initial value: the pass leaves both
optimization_barrier                      nothing: it orders a compiler's work, which linalg does not know
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.composite_ops import composite_name, names_of
from hlo_lower.lowering.linalg.linalg_report import CAST
from hlo_lower.lowering.linalg.scf_for import replace_all
from hlo_lower.lowering.plain.chlo import TO_STABLEHLO
from hlo_lower.ops.names import (
    BROADCAST_IN_DIM,
    COMPOSITE,
    CONSTANT,
    CONVOLUTION,
    OPTIMIZATION_BARRIER,
    PAD,
    REDUCE,
    REDUCE_WINDOW,
    SLICE,
)


def passes_before(graph: Graph, *, named: bool) -> tuple[str, ...]:
    """The passes of jaxlib that a module needs first."""
    kept = names_of(named=named)
    found: set[str] = set()

    def visit(node: Node) -> None:
        if node.name.startswith("chlo."):
            found.add(TO_STABLEHLO)
        elif node.name == COMPOSITE and composite_name(node) not in kept:
            found.add(f"func.func(stablehlo-legalize-composite-to-call{{except={','.join(kept)}}})")

    graph.walk(visit)
    return tuple(sorted(found))


def prepare(graph: Graph) -> None:
    """Replace the operations that jaxlib's pass does not take; the module stays StableHLO."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name in _REWRITES else None)
    with mlir.active(graph.context):
        for node in found:
            values = _REWRITES[node.name](Builder.before(node), node)
            if values is not None:
                replace_all(node.results, values)
                node.raw.erase()


def _broadcast(build: Builder, node: Node) -> Sequence[Value] | None:
    """Between casts, which `make_signless` takes away again."""
    value, result = node.operand(0), node.result()
    if not value.element.is_unsigned or not value.is_static or prod(value.static_shape) != 1:
        return None
    element = value.element.signed
    plain = build.op(CAST, [value], [mlir.tensor_type(value.shape, element)]).result()
    wide = build.clone(node, [plain], [mlir.tensor_type(result.shape, element)]).result()
    return build.op(CAST, [wide], [result.raw.type]).results


def _emptied(build: Builder, node: Node) -> Sequence[Value] | None:
    """No elements: a constant of none."""
    if not all(result.is_static and not prod(result.static_shape) for result in node.results):
        return None
    types = [result.raw.type for result in node.results]
    values = [{"value": mlir.parse_attribute(f"dense<> : {raw_type}")} for raw_type in types]
    return [build.op(CONSTANT, [], [raw_type], value).result() for raw_type, value in zip(types, values, strict=True)]


def _reduce(build: Builder, node: Node) -> Sequence[Value] | None:
    """Of no elements: the initial value. Over no dims: in place, over one of extent 1 put behind the others."""
    half = len(node.results)
    inputs, initial = node.operands[:half], node.operands[half:]
    if not all(value.is_static for value in inputs):
        return None
    shape = inputs[0].static_shape
    if not prod(shape):
        return [build.broadcast(value, node.result().static_shape) for value in initial]
    if not node.integers("dimensions"):
        for number, value in enumerate(inputs):
            node.raw.operands[number] = build.reshape(value, (*shape, 1)).raw
        node.raw.attributes["dimensions"] = mlir.dense_i64([len(shape)])
    return None


def _barrier(_: Builder, node: Node) -> Sequence[Value]:
    return node.operands


_REWRITES: Mapping[str, Callable[[Builder, Node], Sequence[Value] | None]] = {
    BROADCAST_IN_DIM: _broadcast,
    REDUCE: _reduce,
    SLICE: _emptied,
    PAD: _emptied,
    REDUCE_WINDOW: _emptied,
    CONVOLUTION: _emptied,
    OPTIMIZATION_BARRIER: _barrier,
}
