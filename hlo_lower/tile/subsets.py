"""Subsets of a dim and maps between dims, as values: how they compose, and which subset of an operand a tile reads.

A subset is a tile (`StridedRange`: full and point are cases of it) or a filter (`Filter`), each a list of positions in
order. They are closed under `compose`, and two are the same positions read in the same order where they are equal.

Where the positions of an op's result come from is a map: `Moved`, affine and piecewise (slice, reverse, pad with
interior and negative padding, concatenate; a roll is a concatenate of slices), or `Picked`, by an index tensor
(gather). `image` is the subset of the operand that a tile of the result reads:

    concatenate of 6 and 4   [i:+2] of 10, i from 6 on   ->   operand 1, [i-6:+2]
    reverse of 10            [i:+2] of 10                ->   operand 0, [9-i:+2:-1]
    gather by ids            [i:+2] of 10                ->   operand 0, ids[i:+2]

All of it is pure: no op is read and none is built.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from hlo_lower.ops.axes.parts import DimSubset, Filter, Offset, StridedRange, batch_of, is_run
from hlo_lower.ops.subset import Subset


def tile(start: Offset | int, size: int, stride: int = 1) -> StridedRange:
    """A tile; of one position it has no stride, so that equal tiles are equal values."""
    begin = Offset(start) if isinstance(start, int) else start
    return StridedRange(begin, size, stride if size > 1 else 1)


def affine(offset: Offset, factor: int, by: int) -> Offset:
    """`factor * offset + by`.

    Example:
      >>> str(affine(Offset(0, "i", 1), -1, 9))
      '-1*i+9'
    """
    scale = offset.scale * factor
    return Offset(offset.constant * factor + by, offset.iterator if scale else "", scale)


def _sum(one: Offset, other: Offset) -> Offset:
    assert not (one.scale and other.scale) or one.iterator == other.iterator, (one, other)
    scale = one.scale + other.scale
    return Offset(one.constant + other.constant, (one.iterator or other.iterator) if scale else "", scale)


def compose(outer: DimSubset, inner: DimSubset) -> DimSubset:
    """The positions of a subset of a subset: element k is element inner[k] of outer.

    Example:
      >>> str(compose(tile(10, 5, 2), tile(1, 3))), str(compose(tile(9, 10, -1), Filter("ids", tile(0, 4))))
      ('12:+3:2', '9 + -1*ids[0:+4]')
    """
    if isinstance(outer, Filter):
        return replace(outer, part=compose(outer.part, inner), batch=outer.batch or batch_of(inner))
    if isinstance(inner, Filter):
        first = _sum(outer.start, affine(inner.first, outer.stride, 0))
        return replace(inner, first=first, stride=outer.stride * inner.stride)
    start = _sum(outer.start, affine(inner.start, outer.stride, 0))
    return tile(start, inner.size, outer.stride * inner.stride)


def kind_of(subset: DimSubset, length: int) -> Subset:
    """What a subset of a dim of so many positions is called: full, tile, filter, point or empty."""
    if not subset.size:
        return Subset.EMPTY
    if isinstance(subset, Filter):
        return Subset.FILTER
    return Subset.FULL if subset == tile(0, length) else Subset.POINT if subset.size == 1 else Subset.TILE


Indices: TypeAlias = Mapping[Hashable, np.ndarray]


def positions(subset: DimSubset, iterators: Mapping[str, int], indices: Indices) -> np.ndarray:
    """The positions, where iterators and index tensors are known: what a subset means."""
    if isinstance(subset, Filter):
        elements = indices[subset.index][..., positions(subset.part, iterators, indices)]
        return at(subset.first, iterators) + subset.stride * elements
    return at(subset.start, iterators) + subset.stride * np.arange(subset.size)


def at(offset: Offset, iterators: Mapping[str, int]) -> int:
    """Where an offset is."""
    return offset.constant + (offset.scale * iterators[offset.iterator] if offset.scale else 0)


# --- maps: where the positions of an op's result come from ---


@dataclass(frozen=True)
class Run:
    """Positions `at + spacing * q` of a result read positions `first + stride * q` of an operand, q from 0 to `count`.

    Attributes:
      operand: which operand.
      at, spacing: of the result; between them stands filling.
      first, stride: of the operand.
      count: how many positions are read.
    """

    operand: int
    at: int
    first: int
    count: int
    spacing: int = 1
    stride: int = 1

    @property
    def end(self) -> int:
        """The position behind the last one that reads."""
        return self.at + (self.count - 1) * self.spacing + 1

    @property
    def read(self) -> StridedRange:
        """What it reads of the operand."""
        return tile(self.first, self.count, self.stride)


@dataclass(frozen=True)
class Image:
    """What a tile of a result reads.

    Attributes:
      operand: which operand; None: it reads nothing, and is filling.
      part: which positions of it.
      lead, spacing: where they stand in the tile: at `lead + spacing * k`; between them stands filling.
    """

    operand: int | None
    part: DimSubset
    lead: int = 0
    spacing: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether the tile is what it reads, without filling."""
        return self.operand is not None and (self.lead, self.spacing) == (0, 1)


