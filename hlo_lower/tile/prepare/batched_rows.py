"""Make a dim that a scatter or a gather counts its positions along a batching dim: `logits.at[rows, order].set(kept)`.

    %rows = iota dim = 0 : 384x65536x1;  %i = concatenate %rows, %order : 384x65536x2
    %r = scatter(%operand, %i, %updates), inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]
    ->
    %r = scatter(%operand, %order, %updates), input_batching_dims = [0], scatter_indices_batching_dims = [0],
                                              inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]

Equal: of both the update at (b, k) goes to row b. The row is never out of bounds, for the index tensor has as many
positions along the dim as the operand has rows; positions are gone through in the same order. A batching dim can be
cut, where each tile of a dim that is indexed would go through all updates.
"""

from collections.abc import Sequence

from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.memory.dataflow import blocks_of
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.cleanup import erase
from hlo_lower.ops.names import CONCATENATE, GATHER, SCATTER


def batch_rows(graph: Graph) -> None:
    """Do so for all scatters and gathers of the entry point and of its loops."""
    with mlir.active(graph.context):
        nodes = [node for block in blocks_of(graph.main.body) for node in block.nodes]
        for node in [node for node in nodes if node.name in (SCATTER, GATHER) and node.is_static]:
            _batch(graph, node)
    graph.forget()


def _batch(graph: Graph, node: Node) -> None:
    """Take one column of row numbers off the index tensor; the operand's dim becomes a batching dim."""
    place = len(node.results) if node.name == SCATTER else 1
    indices = node.operand(place)
    joined = indices.node
    numbers = mlir.ScatterNumbers.of(node.raw) if node.name == SCATTER else mlir.gather_dimension_numbers(node.raw)
    vector = numbers.index_vector_dim
    if joined is None or joined.name != CONCATENATE or joined.integer("dimension") != vector:
        return
    columns = joined.operands
    if any(column.static_shape[vector] != 1 for column in columns) or len(columns) < 2:
        return
    gone, batching, mapped = dims_of(numbers)
    for number, (column, dim) in enumerate(zip(columns, mapped, strict=True)):
        along = counted_along(graph, column)
        taken = [its for _, its in batching]
        rows = node.operand(0).static_shape[dim]
        if along in (None, vector) or along in taken or dim not in gone or column.static_shape[along] != rows:
            continue
        build = Builder.before(node)
        kept = [other for k, other in enumerate(columns) if k != number]
        pairs = sorted([*batching, (dim, along)])
        left = [d for d in gone if d != dim], pairs, [d for d in mapped if d != dim]
        operands = [*node.operands]
        operands[place] = build.concatenate(kept, vector)
        types = [value.raw.type for value in node.results]
        new = build.copy_on(node, operands, types, dimension_attributes(numbers, *left))
        mlir.replace_results(node.raw, new.raw.results)
        erase(graph, node)
        _batch(graph, new)
        return


Numbers = mlir.ScatterNumbers | mlir.GatherNumbers


def dims_of(numbers: Numbers) -> tuple[tuple[int, ...], list[tuple[int, int]], tuple[int, ...]]:
    """Dims of the operand that windows lack, its batching dims with those of the index tensor, and the indexed ones."""
    if isinstance(numbers, mlir.ScatterNumbers):
        pairs = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        return numbers.inserted_window_dims, list(pairs), numbers.scatter_dims_to_operand_dims
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    return numbers.collapsed_slice_dims, list(pairs), numbers.start_index_map


def dimension_attributes(
    numbers: Numbers, gone: Sequence[int], batching: Sequence[tuple[int, int]], mapped: Sequence[int]
) -> dict[str, mlir.RawAttribute]:
    """The attributes of a scatter or gather with other dims of these three kinds, in the form of `dims_of`."""
    mine, its = [pair[0] for pair in batching], [pair[1] for pair in batching]
    is_scatter = isinstance(numbers, mlir.ScatterNumbers)
    if is_scatter:
        told = {
            "update_window_dims": list(numbers.update_window_dims),
            "inserted_window_dims": list(gone),
            "input_batching_dims": mine,
            "scatter_indices_batching_dims": its,
            "scatter_dims_to_operand_dims": list(mapped),
        }
    else:
        told = {
            "offset_dims": list(numbers.offset_dims),
            "collapsed_slice_dims": list(gone),
            "operand_batching_dims": mine,
            "start_indices_batching_dims": its,
            "start_index_map": list(mapped),
        }
    fields = ", ".join(f"{name} = {dims}" for name, dims in told.items() if dims)
    kind, name = ("scatter", "scatter_dimension_numbers") if is_scatter else ("gather", "dimension_numbers")
    text = f"#stablehlo.{kind}<{fields}, index_vector_dim = {numbers.index_vector_dim}>"
    unsorted = {"indices_are_sorted": mlir.parse_attribute("false")}
    return {name: mlir.parse_attribute(text.replace("<, ", "<")), **unsorted}


def counted_along(graph: Graph, value: Value) -> int | None:
    """The dim along which each number of a tensor is its own position, whatever stands along the others."""
    return AffineAnalysis(IndexAnalysis(graph)).counted_dim(Site(value))
