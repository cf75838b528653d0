"""What a scatter writes, as a drawing: where its windows lie in the two dims that are drawn.

Each other dim is a line of text. A start that the data gives is drawn at some place: the drawing shows one write that
may happen, not the one that will.
"""

from collections.abc import Iterator, Sequence
from math import prod

from hlo_lower.base.causes import Code
from hlo_lower.base.drawing.picture import Axis, Box, Look, Picture, picture_lines, picture_svg, two_dims
from hlo_lower.base.short_forms import printable
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.row import writes

MOST_WINDOWS = 8
MOST_BATCHES = 12
UNKNOWN_SIZE = 8
"""Cells that a dim of unknown size is drawn with."""


def svg_of(record: ScatterRecord, *, alone: bool = False) -> str:
    """An SVG, with what it shows in words; "" where there is nothing to draw. One that stands `alone` in a file
    brings its colours for light and dark."""
    picture = picture_of(record)
    return "" if picture is None else picture_svg(picture, printable(writes(record)), alone=alone)


def text_of(record: ScatterRecord) -> list[str]:
    """The lines of the drawing, and what its characters mean; none where there is nothing to draw."""
    picture = picture_of(record)
    return [] if picture is None else picture_lines(picture)


def picture_of(record: ScatterRecord) -> Picture | None:
    """The drawing of what a scatter writes; None where that is not known, or the operand has no dim."""
    axes = [_axis(record, dim) for dim in range(len(record.writes.index))]
    if not axes or record.bounds.code is Code.NOT_KNOWN or 0 in record.operand_shape:
        return None
    rows, columns = two_dims(axes)
    boxes = tuple(_boxes(record, rows, columns))
    others = [axis for axis in axes if axis.dim not in (rows.dim, columns.dim) and axis.size > 1]
    return Picture(rows, columns, boxes, (*map(_each, others), *_captions(record, boxes)))


def _axis(record: ScatterRecord, dim: int) -> Axis:
    size = record.operand_shape[dim]
    return Axis(dim, UNKNOWN_SIZE if size is None else size, size is not None, record.writes.index[dim])


def _boxes(record: ScatterRecord, rows: Axis, columns: Axis) -> Iterator[Box]:
    if record.subset == "Empty" or record.bounds.code is Code.NOTHING_IN_BOUNDS:
        yield from _outside(rows, columns)
        return
    lengths, drawn = _run_lengths(record), list[Box]()
    for number in range(_window_count(record, rows, columns)):
        place = rows.sample(number, lengths.get(rows.dim, 1)), _column(columns, number, lengths)
        box = Box(*place, Look.WRITTEN)
        if box not in drawn and (may_meet(record) or not any(_overlap(box, other) for other in drawn)):
            drawn.append(box)
    yield from drawn
    if may_meet(record):
        yield _overlapping_box(rows, columns)
    if record.bounds.code is Code.GUARDED:
        yield from _outside(rows, columns)


def _overlap(box: Box, other: Box) -> bool:
    pairs = ((box.rows, other.rows), (box.columns, other.columns))
    return all(own[0] < their[1] and their[0] < own[1] for own, their in pairs)


def _column(columns: Axis, number: int, lengths: dict[int | None, int]) -> tuple[int, int]:
    """Rows and columns move apart, so that places are spread over both."""
    return columns.sample(number * 3 if columns.is_placed else number, lengths.get(columns.dim, 1))


def _overlapping_box(rows: Axis, columns: Axis) -> Box:
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
    """The number of rows of each dim that a run covers."""
    claims = record.claims
    if record.subset != "Rows" or claims is None:
        return {}
    return {run.operand_dim: claims.positions[run.scatter_dim] for run in claims.runs}


def _window_count(record: ScatterRecord, rows: Axis, columns: Axis) -> int:
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
