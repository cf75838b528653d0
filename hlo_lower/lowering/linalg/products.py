"""Products in linalg, each in one form: by maps over the tensors as they are, not over transposed or converted ones.

    %t = linalg.transpose ins(%w : tensor<16x8xf32>) permutation = [1, 0]
    %y = linalg.matmul ins(%x, %t)
    ->
    %y = linalg.matmul indexing_maps = [(d0, d1, d2) -> (d0, d2), (d0, d1, d2) -> (d1, d2), (d0, d1, d2) -> (d0, d1)]
        ins(%x, %w)

Equal: the maps say which elements are multiplied, and the loops that are summed keep their order. A named product
converts its factors to the type of its sum itself, so a conversion to a wider type in front of it is left to it. A
product that is transposed is computed as it is wanted; its first factor is the one whose own dim comes first in the
result.
"""

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.structured_ops import (
    WIDENS,
    IndexMap,
    adds_products,
    dims,
    fill_empty,
    iterators_attribute,
    maps_attribute,
    maps_of,
    rank_of,
)

MATRICES = frozenset({
    *("linalg.matmul", "linalg.batch_matmul", "linalg.matvec", "linalg.vecmat", "linalg.dot", "linalg.contract"),
    *("linalg.generic", "linalg.batch_matvec", "linalg.batch_vecmat"),
})  # fmt: skip


def fold_into_products(graph: Graph) -> bool:
    """Read what is transposed or widened for a product as it is, in place; whether any product changed."""
    found = [node for node in graph.nodes() if node.name in MATRICES]
    with mlir.active(graph.context):
        return sum(_fold(node) for node in found) > 0


def _fold(node: Node) -> bool:
    if len(node.operands) != 3 or len(node.results) != 1 or not adds_products(node):
        return False
    maps = maps_of(node)
    if maps is None or any(len(index) != 1 or index[0][1] != 1 for one in maps for index in one):
        return False
    axes = [[index[0][0] for index in one] for one in maps]
    factors = [_read(operand, own) for operand, own in zip(node.operands[:2], axes, strict=False)]
    turned = _transpose_of(node)
    result = axes[2] if turned is None else [axes[2][dim] for dim in turned.integers("permutation")]
    order = [*result, *(dim for dim in range(rank_of(maps)) if dim not in result)]
    if _is_second_first(factors, result) and not str(mlir.tensor_element(node.result().raw.type)).startswith("complex"):
        factors.reverse()
    new_maps = [dims(*(order.index(dim) for dim in own)) for own in (factors[0][1], factors[1][1], result)]
    given = [factors[0][0], factors[1][0]]
    if turned is None and given == list(node.operands[:2]) and new_maps == list(maps):
        return False
    _emit(node, turned, given, new_maps)
    return True


def _read(value: Value, axes: list[int]) -> tuple[Value, list[int]]:
    """What a factor is read from, and the loops of its dims: before transposes and conversions to a wider type."""
    source = value.node
    if source is not None and source.name == "linalg.transpose":
        permutation = source.integers("permutation")
        return _read(source.operand(0), [axes[permutation.index(dim)] for dim in range(len(axes))])
    if source is not None and source.name == "linalg.map" and len(source.operands) == 2:
        nodes = list(source.blocks[0].nodes)
        if len(nodes) == 2 and nodes[0].name in WIDENS and nodes[1].operand(0) == nodes[0].result():
            return _read(source.operand(0), axes)
    return value, axes


def _transpose_of(node: Node) -> Node | None:
    """The transpose that alone reads a product whose accumulator starts with zeros; else None."""
    users = list(node.result().users)
    fill = node.operand(2).node
    empty = fill.operand(1).node if fill is not None and fill.name == "linalg.fill" else None
    if empty is None or (empty.name != "tensor.empty" and not node.result().is_static):
        return None
    is_one = len(users) == 1 and users[0].name == "linalg.transpose" and users[0].operand(0) == node.result()
    return users[0] if is_one else None


def _is_second_first(factors: list[tuple[Value, list[int]]], result: list[int]) -> bool:
    """Whether both factors have dims of their own, and the first such one of the result is the second's."""
    first, second = (set(own) & set(result) for _, own in factors)
    own = [dim for dim in result if (dim in first) != (dim in second)]
    return bool(first - second and second - first) and own[0] in second


def _emit(node: Node, turned: Node | None, factors: list[Value], maps: list[IndexMap]) -> None:
    last = node if turned is None else turned
    build = Builder.before(last)
    raw_type, rank = last.result().raw.type, rank_of(maps)
    start = node.operand(2)
    if turned is not None:
        fill = start.node
        assert fill is not None
        start = fill_empty(build, fill.operand(0), raw_type, _sizes(fill.operand(1), turned)).result()
    attributes = {
        "indexing_maps": maps_attribute(rank, maps),
        "iterator_types": iterators_attribute(rank, maps[-1]),
        "operandSegmentSizes": mlir.parse_attribute("array<i32: 2, 1>"),
    }
    new = build.op("linalg.generic", [*factors, start], [raw_type], attributes, regions=1)
    _fill_region(build, node, new)
    last.result().raw.replace_all_uses_with(new.result().raw)
    if turned is not None:
        turned.raw.erase()
    node.raw.erase()


def _sizes(empty: Value, turned: Node) -> list[Value]:
    """The sizes of the open dims of an empty tensor, in the order that a transpose gives them."""
    open_dims = [dim for dim, size in enumerate(empty.shape) if size is None]
    of_dim = dict(zip(open_dims, empty.node.operands if empty.node is not None else (), strict=False))
    return [of_dim[dim] for dim in turned.integers("permutation") if dim in of_dim]


def _fill_region(build: Builder, node: Node, new: Node) -> None:
    """out + left * right, the factors converted to the type of the sum where theirs is another."""
    *_, times, plus, _ = node.blocks[0].nodes
    elements = [mlir.tensor_element(value.raw.type) for value in new.operands]
    block = Block(mlir.append_block(new.raw, 0, elements, node.raw.location))
    inner, wide = build.at_end(block), elements[2]
    widens = "arith.extf" if times.name == "arith.mulf" else "arith.extsi"
    left, right = (a if a.raw.type == wide else inner.op(widens, [a], [wide]).result() for a in block.arguments[:2])
    product = inner.op(times.name, [left, right], [wide]).result()
    total = inner.op(plus.name, [block.argument(2), product], [wide]).result()
    inner.op("linalg.yield", [total], [])
