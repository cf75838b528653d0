"""What a scatter writes, as a drawing in two dims: where the boxes lie, before anything says how they look.

Two dims of the operand are drawn, in the shape's proportions: those that windows move in first, then the batch
coordinate, then the largest of the others; each other dim is a line of text. A start that the data gives is drawn at
some place: the drawing shows one write that may happen, not the one that will.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod

from hlo_lower.causes import Code
from hlo_lower.scatter.record import ScatterRecord

MOST_WINDOWS = 8
MOST_BATCHES = 12
UNKNOWN_SIZE = 8
"""Cells that a dim of unknown size is drawn with."""

GOLDEN = 0.618034
"""Multiples of it, without their whole parts, are spread evenly, however many they are."""


class Look(Enum):
    """What a box stands for."""

    WRITTEN = "written"
    AGAIN = "again"  # a window that may write elements of another one
    OUTSIDE = "outside"  # a window that leaves the operand


@dataclass(frozen=True)
class Axis:
    """A dim that is drawn.

    Attributes:
      dim: its number; None where the operand has fewer dims than the drawing.
      size: how many cells.
      is_known: whether that is its size; else it is known at run time only.
      index: what is written of it, as in `Written`.
    """

    dim: int | None
    size: int
    is_known: bool
    index: str

    @property
    def told(self) -> str:
        """ "dim 2: pos of 64"; of a dim that is written whole "dim 3: 16"."""
        size = str(self.size) if self.is_known else "?"
        return "" if self.dim is None else f"dim {self.dim}: {size}" if self.is_whole else self._moved(size)

    def _moved(self, size: str) -> str:
        return f"dim {self.dim}: {self.index} of {size}"

    @property
    def is_whole(self) -> bool:
        """Whether all of it is written."""
        return self.index == ":"

    @property
    def is_batch(self) -> bool:
        """Whether each of its coordinates has windows of its own."""
        return self.index == "b"

    @property
    def is_placed(self) -> bool:
        """Whether the data gives the start."""
        return not self.is_whole and not self.is_batch and self._fixed() is None

    @property
    def extent(self) -> int:
        """Cells of a window."""
        if fixed := self._fixed():
            return fixed[1] - fixed[0]
        added = re.fullmatch(r".+:.+\+(\d+)", self.index)
        return self.size if self.is_whole else min(int(added[1]), self.size) if added else 1

    def _fixed(self) -> tuple[int, int] | None:
        """First cell and the one behind the last of a place that is known."""
        known = re.fullmatch(r"(-?\d*):(\d+)|(-?\d+)", self.index)
        if known is None:
            return None
        first = int(known[3] or known[1] or 0)
        return first, int(known[2]) if known[2] else first + 1

    def sample(self, number: int, rows: int = 1) -> tuple[int, int]:
        """Cells of the window of a number: where it is known, else somewhere inside; rows of a run lie side by side."""
        if self.is_whole:
            return 0, self.size
        if self.is_batch:
            return number % self.size, number % self.size + 1
        if (fixed := self._fixed()) is not None:
            return fixed
        extent = min(max(self.extent, rows), self.size)
        start = int((0.4 + number * GOLDEN) % 1 * (self.size - extent + 1))
        return start, start + extent


@dataclass(frozen=True)
class Box:
    """Cells of the drawing: rows and columns from the first to the one behind the last; they may leave the operand."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    look: Look


@dataclass(frozen=True)
class Picture:
    """The drawing.

    Attributes:
      rows, columns: the dims that are drawn.
      boxes: what is written.
      captions: what the drawing does not show, a line each.
    """

    rows: Axis
    columns: Axis
    boxes: tuple[Box, ...]
    captions: tuple[str, ...]


def picture_of(record: ScatterRecord) -> Picture | None:
    """The drawing of what a scatter writes; None where that is not known, or the operand has no dim."""
    axes = [_axis(record, dim) for dim in range(len(record.writes.index))]
    if not axes or record.bounds.code is Code.NOT_KNOWN or 0 in record.operand_shape:
        return None
    rows, columns = _drawn(axes)
    boxes = tuple(_boxes(record, rows, columns))
    others = [axis for axis in axes if axis.dim not in (rows.dim, columns.dim) and axis.size > 1]
    return Picture(rows, columns, boxes, (*map(_each, others), *_captions(record, boxes)))


def _axis(record: ScatterRecord, dim: int) -> Axis:
    size = record.operand_shape[dim]
    return Axis(dim, UNKNOWN_SIZE if size is None else size, size is not None, record.writes.index[dim])


