"""Every named op of linalg as `linalg.generic`: MLIR's own `linalg-generalize-named-ops`, which jaxlib does not have.

    linalg.reduce {arith.addf} ins(%x) outs(%zero) dimensions = [1]
    ->
    linalg.generic {indexing_maps = [(d0, d1) -> (d0, d1), (d0, d1) -> (d0)], iterator_types = [parallel, reduction]}
        ins(%x) outs(%zero) {arith.addf}

Equal: a named op is a generic one with the maps that its name stands for and the same region, which is moved. The
order of the dims is that of MLIR's, so a reader sums in the same order.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.linalg.index_maps import IndexMap, dims, iterators_attribute, maps_attribute, rank_of, read_maps
from hlo_lower.lowering.linalg.scf_for import replace_all

NO_STRUCTURE = frozenset({"linalg.generic", "linalg.index", "linalg.yield", "linalg.softmax"})
"""Operations that are no named form of a generic one."""

OWN_MAPS = ("indexing_maps", "linalg.memoized_indexing_maps")
"""Where an op whose name does not say it all keeps its maps, or MLIR what it made of strides and dilations."""


def generalize(graph: Graph) -> None:
    """Write the named ops of a module as generic ones, in place."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name.startswith("linalg.") else None)
    with mlir.active(graph.context):
        for node in found:
            maps = None if node.name in NO_STRUCTURE else _maps(node)
            if maps is not None:
                _generic(node, maps)


def _maps(node: Node) -> Sequence[IndexMap] | None:
    """The indexing maps of a named op, those of its inputs first; None where they are not known."""
    for name in OWN_MAPS:
        attribute = node.attribute(name)
        if attribute is not None:
            return read_maps(attribute)
    *inputs, last = node.operands
    every = dims(*range(len(last.shape)))
    match node.name:
        case "linalg.fill":
            return (), every
        case "linalg.map":
            return [every] * len(node.operands)
        case "linalg.transpose":
            permutation = node.integers("permutation")
            return dims(*(permutation.index(dim) for dim in range(len(permutation)))), every
        case "linalg.broadcast":
            added = node.integers("dimensions")
            return dims(*(dim for dim in range(len(last.shape)) if dim not in added)), every
        case "linalg.reduce":
            rank, reduced = len(inputs[0].shape), node.integers("dimensions")
            kept = dims(*(dim for dim in range(rank) if dim not in reduced))
            half = len(node.operands) // 2
            return [dims(*range(rank))] * half + [kept] * half
        case _:
            return None


def _generic(node: Node, maps: Sequence[IndexMap]) -> None:
    outputs = len(node.results)
    rank = rank_of(maps)
    attributes = {
        "indexing_maps": maps_attribute(rank, maps),
        "iterator_types": iterators_attribute(rank, maps[-1]),
        "operandSegmentSizes": mlir.parse_attribute(f"array<i32: {len(maps) - outputs}, {outputs}>"),
    }
    types = [value.raw.type for value in node.results]
    new = Builder.before(node).op("linalg.generic", node.operands, types, attributes, regions=1)
    [block] = node.blocks
    for value in node.operands[len(block.arguments) :]:  # some releases leave out what is only written
        mlir.add_argument(block.raw, mlir.tensor_element(value.raw.type), node.raw.location)
    mlir.move_block(block.raw, new.raw, 0)
    replace_all(node.results, new.results)
    node.raw.erase()
