"""Gather and scatter: the dims of the index tensor, batching dims, and window dims that are covered from end to end; of
a scatter also the dims that its indices count along."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import THREADED, AxisLink, Boundary, Cut
from hlo_lower.ops.axes.dynamic_tile import clamped_position
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import AND, GATHER, SCATTER, WHILE


def index_dims(rank: int, vector: int) -> list[int]:
    """The dims of an index tensor that count positions: all but the one that holds the index vector."""
    return [d for d in range(rank) if d != vector]


@subset_rules.axes(GATHER)
def gather(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dims of the index tensor; with them batching dims of the operand; offset dims that take all of a dim.

    Right: a window is read for each position of the index tensor, by itself. Where a window covers a dim its start is
    clamped to 0, for a piece of the dim as for all of it.
    """
    operand, indices = node.operands
    numbers = mlir.gather_dimension_numbers(node.raw)
    batch = [d for d in range(len(node.result().shape)) if d not in numbers.offset_dims]
    places = index_dims(len(indices.shape), numbers.index_vector_dim)
    batching = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    axes = [AxisLink((batching.get(i), i), (r,)) for i, r in zip(places, batch, strict=True)]
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windows = [d for d in range(len(operand.shape)) if d not in gone]
    sizes = node.integers("slice_sizes")
    for dim, offset in zip(windows, numbers.offset_dims, strict=True):
        if sizes[dim] == operand.shape[dim]:
            axes.append(AxisLink((dim, None), (offset,)))
    return axes


@subset_rules.piece(GATHER)
def gather_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Where a window dim is cut its slice size is the piece's; a batching dim keeps 1. See `clamped_position`."""
    dim = cut.axis.operands[0]
    numbers = mlir.gather_dimension_numbers(cut.node.raw)
    sizes = list(cut.node.integers("slice_sizes"))
    operand, indices = cut.operands
    if dim is not None and dim not in numbers.operand_batching_dims:
        sizes[dim] = operand.static_shape[dim]
    last = [operand.static_shape[d] - sizes[d] for d in numbers.start_index_map]
    moved = replace(cut, operands=(operand, clamped_position(build, indices, last, numbers.index_vector_dim)))
    return moved.same(build, {"slice_sizes": mlir.dense_i64(sizes)})


@subset_rules.axes(SCATTER)
def scatter(node: Node) -> Sequence[AxisLink] | Boundary:
    """Window dims that are covered and not indexed; batching dims; dims that are indexed; the outermost scatter dim,
    threaded.

    Right: along a covered window dim and a batching dim each position of the result is written from the updates of the
    same position. Scatter positions are applied in row-major order: pieces of the outermost dim of more than one
    position, one after the other, each into what the ones before left, are the same positions in the same order, so
    the last writer and the order of sums stay. A window out of bounds is dropped by itself, in a piece as in the whole.
    For a dim that is indexed, of which a window takes one position, see `scatter_piece`.
    """
    count = len(node.results)
    operand, indices, updates = node.operand(0), node.operand(count), node.operand(count + 1)
    numbers = mlir.ScatterNumbers.of(node.raw)

    def axis(mine: int | None, index: int | None, its: int | None, combine: str = "") -> AxisLink:
        return AxisLink((mine,) * count + (index,) + (its,) * count, (mine,) * count, combine)

    axes: list[AxisLink] = []
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = [d for d in range(len(operand.shape)) if d not in gone]
    for mine, its in zip(windows, numbers.update_window_dims, strict=True):
        if operand.shape[mine] == updates.shape[its] and mine not in numbers.scatter_dims_to_operand_dims:
            axes.append(axis(mine, None, its))
    places = index_dims(len(indices.shape), numbers.index_vector_dim)
    positions = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
    update_dim = dict(zip(places, positions, strict=True))
    for mine, index in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        axes.append(axis(mine, index, update_dim[index]))
    first = next((i for i in places if indices.shape[i] != 1), None)
    if first is not None and first not in numbers.scatter_indices_batching_dims:
        axes.append(axis(None, first, update_dim[first], THREADED))
    counted = [d for d in numbers.scatter_dims_to_operand_dims if d in numbers.inserted_window_dims]
    axes += [axis(d, None, None) for d in counted if is_countable(indices.element_type, operand.static_shape[d])]
    return axes


