"""Links along a dim in which an op moves positions: slices, updates of slices, reverse, pad, concatenate, and gathers
of rows, windows and points.

Links of `ops/axes` know equal positions. Of these the operands' tiles are other positions than the result's, those that
a map of `tile/subsets.py` says. So a label goes through them one way, from the result to the operands.
"""

from dataclasses import dataclass, field
from itertools import accumulate
from math import prod

import numpy as np

from hlo_lower.facts.memory.dataflow import Dataflow, size_of
from hlo_lower.facts.scatter.combine import is_order_free
from hlo_lower.facts.values.region import classify_region
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.axes.cut import AxisLink, OpAxes
from hlo_lower.ops.axes.op_axes import counted_dim, is_summed
from hlo_lower.ops.axes.parts import INDEX, DimSubset, Filter, StridedRange, clamped_start, greatest_start
from hlo_lower.tile.prepare.row_picks import row_pick
from hlo_lower.tile.subsets import Move, Moved, Picked, Run, tile

MOST_RUNS = 8
"""Pieces that follow each other along a dim, at most: each has a loop of its own."""

MORE_ROWS = 2
"""Rows are computed where they are gathered only if no more than so many times as many are gathered as there are."""


@dataclass(frozen=True)
class MovedLink(AxisLink):
    """The dims of an op along which it moves positions, and where those of its result come from."""

    move: Move = field(kw_only=True)


def index_lists(build: Builder, indices: Value, along: int, vector: int) -> Value:
    """An index tensor as lists along one of its dims, [*others, n, components]; dims of one position are left out."""
    if vector == len(indices.shape):
        indices = build.reshape(indices, (*indices.static_shape, 1))
    others = [d for d in range(len(indices.shape)) if d not in (along, vector)]
    lists = build.transpose(indices, [*others, along, vector])
    *batch, count, components = lists.static_shape
    return build.reshape(lists, (*(n for n in batch if n > 1), count, components))


@dataclass(frozen=True)
class RowNumbers:
    """What a filter is by: the rows that a gather takes, clamped as it clamps them, along a dim of its index tensor;
    those of each batch, where it has batching dims."""

    node: Node
    along: int

    @property
    def indices(self) -> Value:
        """The index tensor."""
        return self.node.operand(1)

    def build(self, build: Builder, indices: Value) -> Value:
        """The rows, [*batch, n] of `INDEX`."""
        numbers = mlir.gather_dimension_numbers(self.node.raw)
        [dim] = numbers.start_index_map
        shape, element = indices.static_shape, indices.element_type
        last = greatest_start(indices, self.node.operand(0).static_shape[dim] - 1)
        low, high = (build.constant(bound, shape, element) for bound in (0, last))
        found = build.convert(build.clamp(low, indices, high), INDEX)
        lists = index_lists(build, found, self.along, numbers.index_vector_dim)
        return build.reshape(lists, lists.static_shape[:-1])

    def __str__(self) -> str:
        node = self.indices.node
        return f"argument {self.indices.number}" if node is None else "rows"


@dataclass(frozen=True)
class StartNumbers:
    """The positions by which a filter reads: those that a dynamic slice reads along a dim, clamped as it clamps them.

    For an update of a slice: for each position of the operand the position of the update that goes there.
    """

    node: Node
    dim: int

    @property
    def start(self) -> Value:
        """Where it begins."""
        return self.node.operand((1 if self.node.name == names.DYNAMIC_SLICE else 2) + self.dim)

    def build(self, build: Builder, start: Value) -> Value:
        """The positions, [n] of `INDEX`, each within what is read."""
        place = self._from(build, start)
        if self.node.name == names.DYNAMIC_SLICE:
            return place
        last = self.node.operand(1).static_shape[self.dim] - 1
        low, high = (build.constant(bound, place.static_shape, INDEX) for bound in (0, last))
        return build.clamp(low, place, high)

    def written_mask(self, build: Builder, start: Value) -> Value:
        """Which positions the update covers, as [n] truth values."""
        place, extent = self._from(build, start), self.node.operand(1).static_shape[self.dim]
        low, high = (build.constant(bound, place.static_shape, INDEX) for bound in (0, extent))
        return build.and_(build.compare(place, "GE", low), build.compare(place, "LT", high))

    def _from(self, build: Builder, start: Value) -> Value:
        """The positions counted from the start of a tensor, or from that of an update."""
        is_read = self.node.name == names.DYNAMIC_SLICE
        window = self.node.result() if is_read else self.node.operand(1)
        extent, length = (value.static_shape[self.dim] for value in (self.node.operand(0), self.node.result()))
        begin = build.convert(clamped_start(build, start, extent - window.static_shape[self.dim]), INDEX)
        counted, begins = build.iota((length,), 0, INDEX), build.broadcast(begin, (length,))
        return build.add(counted, begins) if is_read else build.subtract(counted, begins)

    def __str__(self) -> str:
        return "from a start"


