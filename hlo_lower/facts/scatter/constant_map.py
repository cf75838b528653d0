"""Scatters whose indices are all constant, solved at conversion time: which update lands in which row.

The dims in which a window is smaller than the operand are flattened into one; a row is an element of that dim, with
the whole other dims. Windows are taken apart into rows in the order in which a scatter applies them, rows that the
policy drops are left out, and of several assignments to one row the last is kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns

Rows = NDArray[np.int64]

MAX_ROWS = 1 << 20
"""Most rows that are solved: 1 Mi, 8 MiB of row numbers."""


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of the updates that land in rows at an even distance.

    Attributes:
      source: the first row of the updates.
      target: where it lands.
      size: how many rows.
      stride: from one target to the next; at least 1.
      is_reversed: the rows of the updates are taken from the last to the first.
    """

    source: int
    target: int
    size: int
    stride: int = 1
    is_reversed: bool = False


@dataclass(frozen=True, eq=False)
class ConstantMap:
    """Where constant windows land.

    Attributes:
      dims: operand dims that are flattened into rows, in order.
      rows: how many rows the operand has.
      update_rows: how many rows the updates have, dropped and overwritten ones included.
      targets: the rows that are written, ascending.
      sources: for each the row of the updates that is kept.
      is_unique: whether no row is written twice.
      pieces: the same as runs, or None where there are more than were asked for.
    """

    dims: tuple[int, ...]
    rows: int
    update_rows: int
    targets: Rows
    sources: Rows
    is_unique: bool
    pieces: tuple[Piece, ...] | None


def solve(
    scatter: CanonicalScatter,
    interval: Interval,
    *,
    drops_windows: bool,
    most_pieces: int,
    dense_per_row: int | None = None,
) -> ConstantMap | None:
    """The map of a scatter with constant indices, or None where there are too many rows.

    Args:
      scatter: the scatter.
      interval: of the indices, all known.
      drops_windows: whether a window that reaches out is dropped as a whole (oob=xla), or its outside elements alone.
      most_pieces: how many pieces are listed at most.
      dense_per_row: most elements of the operand, per row that is written, for which rows at an even distance above 1
        are one piece, since that is lowered to a pass over the operand; None is any number.
    """
    touched = tuple(d for d in range(scatter.rank) if scatter.window[d] != scatter.operand_shape[d])
    extents = [scatter.window[d] for d in touched]
    if scatter.positions * prod(extents) > MAX_ROWS or not touched:
        return None
    starts = _starts(scatter, interval)
    kept = np.ones(scatter.positions, np.bool_)
    for d in range(scatter.rank):
        last = scatter.operand_shape[d] - scatter.window[d]
        if drops_windows or d not in touched:
            kept &= (starts[d] >= 0) & (starts[d] <= last)
    if not drops_windows and any(bool((starts[d] != 0).any()) for d in range(scatter.rank) if d not in touched):
        return None  # a window as large as its dim that reaches out of it: its elements move within the row
    inside = kept[:, None]
    flat = np.zeros((scatter.positions, 1), np.int64)
    for d, extent in zip(touched, extents, strict=True):
        size = scatter.operand_shape[d]
        # Beyond the operand every place is as far out as its border, and the sum stays exact.
        begin = np.clip(starts[d], -extent, size).astype(np.int64)
        place = begin[:, None] + np.arange(extent)
        inside = (inside[:, :, None] & ((place >= 0) & (place < size))[:, None, :]).reshape(scatter.positions, -1)
        flat = (flat[:, :, None] * size + place[:, None, :]).reshape(scatter.positions, -1)
    sources = np.flatnonzero(inside.reshape(-1))
    targets = flat.reshape(-1)[sources]
    spread = dense_per_row is None or prod(scatter.operand_shape) <= dense_per_row * len(targets)
    # The last writer of each row: the first one from behind.
    written, from_behind = np.unique(targets[::-1], return_index=True)
    last = len(targets) - 1 - from_behind
    return ConstantMap(
        dims=touched,
        rows=prod(scatter.operand_shape[d] for d in touched),
        update_rows=scatter.positions * prod(extents),
        targets=written,
        sources=sources[last],
        is_unique=len(written) == len(targets),
        pieces=_pieces(sources[last], written, most_pieces, spread=spread),
    )


def _starts(scatter: CanonicalScatter, interval: Interval) -> list[NDArray[np.object_]]:
    """Per operand dim the start of each position, as exact integers in row-major order."""
    starts: list[NDArray[np.object_]] = [np.zeros(scatter.positions, object) for _ in range(scatter.rank)]
    lo, _ = interval.full()
    for dim, column in index_columns(scatter, len(interval.shape)):
        starts[dim] = np.asarray(lo[column], object).reshape(-1)
    coordinates = np.indices(scatter.scatter_shape).reshape(len(scatter.scatter_shape), -1)
    for dim, n in scatter.batching:
        starts[dim] = coordinates[n].astype(object)
    return starts


def _pieces(sources: Rows, targets: Rows, most: int, *, spread: bool) -> tuple[Piece, ...] | None:
    """Cut rows, sorted by target, into pieces: one if all advance evenly (spread, or by 1), else runs of neighbours."""
    total = len(targets)
    if total > 1:
        steps, strides = np.diff(sources), np.diff(targets)
        even = bool((steps == steps[0]).all() and (strides == strides[0]).all())
        if even and abs(int(steps[0])) == 1 and (spread or int(strides[0]) == 1):
            is_reversed = int(steps[0]) == -1
            first = int(sources[-1] if is_reversed else sources[0])
            return (Piece(first, int(targets[0]), total, int(strides[0]), is_reversed),)
    pieces: list[Piece] = []
    begin = 0
    while begin < total:
        if len(pieces) == most:
            return None
        size, is_reversed = 1, False
        for step in (1, -1):
            neighbours = (np.diff(sources[begin:]) == step) & (np.diff(targets[begin:]) == 1)
            length = 1 + (int(np.argmin(neighbours)) if not neighbours.all() else len(neighbours))
            if length > size:
                size, is_reversed = length, step == -1
        source = int(sources[begin + size - 1] if is_reversed else sources[begin])
        pieces.append(Piece(source, int(targets[begin]), size, 1, is_reversed))
        begin += size
    return tuple(pieces)


def row_major_boxes(first: int, size: int, shape: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Cut a run of row-major positions of a shape into boxes, in order: the starts and the extents of each."""
    inner = prod(shape[1:])
    place, end = first, first + size
    while place < end:
        outer, offset = divmod(place, inner)
        whole = (end - place) // inner
        if offset == 0 and whole:
            yield (outer, *(0 for _ in shape[1:])), (whole, *shape[1:])
            place += whole * inner
        else:
            taken = min(inner - offset, end - place)
            for starts, extents in row_major_boxes(offset, taken, shape[1:]):
                yield (outer, *starts), (1, *extents)
            place += taken
