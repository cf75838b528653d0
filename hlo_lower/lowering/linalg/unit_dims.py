"""Dims of extent 1 in linalg: they move without a transpose, and a slice is written without them.

jaxlib's pass makes a transpose of every StableHLO transpose, and goes through one long row for a reshape that neither
collapses nor expands alone:

    %c = tensor.collapse_shape %x [[0, 1, 2, 3]] : tensor<1x1x32x4xf32> into tensor<128xf32>
    %e = tensor.expand_shape %c [[0, 1, 2, 3]] : tensor<128xf32> into tensor<1x32x1x4xf32>
    %r = tensor.insert_slice %e into %y[0, 0, %i, 0] [1, 32, 1, 4] [1, 1, 1, 1]
    ->
    %c = tensor.collapse_shape %x [[0, 1, 2], [3]] : tensor<1x1x32x4xf32> into tensor<32x4xf32>
    %r = tensor.insert_slice %c into %y[0, 0, %i, 0] [1, 32, 1, 4] [1, 1, 1, 1]

Equal: without its dims of extent 1 a tensor has the same elements in the same order, and tensor.insert_slice takes a
slice without them.
"""

from collections.abc import Callable, Mapping, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.loops import WRITE

COLLAPSE, EXPAND = "tensor.collapse_shape", "tensor.expand_shape"


def moves_units_alone(node: Node) -> bool:
    """Whether a transpose leaves all dims but those of extent 1 in their order."""
    shape = node.operand(0).shape
    long = [dim for dim in node.integers("permutation") if shape[dim] != 1]
    return node.is_static and long == sorted(long)


def drop_unit_dims(graph: Graph) -> bool:
    """Reshape dims of extent 1 alone where nothing else is reshaped, and write slices without them; whether any was."""
    found = [node for node in graph.nodes() if node.name in _REWRITES]
    with mlir.active(graph.context):
        return sum(_REWRITES[node.name](node) for node in found) > 0


def _without(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    return tuple(size for size in shape if size != 1)


def _groups(shape: Sequence[int | None]) -> str:
    """The reassociation that leaves dims of extent 1 out: each goes with the next dim, the last ones with the last."""
    groups: list[list[int]] = [[]]
    for dim, size in enumerate(shape):
        groups[-1].append(dim)
        if size != 1 and any(other != 1 for other in shape[dim + 1 :]):
            groups.append([])
    return str(groups)


def _expand(node: Node) -> bool:
    """Reshape without the detour through one row, where dims of extent 1 move alone; whether that was so."""
    collapse = node.operand(0).node
    if collapse is None or collapse.name != COLLAPSE or not node.is_static or not collapse.is_static:
        return False
    source, result = collapse.operand(0), node.result()
    kept = _without(source.shape)
    if not kept or kept != _without(result.shape) or kept in (collapse.result().shape, source.shape):
        return False
    build, element = Builder.before(node), source.element_type
    short = {"reassociation": mlir.parse_attribute(_groups(source.shape))}
    value = build.op(COLLAPSE, [source], [mlir.tensor_type(kept, element)], short).result()
    if kept != result.shape:
        long = {
            "reassociation": mlir.parse_attribute(_groups(result.shape)),
            "static_output_shape": mlir.dense_i64(result.static_shape),
        }
        value = build.op(EXPAND, [value], [result.raw.type], long).result()
    result.raw.replace_all_uses_with(value.raw)
    return True


def _insert(node: Node) -> bool:
    """Write a slice as it was before dims of extent 1 were put into it; whether any were."""
    expand = node.operand(0).node
    if expand is None or expand.name != EXPAND:
        return False
    source: Value = expand.operand(0)
    if source.shape != _without(node.integers("static_sizes")):
        return False
    node.raw.operands[0] = source.raw
    return True


_REWRITES: Mapping[str, Callable[[Node], bool]] = {EXPAND: _expand, WRITE: _insert}
