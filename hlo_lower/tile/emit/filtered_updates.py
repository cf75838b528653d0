"""A scatter along a dim that its indices count, tile by tile, each tile with its own updates alone, computed with it.

Before the loop the updates are put in the order of the rows that they go to:

    %rows, %order = sort(%clamped, iota)          rows that are out of bounds last

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
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along, sort_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import StructuredLoop
from hlo_lower.ops.axes.parts import INDEX, greatest_start


@dataclass(frozen=True)
class SortedUpdates:
    """The updates of a scatter in the order of the rows that they go to; before the loops that take tiles of the rows.

    Attributes:
      rows: the row of each, [n] of `INDEX`; the number of rows for what is out of bounds.
      order: which updates they are, [n] of `INDEX`.
    """

    rows: Value
    order: Value

    @staticmethod
    def of(build: Builder, node: Node, indices: Value) -> "SortedUpdates":
        """Those of a scatter with indices of one component."""
        [dim] = mlir.ScatterNumbers.of(node.raw).scatter_dims_to_operand_dims
        extent, shape = node.result().static_shape[dim], indices.static_shape
        low, high = (build.constant(n, shape, indices.element_type) for n in (0, greatest_start(indices, extent - 1)))
        clamped = build.clamp(low, indices, high)
        inside = build.compare(clamped, "EQ", indices)
        found = build.select(inside, build.convert(clamped, INDEX), build.constant(extent, shape, INDEX))
        line = (prod(shape),)
        rows, order = sort_rows(build, build.reshape(found, line), [build.iota(line, 0, INDEX)], by_both=True)
        return SortedUpdates(rows, order)

    def below(self, build: Builder, row: Value) -> Value:
        """How many rows are below one, a scalar of `INDEX`."""
        here = build.compare(self.rows, "LT", build.broadcast(row, self.rows.static_shape))
        return reduce_along(build, build.convert(here, INDEX), build.constant(0, (), INDEX), 0, "add")


ChunkBuilder: TypeAlias = Callable[[Builder, Value, tuple[Value, ...]], Sequence[Value]]
"""Gives the updates of a chunk, from a builder in the loop over chunks, the number of each update, [chunk] of `INDEX`,
and the values that the loop was given."""


def scatter_tiles(
    build: Builder,
    node: Node,
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
      node: the scatter.
      sorted_: its updates in order.
      tiles: those of what it writes into.
      first: the first row of the tile, a scalar of `INDEX`.
      chunk: updates of a chunk.
      given: what the updates are computed from.
      updates: computes those of a chunk.
    """
    numbers = mlir.ScatterNumbers.of(node.raw)
    [dim] = numbers.scatter_dims_to_operand_dims
    size, count = tiles[0].static_shape[dim], sorted_.order.static_shape[0]
    shape = [chunk if n == count else n for n in node.operand(len(tiles)).static_shape]

    def number(build: Builder, value: int) -> Value:
        return build.constant(value, (), INDEX)

    low = sorted_.below(build, first)
    high = sorted_.below(build, build.add(first, number(build, size)))
    reach = build.add(build.subtract(high, low), number(build, chunk - 1))
    trips = build.divide(reach, number(build, chunk))

    def body(inner: Builder, trip: Value, carried: tuple[Value, ...], around: tuple[Value, ...]) -> Sequence[Value]:
        rows, order, low, high, first, *rest = around
        begin = inner.add(low, inner.multiply(trip, number(inner, chunk)))
        start = inner.minimum(begin, number(inner, count - chunk)) if chunk < count else number(inner, 0)
        place = inner.add(inner.broadcast(start, (chunk,)), inner.iota((chunk,), 0, INDEX))
        after = inner.compare(place, "GE", inner.broadcast(begin, (chunk,)))
        mine = inner.and_(after, inner.compare(place, "LT", inner.broadcast(high, (chunk,))))
        ids, row = (inner.dynamic_slice(value, [start], [chunk]) for value in (order, rows))
        here = inner.subtract(row, inner.broadcast(first, (chunk,)))
        index = inner.reshape(inner.select(mine, here, inner.constant(size, (chunk,), INDEX)), shape)
        operands = [*carried, index, *updates(inner, ids, tuple(rest))]
        flags = {name: mlir.parse_attribute("false") for name in ("indices_are_sorted", "unique_indices")}
        return inner.copy_on(node, operands, [value.raw.type for value in carried], flags).results

    around = [sorted_.rows, sorted_.order, low, high, first, *given]
    return StructuredLoop(trips, INDEX).emit_while(build, list(tiles), around, body)[: len(tiles)]
