"""Parts of tensors as values: along each axis a run of positions or rows that an index tensor picks.

A part says where it lies, and nothing of how it is read or written (`hlo_lower.subset.materialize`). Its kind is in the
vocabulary of the classifier (`hlo_lower.subset.kinds`). It reads as `[i:+128, :] of 2048x32000`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlo_lower.subset.kinds import Subset


@dataclass(frozen=True)
class Offset:
    """`constant + scale * iterator`: a start that is known now, or in an iteration of a loop.

    Attributes:
      constant: in positions.
      iterator: the name of what counts, or "".
      scale: positions for one step of it; 0 where there is none.
    """

    constant: int = 0
    iterator: str = ""
    scale: int = 0

    def __str__(self) -> str:
        if not self.scale:
            return str(self.constant)
        term = self.iterator if self.scale == 1 else f"{self.scale}*{self.iterator}"
        return f"{term}+{self.constant}" if self.constant else term

    def minus(self, other: "Offset") -> int | None:
        """The distance to another one, or None where it is not the same in each iteration."""
        if (self.iterator, self.scale) != (other.iterator, other.scale):
            return None
        return self.constant - other.constant

    def moved(self, start: "Offset", stride: int) -> "Offset | None":
        """`start + stride * self`; None where both count something."""
        if self.scale and start.scale:
            return None
        which = self if self.scale else start
        scale = self.scale * stride if self.scale else start.scale
        return Offset(start.constant + stride * self.constant, which.iterator, scale)


@dataclass(frozen=True)
class StridedRange:
    """Positions start, start + stride, ..., `size` of them, all inside of the axis."""

    start: Offset
    size: int
    stride: int = 1

    def __str__(self) -> str:
        tail = f":{self.stride}" if self.stride != 1 else ""
        return str(self.start) if self.size == 1 and not tail else f"{self.start}:+{self.size}{tail}"


@dataclass(frozen=True)
class Rows:
    """Positions that an index tensor picks, in its order, repeated where it repeats them.

    Attributes:
      indices: the name of the index tensor.
      size: how many it picks.
    """

    indices: str
    size: int

    def __str__(self) -> str:
        return f"{{{self.indices}}}"


DimSubset: TypeAlias = StridedRange | Rows


def run(start: int, size: int, stride: int = 1) -> StridedRange:
    """A run at a start that is known now."""
    return StridedRange(Offset(start), size, stride)


@dataclass(frozen=True)
class TensorSubset:
    """A part of a tensor.

    Attributes:
      shape: of the tensor.
      axes: the part of each axis.
    """

    shape: tuple[int, ...]
    axes: tuple[DimSubset, ...]

    def __post_init__(self) -> None:
        assert len(self.shape) == len(self.axes), (self.shape, self.axes)

    @classmethod
    def full(cls, shape: Sequence[int]) -> "TensorSubset":
        """All of a tensor."""
        return cls(tuple(shape), tuple(run(0, size) for size in shape))

    def along(self, dim: int, axis: DimSubset) -> "TensorSubset":
        """The same with another part of one axis."""
        return TensorSubset(self.shape, (*self.axes[:dim], axis, *self.axes[dim + 1 :]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(axis.size for axis in self.axes)

    def is_whole(self, dim: int) -> bool:
        """Whether it is all of an axis, in order."""
        return self.axes[dim] == run(0, self.shape[dim])

    @property
    def kind(self) -> Subset:
        """What a classifier calls it."""
        if 0 in self.sizes:
            return Subset.EMPTY
        if all(map(self.is_whole, range(len(self.shape)))):
            return Subset.FULL
        if any(isinstance(axis, Rows) for axis in self.axes):
            return Subset.FILTER
        return Subset.POINT if set(self.sizes) == {1} else Subset.TILE

    def __str__(self) -> str:
        axes = [":" if self.is_whole(dim) else str(axis) for dim, axis in enumerate(self.axes)]
        return f"[{', '.join(axes)}] of {'x'.join(map(str, self.shape)) or 'scalar'}"

    def of(self, inner: "TensorSubset") -> "TensorSubset | None":
        """The part of the tensor that a part of this part is; None where it has no such form.

        Args:
          inner: a part of a tensor of this part's sizes.
        """
        assert inner.shape == self.sizes
        axes = [_composed(mine, its) for mine, its in zip(self.axes, inner.axes, strict=True)]
        found = [axis for axis in axes if axis is not None]
        return TensorSubset(self.shape, tuple(found)) if len(found) == len(axes) else None

    def contains(self, other: "TensorSubset") -> bool | None:
        """Whether every element of another part of the tensor is in this one; None where that is not known."""
        assert self.shape == other.shape
        if 0 in other.sizes:
            return True
        return _all(_covers(mine, its, size) for mine, its, size in zip(self.axes, other.axes, self.shape, strict=True))

    def is_disjoint(self, other: "TensorSubset") -> bool | None:
        """Whether the two have no element in common; None where that is not known."""
        assert self.shape == other.shape
        if 0 in self.sizes or 0 in other.sizes:
            return True
        overlaps = _all(_meets(mine, its) for mine, its in zip(self.axes, other.axes, strict=True))
        return None if overlaps is None else not overlaps


def _composed(outer: DimSubset, inner: DimSubset) -> DimSubset | None:
    if isinstance(outer, StridedRange) and isinstance(inner, StridedRange):
        start = inner.start.moved(outer.start, outer.stride)
        return None if start is None else StridedRange(start, inner.size, outer.stride * inner.stride)
    if isinstance(inner, StridedRange) and inner == run(0, outer.size):
        return outer
    if isinstance(outer, StridedRange):
        return inner if outer.start == Offset() and outer.stride == 1 else None
    return Rows(f"{outer.indices}[{inner}]", inner.size)


def _covers(outer: DimSubset, inner: DimSubset, size: int) -> bool | None:
    if outer in (inner, run(0, size)):
        return True
    if isinstance(outer, Rows) or isinstance(inner, Rows):
        return None
    distance = inner.start.minus(outer.start)
    if distance is None:
        return None
    last = distance + (inner.size - 1) * inner.stride
    inside = distance >= 0 and last <= (outer.size - 1) * outer.stride
    return inside and distance % outer.stride == 0 and (inner.stride % outer.stride == 0 or inner.size == 1)


def _meets(one: DimSubset, other: DimSubset) -> bool | None:
    if one == other:
        return True
    if isinstance(one, Rows) or isinstance(other, Rows):
        return None
    distance = other.start.minus(one.start)
    if distance is None:
        return None
    mine = range(0, one.size * one.stride, one.stride)
    its = range(distance, distance + other.size * other.stride, other.stride)
    if mine[-1] < its[0] or its[-1] < mine[0]:
        return False
    if one.stride == other.stride == 1:
        return True
    return bool(set(mine) & set(its)) if min(len(mine), len(its)) <= 1 << 16 else None


def _all(answers: Iterable[bool | None]) -> bool | None:
    """False where any is, else None where any is not known, else True."""
    found = list(answers)
    return False if False in found else None if None in found else True
