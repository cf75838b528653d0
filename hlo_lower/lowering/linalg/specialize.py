"""Generic ops of linalg that are a named one: products, convolutions and poolings that jaxlib's pass leaves generic.

An op is named where its region is the name's and its maps are, up to the order of the loops that are kept. Loops that
are summed keep their order, so the sums do. What has no name stays generic.

    (b, m, k), (b, n, k) -> (b, m, n), products added                     linalg.batch_matmul with these maps
    any other product of two operands                                     linalg.contract
    (n, c, h + x, w + y), (f, c, x, y) -> (n, f, h, w), products added    linalg.conv_2d_nchw_fchw
    (n, c, h * 2 + x, w * 2 + y), (x, y) -> (n, c, h, w), maxima          linalg.pooling_nchw_max, strides 2
"""

from collections.abc import Sequence
from itertools import product

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.linalg.index_maps import IndexMap, dims, maps_attribute, rank_of, read_maps
from hlo_lower.lowering.linalg.scf_for import replace_all
from hlo_lower.lowering.linalg.windows import CONVOLUTIONS, POOLINGS, Windowed

PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli", "complex.add": "complex.mul"}
"""What adds, and what makes what it adds."""

POOLED = {
    "arith.maximumf": "max", "arith.maxsi": "max", "arith.maxui": "max_unsigned", "arith.minimumf": "min",
    "arith.minsi": "min", "arith.minui": "min_unsigned", "arith.addf": "sum", "arith.addi": "sum",
}  # fmt: skip

MATMULS = {
    "linalg.matmul": [
        (dims(*a), dims(*b), dims(0, 1)) for a, b in product(((0, 2), (2, 0)), ((2, 1), (1, 2)))
    ],
    "linalg.batch_matmul": [
        (dims(0, *a), dims(0, *b), dims(0, 1, 2)) for a, b in product(((1, 3), (3, 1)), ((3, 2), (2, 3)))
    ],
}  # fmt: skip
"""The maps of a product of matrices (m, n, k), and of a batch of them (b, m, n, k), either operand transposed."""


def specialize(graph: Graph) -> None:
    """Write the generic ops of a module that have a name by that name, in place."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name == "linalg.generic" else None)
    with mlir.active(graph.context):
        for node in found:
            _named(node)


def _named(node: Node) -> None:
    maps = read_maps(node.raw.attributes["indexing_maps"])
    if maps is None or len(maps) != 3 or len(node.results) != 1:
        return
    first, second, result = maps
    if _adds_products(node):
        if not _window(node, (first, second, result), CONVOLUTIONS):
            _product(node, (first, second, result))
    elif (kind := _pools(node)) is not None:
        _window(node, (first, second, result), POOLINGS[kind])


def _adds_products(node: Node) -> bool:
    """Whether the region is out + left * right. Of i1 the names stand for other ops."""
    [block] = node.blocks
    (left, right, out), nodes = block.arguments, list(block.nodes)
    if len(nodes) != 3 or str(out.raw.type) == "i1":
        return False
    times, plus, last = nodes
    return (
        PRODUCTS.get(plus.name) == times.name
        and list(times.operands) == [left, right]
        and list(plus.operands) == [out, times.result()]
        and list(last.operands) == [plus.result()]
    )


def _pools(node: Node) -> str | None:
    """What is done with a window: the region is op(out, element), and the second input is not read."""
    [block] = node.blocks
    (element, _, out), nodes = block.arguments, list(block.nodes)
    if len(nodes) != 2 or str(out.raw.type) == "i1":
        return None
    op, last = nodes
    is_one = list(op.operands) == [out, element] and list(last.operands) == list(op.results)
    return POOLED.get(op.name) if is_one else None


def _product(node: Node, maps: tuple[IndexMap, IndexMap, IndexMap]) -> None:
    """A product of matrices under its name, any other one as `linalg.contract`, which has to sum something."""
    axes = [[index[0][0] for index in one if len(index) == 1 and index[0][1] == 1] for one in maps]
    left, right, result = map(set, axes)
    if any(len(found) != len(one) for found, one in zip(axes, maps, strict=True)) or not (left & right) - result:
        return
    if (left | right | result) != (left & right) | (left & result) | (right & result):
        return  # a loop over one operand alone
    name = next((name for name, known in MATMULS.items() if maps in known), "linalg.contract")
    _replace(node, name, {"indexing_maps": maps_attribute(rank_of(maps), maps)})


def _window(node: Node, maps: tuple[IndexMap, IndexMap, IndexMap], known: Sequence[Windowed]) -> bool:
    """A convolution or pooling under its name; whether it has one."""
    for one in known:
        steps = one.steps(maps)
        if steps is not None:
            strides, dilations = (mlir.parse_attribute(f"dense<{n}> : tensor<{len(n)}xi64>") for n in steps)
            _replace(node, f"linalg.{one.name}", {"strides": strides, "dilations": dilations})
            return True
    return False


def _replace(node: Node, name: str, attributes: dict[str, mlir.RawAttribute]) -> None:
    segments = {"operandSegmentSizes": mlir.parse_attribute("array<i32: 2, 1>")}
    types = [value.raw.type for value in node.results]
    new = Builder.before(node).op(name, node.operands, types, attributes | segments, regions=1)
    mlir.move_block(node.blocks[0].raw, new.raw, 0)
    replace_all(node.results, new.results)
    node.raw.erase()
