"""A scatter as rows that have numbers: `operand[b, row[b, n], :]` is combined with `updates[b, n, :]`.

    operand [B, D, W]     B  batch coordinates: dims whose start is the position's own coordinate
    row     [B, N]        D  rows: the dims in which windows are placed, in row-major order
    updates [B, N, W]     N  writes to one batch coordinate: positions times the rows of a window
                          W  elements of a row: the dims that a window covers whole

Any scatter of static shape has this form. A window of several rows is taken apart into them: they differ, so that
within a window no order matters, and a window's rows stand next to each other, so that two windows keep theirs. Batch
coordinates never meet, so that their positions may come first. Each component of an index vector is checked by itself
before the row's number is made of them (trap 15); a row that is dropped, with its window or alone as the policy has
it, is given the number D, which no row has.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.facts import OutOfBounds
from hlo_lower.facts.scatter.layout import Layout
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value


@dataclass(frozen=True)
class FlatScatter:
    """A scatter's dims by what they are in the flat form.

    Attributes:
      scatter: the scatter in canonical form.
      batch: (operand dim, scatter dim) pairs, by operand dim.
      placed: operand dims in which windows are placed, or of which they cover a part.
      whole: the other operand dims; windows cover them.
      by_window: indexed dims in which a start may be out of bounds, which drops the whole window.
      by_row: those in which each row of the window is dropped by itself.
    """

    scatter: CanonicalScatter
    batch: tuple[tuple[int, int], ...]
    placed: tuple[int, ...]
    whole: tuple[int, ...]
    by_window: tuple[int, ...]
    by_row: tuple[int, ...]

    @cached_property
    def in_order(self) -> "FlatScatter":
        """The same with shorter rows, and more of them, so that no dim of the operand has to change its place.

        The dims before the last one in which windows are placed are rows, too; windows cover them. Batch dims that do
        not come first are still moved there.
        """
        last = max(self.placed, default=-1)
        earlier = tuple(d for d in self.whole if d < last)
        whole = tuple(d for d in self.whole if d > last)
        return replace(self, placed=tuple(sorted((*self.placed, *earlier))), whole=whole)

    @property
    def is_in_order(self) -> bool:
        """Whether the operand's dims are batch dims, rows and elements of a row, in this order."""
        return self._order == sorted(self._order)

    # --- sizes ---

    @cached_property
    def batches(self) -> int:
        """B."""
        return prod(self.scatter.operand_shape[d] for d, _ in self.batch)

    @cached_property
    def rows(self) -> int:
        """D."""
        return prod(self.scatter.operand_shape[d] for d in self.placed)

    @cached_property
    def window_rows(self) -> int:
        """Rows of one window."""
        return prod(self.scatter.window[d] for d in self.placed)

    @cached_property
    def writes(self) -> int:
        """N."""
        taken = {n for _, n in self.batch}
        return prod(s for n, s in enumerate(self.scatter.scatter_shape) if n not in taken) * self.window_rows

    @cached_property
    def width(self) -> int:
        """W."""
        return prod(self.scatter.operand_shape[d] for d in self.whole)

    @property
    def number_type(self) -> str:
        """The integer type of row numbers and of the numbers of writes."""
        return "i32" if max(self.batches * self.rows, self.batches * self.writes) < 1 << 30 else "i64"

    def parts(self, width: int, most: int) -> int:
        """In how many parts the writes are taken so that no mask of [B, D, n, width] has more elements than `most`."""
        wanted = -(-self.batches * self.rows * self.writes * width // most)
        return -(-self.writes // -(-self.writes // max(min(wanted, self.writes), 1)))

    # --- materialization ---

    def row_numbers(self, build: Builder) -> Value:
        """Which row each write is for, [B, N] in the number type; D if it is dropped."""
        scatter = self.scatter
        element, shape = self.number_type, (self.batches, self.writes)
        positions = (self.batches, self.writes // max(self.window_rows, 1))
        indices = scatter.canonical_indices(build)
        starts = {dim: self._column(build, indices, k, positions) for k, dim in enumerate(scatter.index_dims)}
        kept: Value | None = None
        for dim in self.by_window:
            last = scatter.operand_shape[dim] - scatter.window[dim]
            kept = _both(build, kept, _between(build, starts[dim], last))
        if kept is not None:
            kept = self._to_rows(build, kept, shape)
        number = build.constant(0, shape, element)
        stride = 1
        for dim in reversed(self.placed):
            place = self._place(build, dim, starts.get(dim), shape)
            if dim in self.by_row:
                kept = _both(build, kept, _between(build, place, scatter.operand_shape[dim] - 1))
            place = build.convert(place, element)  # a number that does not fit is dropped below
            if stride > 1:
                place = build.multiply(place, build.constant(stride, shape, element))
            number = place if stride == 1 else build.add(number, place)
            stride *= scatter.operand_shape[dim]
        if kept is not None:
            number = build.select(kept, number, build.constant(self.rows, shape, element))
        return number

    def updates(self, build: Builder) -> list[Value]:
        """The updates in the region's types, [B, N, W]."""
        m = len(self.scatter.scatter_shape)
        batch = [n for _, n in self.batch]
        order = [*batch, *(n for n in range(m) if n not in batch)]
        order += [m + d for d in (*self.placed, *self.whole, *(d for d, _ in self.batch))]
        shape = (self.batches, self.writes, self.width)
        return [build.reshape(build.transpose(u, order), shape) for u in self.scatter.canonical_updates(build)]

    def by_rows(self, build: Builder, value: Value) -> Value:
        """A value in the operand's shape as the rows of all batch coordinates, [B * D, W]."""
        return build.reshape(build.transpose(value, self._order), (self.batches * self.rows, self.width))

    def to_operand_shape(self, build: Builder, value: Value) -> Value:
        """A value of shape [B, D, W] in the operand's shape, its dims in the operand's order."""
        order = self._order
        value = build.reshape(value, [self.scatter.operand_shape[d] for d in order])
        return build.transpose(value, [order.index(d) for d in range(len(order))])

    def restored_mask(self, build: Builder, mask: Value) -> Value:
        """A truth of each row, [B, D], in the operand's shape."""
        dims = [*(d for d, _ in self.batch), *self.placed]
        mask = build.reshape(mask, [self.scatter.operand_shape[d] for d in dims])
        return build.broadcast(mask, self.scatter.operand_shape, dims)

    @property
    def _order(self) -> list[int]:
        """The operand's dims as the flat form has them."""
        return [*(d for d, _ in self.batch), *self.placed, *self.whole]

    def _column(self, build: Builder, indices: Value, k: int, positions: tuple[int, int]) -> Value:
        """Component k of the index vectors, [B, positions]."""
        shape = self.scatter.scatter_shape
        column = build.slice(indices, [*(0 for _ in shape), k], [*shape, k + 1])
        batch = [n for _, n in self.batch]
        order = [*batch, *(n for n in range(len(shape)) if n not in batch)]
        return build.reshape(build.transpose(build.reshape(column, shape), order), positions)

    def _place(self, build: Builder, dim: int, start: Value | None, shape: tuple[int, int]) -> Value:
        """The coordinate of each write in an operand dim, [B, N]: the start and the place within the window."""
        element, extents = self.scatter.start_type, [self.scatter.window[d] for d in self.placed]
        if start is not None:
            start = self._to_rows(build, start, shape)
        if self.scatter.window[dim] == 1:
            return build.constant(0, shape, element) if start is None else start
        within = build.iota(extents, self.placed.index(dim), element)
        spread = (shape[0], shape[1] // self.window_rows, self.window_rows)
        within = build.broadcast(build.reshape(within, (self.window_rows,)), spread, [2])
        within = build.reshape(within, shape)
        return within if start is None else build.add(start, within)

    def _to_rows(self, build: Builder, value: Value, shape: tuple[int, int]) -> Value:
        """What holds for a window, for each of its rows: [B, positions] to [B, N]."""
        spread = (*value.static_shape, self.window_rows)
        return build.reshape(build.broadcast(value, spread, [0, 1]), shape)


def flatten(scatter: CanonicalScatter, layout: Layout, unproved: Sequence[int], oob: OutOfBounds) -> FlatScatter:
    """Sort a scatter's dims into those of the flat form.

    Args:
      scatter: the scatter.
      layout: of which the batch dims are taken; rows of runs are rows like others here.
      unproved: indexed operand dims in which a window is not known to lie inside.
      oob: the policy.
    """
    batch = dict(sorted({**dict(layout.batch), **dict(scatter.batching)}.items()))
    indexed = [d for d in scatter.index_dims if d not in batch]
    at_risk = [d for d in indexed if d in unproved]
    by_row = tuple(d for d in at_risk if oob is OutOfBounds.SPEC and scatter.window[d] > 1)
    placed = tuple(
        d
        for d in range(scatter.rank)
        if d not in batch and (scatter.window[d] < scatter.operand_shape[d] or d in by_row)
    )
    return FlatScatter(
        scatter=scatter,
        batch=tuple(batch.items()),
        placed=placed,
        whole=tuple(d for d in range(scatter.rank) if d not in batch and d not in placed),
        by_window=tuple(d for d in at_risk if d not in by_row),
        by_row=by_row,
    )


def _between(build: Builder, value: Value, last: int) -> Value:
    """Whether 0 <= value <= last."""
    return build.and_(build.compare(value, "GE", 0), build.compare(value, "LE", last))


def _both(build: Builder, one: Value | None, other: Value) -> Value:
    return other if one is None else build.and_(one, other)