def is_countable(element: str, extent: int) -> bool:
    """Whether an index type tells positions below an extent from all that are not, whatever is subtracted from them."""
    dtype = mlir.dtype_of(element)
    if dtype is None or dtype.kind not in "iu":
        return False
    return extent <= 1 << (8 * dtype.itemsize - (dtype.kind == "i"))


def counted_dim(node: Node, axis: AxisLink) -> int | None:
    """The indexed dim of a scatter along which it is cut; None along another axis."""
    numbers = mlir.ScatterNumbers.of(node.raw)
    dim = axis.results[0]
    return dim if dim in numbers.scatter_dims_to_operand_dims and dim in numbers.inserted_window_dims else None


CARRYING = (WHILE, SCATTER)
"""What gives the operands that a loop over positions carries, or an unrolled one hands on, as they are."""


@subset_rules.piece(SCATTER)
def scatter_piece(build: Builder, cut: Cut) -> Sequence[Value]:
    """Along an indexed dim a piece gets all updates, its start subtracted from the indices: what is outside is dropped.

    Right: with s the start, n the size and D the extent, an index i of w bits is in the piece iff s <= i < s + n <= D.
    i - s, as w bits wrap around, is in [0, n) iff i is in [s, s + n) modulo 2**w; where D <= 2**(w - 1), or 2**w of an
    unsigned type (`is_countable`), no index below 0 or above D is congruent to one of these. So the piece drops exactly
    what goes elsewhere or nowhere, and the rest keeps its order. Indices that wrap around are not sorted any more.
    """
    numbers, count = mlir.ScatterNumbers.of(cut.node.raw), len(cut.node.results)
    dim = counted_dim(cut.node, cut.axis)
    indices = cut.operands[count] if dim is None else _from_start(build, cut, numbers, dim)
    moved = replace(cut, operands=(*cut.operands[:count], indices, *cut.operands[count + 1 :]))
    components = len(numbers.scatter_dims_to_operand_dims)
    source = cut.operands[0].node  # what a loop carries is no slice; what an unrolled one begins with may be
    is_carried = cut.axis.combine == THREADED and (source is None or source.name in CARRYING)
    if not is_carried and components and prod(indices.static_shape) == components:
        return _one_position(build, moved, numbers)
    return moved.same(build, {} if dim is None else {"indices_are_sorted": mlir.parse_attribute("false")})


def _from_start(build: Builder, cut: Cut, numbers: mlir.ScatterNumbers, dim: int) -> Value:
    """The indices of a scatter, counted along a dim from where the piece begins."""
    indices = cut.operands[len(cut.node.results)]
    shape, vector = indices.static_shape, numbers.index_vector_dim
    start = cut.start(build, indices.element_type)
    if vector == len(shape) or shape[vector] == 1:
        moved = build.broadcast(start, shape)
    else:
        place = numbers.scatter_dims_to_operand_dims.index(dim)
        here = build.compare(build.iota(shape, vector, "i32"), "EQ", build.constant(place, shape, "i32"))
        moved = build.select(here, build.broadcast(start, shape), build.constant(0, shape, indices.element_type))
    return build.subtract(indices, moved)


def _one_position(build: Builder, cut: Cut, numbers: mlir.ScatterNumbers) -> Sequence[Value]:
    """A scatter of one position, written at the clamped place; where that is another, the operands stay as they are.

    XLA makes a slice, an update and a select of it, too, but does not clamp the slice's start, and adds it to that of
    a slice that it reads from: what it wrote back to a piece stood outside of it.
    """
    count = len(cut.node.results)
    operands, indices, counted = cut.operands[:count], cut.operands[count], numbers.scatter_dims_to_operand_dims
    gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    windows = [d for d in range(len(operands[0].shape)) if d not in gone]
    extents = [cut.operands[-1].static_shape[d] for d in numbers.update_window_dims]
    sizes = dict.fromkeys(gone, 1) | dict(zip(windows, extents, strict=True))
    last = [operands[0].static_shape[d] - sizes[d] for d in counted]
    clamped = clamped_position(build, indices, last, numbers.index_vector_dim)
    is_there = build.reshape(build.compare(indices, "EQ", clamped), (len(counted),))
    each = [build.reshape(build.slice(is_there, (k,), (k + 1,)), ()) for k in range(len(counted))]
    inside = reduce(partial(build.elementwise, AND), each)
    written = replace(cut, operands=(*operands, clamped, *cut.operands[count + 1 :])).same(build)
    return [build.select(inside, new, old) for new, old in zip(written, operands, strict=True)]