NOTHING = Image(None, tile(0, 0))
"""All of a tile is filling."""


@dataclass(frozen=True)
class Moved:
    """A map that is affine on each of its runs; positions outside of all are filling.

    Attributes:
      length: positions of the result.
      runs: in the order of their places, none within another.

    Example:
      >>> reverse = Moved(10, (Run(0, 0, 9, 10, stride=-1),))
      >>> str(reverse.image(tile(Offset(0, "i", 1), 2)).part)
      '-1*i+9:+2:-1'
    """

    length: int
    runs: tuple[Run, ...]

    def cut(self, part: DimSubset) -> int | None:
        """The first element of a part, where its iterator is 0, that belongs to another stretch than element 0; None
        where the part has an image as it is. A stretch is a run or the filling between two.

        Raises:
          ValueError: a filter goes through more than one stretch.
        """
        ends = sorted({0, self.length, *(run.at for run in self.runs), *(run.end for run in self.runs)})
        if isinstance(part, Filter):
            if len(ends) > 2 or len(self.runs) != 1:
                raise ValueError("a filter of pieces")
            return None
        places = part.start.constant + part.stride * np.arange(part.size)
        stretch = np.searchsorted(ends, places, side="right")
        others = np.flatnonzero(stretch != stretch[:1])
        return int(others[0]) if len(others) else None

    def image(self, part: DimSubset) -> Image:
        """What a part of the result reads that lies in one stretch, that of where it begins when its iterator is 0.

        Raises:
          ValueError: filling stands between what it reads, and not at the same places in each iteration.
        """
        if isinstance(part, Filter):
            [run] = self.runs
            return Image(run.operand, compose(run.read, part))
        known = part.start.constant
        run = next((run for run in self.runs if run.at <= known < run.end), None)
        if run is None:
            return NOTHING
        m = run.spacing
        is_dense = m > 1 and part.size > 1 and part.stride % m != 0
        if part.start.scale % m or (is_dense and abs(part.stride) != 1):
            raise ValueError("filling at other places in each iteration")
        lead = (part.stride * (run.at - known)) % m if is_dense else 0
        count = max(0, -(-(part.size - lead) // m)) if is_dense else part.size
        if not count or (not is_dense and (known - run.at) % m):
            return NOTHING
        start = affine(part.start, 1, part.stride * lead - run.at)
        quotient = Offset(start.constant // m, start.iterator, start.scale // m)
        stride = part.stride if is_dense else part.stride // m if part.size > 1 else 1
        return Image(run.operand, compose(run.read, tile(quotient, count, stride)), lead, m if is_dense else 1)


@dataclass(frozen=True)
class Picked:
    """A map by an index tensor: position p of the result reads position index[p] of operand 0; where it reads `unit`
    positions, those that the elements from `unit * p` on name.

    Attributes:
      index: the index tensor, whose elements lie within the operand.
      unit: how many positions it reads.
      batch: the other dims of the result along which each position has a list of its own.
    """

    index: Hashable
    unit: int = 1
    batch: tuple[int, ...] = ()

    def cut(self, part: DimSubset) -> int | None:
        """None: every part has an image."""
        return None

    def image(self, part: DimSubset) -> Image:
        """The filter by the part's indices.

        Raises:
          ValueError: positions of the result that do not follow each other read several each, or those of a batch have
            lists of their own along other dims than the index tensor.
        """
        if self.unit == 1:
            mine = batch_of(part)
            if self.batch and mine not in ((), self.batch):
                raise ValueError("lists along other dims")
            return Image(0, Filter(self.index, part, batch=mine or self.batch))
        if not is_run(part):
            raise ValueError("windows that do not follow each other")
        return Image(0, Filter(self.index, tile(affine(part.start, self.unit, 0), part.size * self.unit)))


Move: TypeAlias = Moved | Picked


def sources(move: Move, indices: Indices) -> Sequence[tuple[int, int]]:
    """For each position of the result the operand that it reads and where; -1 for filling: what a map means."""
    if isinstance(move, Picked):
        return [(0, int(n)) for n in indices[move.index]]
    found = [(-1, -1)] * move.length
    for run in move.runs:
        for q in range(run.count):
            found[run.at + run.spacing * q] = (run.operand, run.first + run.stride * q)
    return found
