"""A write with strides as `tensor.insert_slice`.

StableHLO has no operation for it. A lowering for linalg writes it as a composite, `hlo_lower.insert_slice`, whose
decomposition says the same in plain StableHLO: so every oracle runs the module before it leaves, and here the composite
becomes

    %r = tensor.insert_slice %update into %operand[offsets] [sizes] [strides]
"""

from hlo_lower import mlir
from hlo_lower.graph import Builder, Graph, Node
from hlo_lower.loop.scf_for import replace_all
from hlo_lower.lowerings.tensor_slice import INSERT_SLICE, read_place


def is_insert_slice(node: Node) -> bool:
    """Whether a node is such a composite."""
    name = node.attribute("name") if node.name == "stablehlo.composite" else None
    return name is not None and mlir.symbol_name(name) == INSERT_SLICE


def lower_slices(graph: Graph) -> None:
    """Replace the composites that write with strides by `tensor.insert_slice`."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if is_insert_slice(node) else None)
    with mlir.active(graph.context):
        for node in found:
            _insert_slice(node)


def _insert_slice(node: Node) -> None:
    build = Builder.before(node)
    operand, update = node.operands
    offsets, strides = read_place(node)
    attributes = {
        "static_offsets": mlir.dense_i64(offsets),
        "static_sizes": mlir.dense_i64(update.static_shape),
        "static_strides": mlir.dense_i64(strides),
        "operandSegmentSizes": mlir.parse_attribute("array<i32: 1, 1, 0, 0, 0>"),
    }
    new = build.op("tensor.insert_slice", [update, operand], [operand.raw.type], attributes)
    replace_all(node.results, new.results)
    node.raw.erase()
