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
from typing import Any

import numpy as np

from hlo_lower.facts.memory.dataflow import blocks_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.cleanup import erase
from hlo_lower.ops.names import BROADCAST_IN_DIM, COMPARE, CONCATENATE, CONSTANT, GATHER, IOTA, RESHAPE, SCATTER, SELECT

MOST = 1 << 16
"""Elements of a constant that is read."""


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
        along = counted_along(column)
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
        new = build.copy_on(node, operands, types, dimension_attributes(node, numbers, *left))
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
    node: Node, numbers: Numbers, gone: Sequence[int], batching: Sequence[tuple[int, int]], mapped: Sequence[int]
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


def counted_along(value: Value) -> int | None:
    """The dim along which each number of a tensor is its own position, whatever stands along the others."""
    node = value.node
    if node is None:
        return None
    if node.name == IOTA:
        return _dim_of_iota(value, node.integer("iota_dimension"))
    if node.name == CONSTANT:
        return _written_out(node)
    if node.name == BROADCAST_IN_DIM:
        dim = counted_along(node.operand(0))
        if dim is None:
            return None
        found = node.integers("broadcast_dimensions")[dim]
        return found if node.operand(0).shape[dim] == value.shape[found] else None
    if node.name == RESHAPE:
        return _dim_behind_reshape(node, counted_along(node.operand(0)))
    if node.name == SELECT:
        return _not_negative(node)
    return None


def _dim_of_iota(iota: Value, dim: int) -> int | None:
    """The dim of an iota if its type is an integer type that holds all positions."""
    dtype = mlir.dtype_of(iota.element_type)
    is_held = dtype is not None and dtype.kind in "iu" and iota.static_shape[dim] - 1 <= np.iinfo(dtype).max
    return dim if is_held else None


def _written_out(constant: Node) -> int | None:
    """The dim of a constant of a few positions that are written out."""
    array = constant.constant() if constant.result().is_static and not mlir.is_splat(constant.raw) else None
    if array is None or array.size > MOST or array.dtype.kind not in "iu":
        return None
    return next((d for d, n in enumerate(array.shape) if n > 1 and (array == _positions(array.shape, d)).all()), None)


def _positions(shape: tuple[int, ...], dim: int) -> "np.ndarray[Any, Any]":
    return np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])


def _dim_behind_reshape(node: Node, dim: int | None) -> int | None:
    """The place of a dim after a reshape that only adds or removes dims of size 1."""
    before, after = node.operand(0).static_shape, node.result().static_shape
    if dim is None or before[dim] == 1 or [n for n in before if n != 1] != [n for n in after if n != 1]:
        return None
    place = [d for d, n in enumerate(before) if n != 1].index(dim)
    return [d for d, n in enumerate(after) if n != 1][place]


def _not_negative(select: Node) -> int | None:
    """That of x of select(x < 0, x + n, x), which counts negative numbers from the end: positions are not negative."""
    predicate, kept = select.operand(0).node, select.operand(2)
    if predicate is None or predicate.name != COMPARE or not _is_zero(predicate.operand(1)):
        return None
    is_below = mlir.enum_value(predicate.attribute("comparison_direction")) == "LT"
    along = counted_along(kept)
    return along if is_below and along is not None and counted_along(predicate.operand(0)) == along else None


def _is_zero(value: Value) -> bool:
    node = value.node
    if node is not None and node.name == BROADCAST_IN_DIM:
        return _is_zero(node.operand(0))
    constant = node.constant() if node is not None and node.name == CONSTANT else None
    return constant is not None and constant.dtype.kind in "iu" and not constant.any()