def _drawn(axes: Sequence[Axis]) -> tuple[Axis, Axis]:
    """The two dims that tell most, in the operand's order; the batch coordinate above where its windows lie."""
    wide = [axis for axis in axes if axis.size > 1] or [axes[-1]]
    placed = [axis for axis in wide if not axis.is_whole and not axis.is_batch]
    batch = [axis for axis in wide if axis.is_batch]
    whole = sorted((axis for axis in wide if axis.is_whole), key=lambda axis: -axis.size)
    chosen = [*placed[:2], *batch, *placed[2:], *whole][:2]
    if len(chosen) == 1:
        return Axis(None, 1, True, ":"), chosen[0]
    first, second = sorted(chosen, key=lambda axis: (not axis.is_batch, axis.dim or 0))
    return first, second


def _boxes(record: ScatterRecord, rows: Axis, columns: Axis) -> Iterator[Box]:
    if record.subset == "Empty" or record.bounds.code is Code.NOTHING_IN_BOUNDS:
        yield from _outside(rows, columns)
        return
    lengths, drawn = _run_lengths(record), list[Box]()
    for number in range(_shown(record, rows, columns)):
        place = rows.sample(number, lengths.get(rows.dim, 1)), _column(columns, number, lengths)
        box = Box(*place, Look.WRITTEN)
        if box not in drawn and (may_meet(record) or not any(_overlap(box, other) for other in drawn)):
            drawn.append(box)
    yield from drawn
    if may_meet(record):
        yield _shifted(rows, columns)
    if record.bounds.code is Code.GUARDED:
        yield from _outside(rows, columns)


def _overlap(box: Box, other: Box) -> bool:
    pairs = ((box.rows, other.rows), (box.columns, other.columns))
    return all(own[0] < their[1] and their[0] < own[1] for own, their in pairs)


def _column(columns: Axis, number: int, lengths: dict[int | None, int]) -> tuple[int, int]:
    """Rows and columns move apart, so that places are spread over both."""
    return columns.sample(number * 3 if columns.is_placed else number, lengths.get(columns.dim, 1))


def _shifted(rows: Axis, columns: Axis) -> Box:
    """A window that overlaps the first one by half, or is at its place where it is of one cell."""
    placed: list[tuple[int, int]] = []
    for axis, own in ((rows, rows.sample(0)), (columns, _column(columns, 0, {}))):
        half = (own[1] - own[0]) // 2 if axis.is_placed else 0
        half = -half if own[1] + half > axis.size else half
        placed.append((max(own[0] + half, 0), max(own[1] + half, 1)))
    return Box(placed[0], placed[1], Look.AGAIN)


def _outside(rows: Axis, columns: Axis) -> Iterator[Box]:
    """A window that leaves the operand in the first dim that it is placed in."""
    places = {True: rows.sample(0), False: _column(columns, 0, {})}
    axis = rows if rows.is_placed else columns if columns.is_placed else None
    if axis is not None:
        inside = axis.extent // 2
        places[axis is rows] = (axis.size - inside, axis.size - inside + axis.extent)
        yield Box(places[True], places[False], Look.OUTSIDE)


def _run_lengths(record: ScatterRecord) -> dict[int | None, int]:
    """How many rows of each dim a run covers."""
    claims = record.claims
    if record.subset != "Rows" or claims is None:
        return {}
    return {run.operand_dim: claims.positions[run.scatter_dim] for run in claims.runs}


def _shown(record: ScatterRecord, rows: Axis, columns: Axis) -> int:
    """How many windows are drawn."""
    count = 1 if record.subset == "Rows" else prod(record.writes.counts)
    if rows.is_batch or columns.is_batch:
        axes = [axis.size for axis in (rows, columns) if axis.is_batch]
        return min(MOST_BATCHES, max(axes), max(count, 1))
    is_one_place = not (rows.is_placed or columns.is_placed)
    return 1 if is_one_place else min(count, MOST_WINDOWS)


def may_meet(record: ScatterRecord) -> bool:
    """Whether windows may write the same element."""
    return record.unique != "proved" and prod(record.writes.counts or (2,)) > 1


def _each(axis: Axis) -> str:
    size = axis.size if axis.is_known else "?"
    return f"dim {axis.dim}: all of {size}" if axis.is_whole else f"dim {axis.dim}: {axis.index} of {size}"


def _captions(record: ScatterRecord, boxes: Sequence[Box]) -> Iterator[str]:
    count, drawn = prod(record.writes.counts), sum(box.look is Look.WRITTEN for box in boxes)
    if record.subset != "Rows" and 1 < drawn < count:
        yield f"{drawn} of {count:,} windows are drawn"
    if record.bounds.code is Code.GUARDED:
        what = "is dropped whole" if record.oob == "xla" else "is cut: what lies outside is dropped"
        yield f"a window that leaves the operand {what} (guard)"
    if record.bounds.code is Code.NOTHING_IN_BOUNDS:
        yield "nothing is inside: nothing is written"
    if may_meet(record):
        yield f"windows may meet: {record.combiner}" + (" by the last" if record.combiner == "assign" else "")