@dataclass(frozen=True)
class WindowNumbers:
    """The positions by which a filter reads: those of a dim that the windows of a gather read, window by window.

    Windows are in the order of one dim of the index tensor, and then of its other dims.
    """

    node: Node
    dim: int
    along: int

    @property
    def indices(self) -> Value:
        """The index tensor."""
        return self.node.operand(1)

    @property
    def width(self) -> int:
        """Positions of a window."""
        return self.node.integers("slice_sizes")[self.dim]

    @property
    def component(self) -> int:
        """The place of the dim in an index vector."""
        return mlir.gather_dimension_numbers(self.node.raw).start_index_map.index(self.dim)

    @property
    def order(self) -> tuple[int, ...]:
        """The dims of the index tensor that are no vector, in the order of the windows."""
        vector = mlir.gather_dimension_numbers(self.node.raw).index_vector_dim
        return (self.along, *(d for d in range(len(self.indices.shape)) if d not in (vector, self.along)))

    def clamp_indices(self, build: Builder, indices: Value) -> Value:
        """Indices clamped so that their windows lie inside, of type `INDEX`."""
        numbers, sizes = mlir.gather_dimension_numbers(self.node.raw), self.node.integers("slice_sizes")
        vector, shape = numbers.index_vector_dim, indices.static_shape
        extents = self.node.operand(0).static_shape
        last = [greatest_start(indices, extents[d] - sizes[d]) for d in numbers.start_index_map]
        each = [len(last) if d == vector else 1 for d in range(len(shape))]
        high = build.constant_array(np.broadcast_to(np.array(last).reshape(each), shape), indices.element_type)
        return build.convert(build.clamp(build.constant(0, shape, indices.element_type), indices, high), INDEX)

    def build(self, build: Builder, indices: Value) -> Value:
        """The positions, [n] of `INDEX`."""
        vector, found = (
            mlir.gather_dimension_numbers(self.node.raw).index_vector_dim,
            self.clamp_indices(build, indices),
        )
        shape = list(found.static_shape)
        if vector < len(shape):
            starts, limits = [0] * len(shape), list(shape)
            starts[vector], limits[vector] = self.component, self.component + 1
            found = build.slice(found, starts, limits)
            found = build.reshape(found, [n for d, n in enumerate(shape) if d != vector])
        order = [d - (d > vector) for d in self.order]
        count, width = prod(found.static_shape), self.width
        first = build.reshape(build.transpose(found, order), (count,))
        every = build.broadcast(first, (count, width), (0,))
        return build.reshape(build.add(every, build.iota((count, width), 1, INDEX)), (count * width,))

    def renumber(self, build: Builder, indices: Value) -> Value:
        """A part of the index tensor for windows that this filter has read: they stand one behind the other now."""
        vector, found = (
            mlir.gather_dimension_numbers(self.node.raw).index_vector_dim,
            self.clamp_indices(build, indices),
        )
        shape = found.static_shape
        place, stride = build.constant(0, shape, INDEX), self.width
        for dim in reversed(self.order):
            place = build.add(
                place, build.multiply(build.iota(shape, dim, INDEX), build.constant(stride, shape, INDEX))
            )
            stride *= shape[dim]
        if vector == len(shape) or shape[vector] == 1:
            return place
        mine = build.compare(build.iota(shape, vector, INDEX), "EQ", build.constant(self.component, shape, INDEX))
        return build.select(mine, place, found)

    def __str__(self) -> str:
        return "windows"


@dataclass(frozen=True)
class UpdateNumbers:
    """What a filter is by: the updates of a scatter that go to a tile of its rows."""

    node: Node

    def __str__(self) -> str:
        return "updates"


MOST_CHUNKS = 256
"""Chunks of all updates of a scatter, at most: a loop that is known to end so soon is run as often as it may be."""

LEAST_CHUNK = 64
"""Updates of a scatter that are computed together, at least: fewer are not faster."""


