"""Operations of dynamic shape that jaxlib's pass leaves: sizes, writes and reshapes, as operations of tensor.

get_dimension_size     tensor.dim
dynamic_update_slice   tensor.insert_slice, its offsets clamped to [0, size - extent] as StableHLO has it
dynamic_reshape        tensor.reshape
"""

from collections.abc import Callable, Mapping

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.scf_for import from_index, index_constant, replace_all, to_index
from hlo_lower.ops.names import DYNAMIC_RESHAPE, DYNAMIC_UPDATE_SLICE, GET_DIMENSION_SIZE


def lower_dynamic(graph: Graph) -> None:
    """Replace the operations of `DYNAMIC` in a module."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name in DYNAMIC else None)
    with mlir.active(graph.context):
        for node in found:
            result = _REWRITES[node.name](Builder.before(node), node)
            replace_all(node.results, [result])
            node.raw.erase()


def _size(build: Builder, value: Value, dim: int) -> Value:
    """The size of a tensor in a dim, as an index."""
    known = value.shape[dim]
    if known is not None:
        return index_constant(build, known)
    return build.op("tensor.dim", [value, index_constant(build, dim)], [mlir.parse_type("index")]).result()


def _dimension_size(build: Builder, node: Node) -> Value:
    size = _size(build, node.operand(0), node.integer("dimension"))
    return from_index(build, size, node.result().raw.type)


def _update_slice(build: Builder, node: Node) -> Value:
    operand, update, *starts = node.operands
    index = mlir.parse_type("index")
    offsets: list[Value] = []
    sizes: list[Value] = []
    for dim, start in enumerate(starts):
        extent = _size(build, update, dim)
        if update.shape[dim] is None:
            sizes.append(extent)
        last = build.op("arith.subi", [_size(build, operand, dim), extent], [index]).result()
        inside = build.op("arith.maxsi", [to_index(build, start), index_constant(build, 0)], [index]).result()
        offsets.append(build.op("arith.minsi", [inside, last], [index]).result())
    unknown = mlir.dynamic_size()
    attributes = {
        "static_offsets": mlir.dense_i64([unknown] * len(starts)),
        "static_sizes": mlir.dense_i64([unknown if size is None else size for size in update.shape]),
        "static_strides": mlir.dense_i64([1] * len(starts)),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: 1, 1, {len(offsets)}, {len(sizes)}, 0>"),
    }
    return build.op("tensor.insert_slice", [update, operand, *offsets, *sizes], [operand.raw.type], attributes).result()


def _reshape(build: Builder, node: Node) -> Value:
    return build.op("tensor.reshape", node.operands, [node.result().raw.type]).result()


_REWRITES: Mapping[str, Callable[[Builder, Node], Value]] = {
    GET_DIMENSION_SIZE: _dimension_size,
    DYNAMIC_UPDATE_SLICE: _update_slice,
    DYNAMIC_RESHAPE: _reshape,
}

DYNAMIC = frozenset(_REWRITES)
"""The operations that are replaced here."""
