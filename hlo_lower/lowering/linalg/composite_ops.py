"""Composites that stand for an operation that StableHLO lacks, as that operation.

Their decompositions say the same in plain StableHLO: so every oracle runs the module before it leaves, and here

    composite "hlo_lower.insert_slice" %operand, %update   %r = tensor.insert_slice %update into %operand[..] [..] [..]
    composite "linalg.softmax" %x {dimension = 1}          %r = linalg.softmax dimension(1) ins(%x) outs(%empty)

The first is a write with strides, of a lowering for linalg; the second a named op that the target takes by that name
(`[[named]]` in its file). It has no region: MLIR decomposes it into the maximum of a row, the exponentials of what is
left, their sum, and quotients.
"""

from collections.abc import Callable, Mapping

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.linalg.scf_for import replace_all
from hlo_lower.lowering.scatter.tensor_slice import INSERT_SLICE, read_place
from hlo_lower.ops.names import COMPOSITE

SOFTMAX = "linalg.softmax"


def names_of(*, named: bool) -> tuple[str, ...]:
    """The names of the composites that leave as operations; those of named ops only where such are asked for."""
    return tuple(name for name in _LOWERINGS if named or name != SOFTMAX)


def composite_name(node: Node) -> str:
    """The name of a composite; "" of what is none."""
    name = node.attribute("name") if node.name == COMPOSITE else None
    return "" if name is None else mlir.symbol_name(name)


def lower_composites(graph: Graph) -> None:
    """Replace the composites that stand for operations by these."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if composite_name(node) in _LOWERINGS else None)
    with mlir.active(graph.context):
        for node in found:
            new = _LOWERINGS[composite_name(node)](Builder.before(node), node)
            replace_all(node.results, new.results)
            node.raw.erase()


def _insert_slice(build: Builder, node: Node) -> Node:
    operand, update = node.operands
    offsets, strides = read_place(node)
    attributes = {
        "static_offsets": mlir.dense_i64(offsets),
        "static_sizes": mlir.dense_i64(update.static_shape),
        "static_strides": mlir.dense_i64(strides),
        "operandSegmentSizes": mlir.parse_attribute("array<i32: 1, 1, 0, 0, 0>"),
    }
    return build.op("tensor.insert_slice", [update, operand], [operand.raw.type], attributes)


def _softmax(build: Builder, node: Node) -> Node:
    [x] = node.operands
    dimension = mlir.entries_of(node.raw.attributes["composite_attributes"])["dimension"]
    empty = build.op("tensor.empty", [], [x.raw.type]).result()
    return build.op(SOFTMAX, [x, empty], [x.raw.type], {"dimension": dimension})


_LOWERINGS: Mapping[str, Callable[[Builder, Node], Node]] = {INSERT_SLICE: _insert_slice, SOFTMAX: _softmax}