@dataclass(frozen=True)
class FilteredLink(AxisLink):
    """The dims of a scatter along a dim that its indices count: those of its operand and its result are cut at equal
    positions, and of the updates those that go there are read (`emit/filtered_updates.py`).

    Attributes:
      batch: the dims of the updates along which each position has a list of its own.
    """

    batch: tuple[int, ...] = ()

    def needed_subset(self, node: Node, number: int, part: StridedRange) -> DimSubset:
        """The subset of an operand that rows of the result need.

        Of the updates it is a chunk with a fourth more than evenly spread updates would need, so that one chunk mostly
        suffices for a tile.
        """
        made = len(node.results)
        if number < made:
            return part
        count, rows = node.operand(made + 1).static_shape[self.operands[made + 1] or 0], node.result().static_shape
        chunk = max(LEAST_CHUNK, -(-count // MOST_CHUNKS), 5 * count * part.size // (4 * rows[self.results[0] or 0]))
        chunk = max(1, min(count, chunk))
        return Filter(UpdateNumbers(node), tile(0, chunk), batch=self.batch)


@dataclass(frozen=True)
class WrittenLink(FilteredLink):
    """The dim along which an update of a slice is written: those of its operand and its result are cut at equal
    positions, and of the update what goes there is read, its nearest end where nothing does."""

    def needed_subset(self, node: Node, number: int, part: StridedRange) -> DimSubset:
        """The subset of an operand that positions of the result need."""
        return part if number == 0 else Filter(StartNumbers(node, self.results[0] or 0), part)


FEWER_ROWS = 16
"""Updates of a scatter are computed with the tile that they go to if they are at least this part of all of it."""


def filtered_link(program: Dataflow, node: Node, dim: int) -> FilteredLink | None:
    """The link of a scatter along a dim that its indices count, where the updates are computed here.

    Along its longest dim updates have lists of positions; along the others each has one of its own, and their order is
    that of the chunks: so they have to be batches, or of a combiner whose order is free.
    """
    made = len(node.results)
    numbers, operand, updates = mlir.ScatterNumbers.of(node.raw), node.operand(0), node.operand(made + 1)
    places = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
    counted = [d for d in range(len(places) + 1) if d != numbers.index_vector_dim]
    free = [d for d, k in zip(places, counted, strict=False) if k not in numbers.scatter_indices_batching_dims]
    rest = [d for d in free if updates.shape[d] != 1] or free[-1:]
    is_made = any(value in program.maker and value not in program.cheap for value in node.operands[made + 1 :])
    is_much = 0 not in updates.shape and size_of(updates) * FEWER_ROWS >= size_of(operand)
    if not (rest and is_made and is_much and (len(rest) == 1 or _is_order_free(node))):
        return None
    along = max(rest, key=lambda d: updates.static_shape[d])
    lists = tuple(d for d in places if d != along and updates.shape[d] != 1)
    return FilteredLink((dim,) * made + (None,) + (along,) * made, (dim,) * made, batch=lists)


def _is_order_free(node: Node) -> bool:
    """Whether the updates of a scatter may be applied in any order; sums of floats may, as where tiles split them."""
    region, elements = classify_region(node.blocks[0]), [value.element_type for value in node.results]
    is_free = [is_order_free(c, e, reassociate=is_summed(e)) for c, e in zip(region.combiners, elements, strict=True)]
    return region.separable and all(is_free)


def moved_link(node: Node, dim: int) -> MovedLink | WrittenLink | None:
    """The link of an op along a dim in which it moves positions; None where it does not, or not so."""
    if not node.is_static:
        return None
    shape = node.result().static_shape
    if node.name == names.GATHER:
        is_few = size_of(node.result()) <= MORE_ROWS * size_of(node.operand(0))
        return (_rows(node, dim) if is_few else None) or _windows(node, dim)
    if node.name == names.DYNAMIC_SLICE:
        starts = (None,) * (len(node.operands) - 1)
        return MovedLink((dim, *starts), (dim,), move=Picked(StartNumbers(node, dim))) if 0 not in shape else None
    if node.name == names.DYNAMIC_UPDATE_SLICE:
        return _link_of_update(node, dim)
    if node.name not in (names.CONCATENATE, names.PAD, names.REVERSE, names.SLICE):
        return None
    length = node.result().static_shape[dim]
    runs = [run for run in _runs(node, dim, length) if run.count > 0]
    if not length or len(runs) > MOST_RUNS:
        return None
    cut = (dim, None) if node.name == names.PAD else (dim,) * len(node.operands)
    return MovedLink(cut, (dim,), move=Moved(length, tuple(runs)))


def _rows(node: Node, dim: int) -> MovedLink | None:
    """The link of a gather that takes whole rows along a dim."""
    rows = row_pick(node)
    if rows is None or rows.dim != dim:
        return None
    batch = tuple(d for d in rows.batch if node.operand(0).shape[d] != 1)
    return MovedLink((dim, None), (dim,), move=Picked(RowNumbers(node, rows.along), batch=batch))


def _windows(node: Node, dim: int) -> MovedLink | None:
    """The link of a gather of windows or of points along a dim of its index tensor: what is read of the dim that its
    indices count and that is the longest."""
    numbers, operand, indices = mlir.gather_dimension_numbers(node.raw), node.operand(0), node.operand(1)
    batch = [d for d in range(len(node.result().shape)) if d not in numbers.offset_dims]
    if row_pick(node) is not None or numbers.operand_batching_dims or dim not in batch or not numbers.start_index_map:
        return None
    places = [d for d in range(len(indices.shape)) if d != numbers.index_vector_dim]
    extents, sizes = operand.static_shape, node.integers("slice_sizes")
    mine = max(numbers.start_index_map, key=lambda d: (extents[d] // max(1, sizes[d]), -d))
    count = prod(indices.static_shape[d] for d in places)
    if not 0 < count * sizes[mine] <= MORE_ROWS * extents[mine]:
        return None
    along = places[batch.index(dim)]
    unit = sizes[mine] * count // indices.static_shape[along]
    return MovedLink((mine, None), (dim,), move=Picked(WindowNumbers(node, mine, along), unit))


def _link_of_update(node: Node, dim: int) -> WrittenLink | None:
    """The link of a slice update along the only dim that it does not cover; None if that dim is much longer than the
    update."""
    extents, sizes = node.operand(0).static_shape, node.operand(1).static_shape
    moved = [d for d, (extent, size) in enumerate(zip(extents, sizes, strict=True)) if extent != size]
    if moved != [dim] or not 0 < extents[dim] <= MORE_ROWS * sizes[dim]:
        return None
    return WrittenLink((dim, dim, *(None,) * len(extents)), (dim,))


def _runs(node: Node, dim: int, length: int) -> list[Run]:
    sizes = [value.static_shape[dim] for value in node.operands if len(value.shape) > dim]
    if node.name == names.CONCATENATE:
        is_along = node.integer("dimension") == dim
        places = [0, *accumulate(sizes)]
        return [Run(k, places[k], 0, size) for k, size in enumerate(sizes)] if is_along else []
    if node.name == names.REVERSE:
        return [Run(0, 0, length - 1, length, stride=-1)] if dim in node.integers("dimensions") else []
    if node.name == names.SLICE:
        return [Run(0, 0, node.integers("start_indices")[dim], length, stride=node.integers("strides")[dim])]
    low, between = (node.integers(name)[dim] for name in ("edge_padding_low", "interior_padding"))
    step = between + 1
    skipped = max(0, -(low // step)) if low < 0 else 0
    at = low + skipped * step
    count = min(sizes[0] - skipped, (length - 1 - at) // step + 1)
    return [Run(0, at, skipped, count, step)]


def link_at(program: Dataflow, node: Node, dim: int, *, is_asked: bool = False) -> AxisLink | None:
    """The link along which a dim of the results of a node is cut: of equal positions, or one that moves them.

    Args:
      program, node, dim: what is cut.
      is_asked: whether a loop over the node was asked for by hand, worthwhile or not.
    """
    axes = program.axes(node)
    if not isinstance(axes, OpAxes):
        return None
    known = axes.of_result(dim)
    if node.name == names.SCATTER and known is not None and counted_dim(node, known) is not None:
        return filtered_link(program, node, dim) or known
    if node.name == names.GATHER and known is not None and node.operand(0) in program.maker:
        return moved_link(node, dim) or known
    if node.name == names.DYNAMIC_SLICE and node.operand(0) not in program.maker and not is_asked:
        return known  # what is around a loop is sliced once
    return known or moved_link(node, dim)


def moves(node: Node) -> bool:
    """Whether an op moves positions along one of its dims."""
    return node.name == names.SCATTER or any(
        moved_link(node, dim) is not None for dim in range(len(node.result().shape))
    )
