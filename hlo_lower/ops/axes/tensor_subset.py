"""Parts of tensors as values: along each axis a run of positions.

A part says where it lies, and nothing of how it is read or written (`hlo_lower.ops.axes.materialize`). Its kind is in
the vocabulary of the classifier (`hlo_lower.ops.subset`). It reads as `[i:+128, :] of 2048x32000`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.ops.subset import Subset


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


@dataclass(frozen=True)
class StridedRange:
    """Positions start, start + stride, ..., `size` of them, all inside of the axis."""

    start: Offset
    size: int
    stride: int = 1

    def __str__(self) -> str:
        tail = f":{self.stride}" if self.stride != 1 else ""
        return str(self.start) if self.size == 1 and not tail else f"{self.start}:+{self.size}{tail}"


def whole(size: int) -> StridedRange:
    """All of an axis."""
    return StridedRange(Offset(), size)


@dataclass(frozen=True)
class TensorSubset:
    """A part of a tensor.

    Attributes:
      shape: of the tensor.
      axes: the part of each axis.
    """

    shape: tuple[int, ...]
    axes: tuple[StridedRange, ...]

    def __post_init__(self) -> None:
        assert len(self.shape) == len(self.axes), (self.shape, self.axes)

    @classmethod
    def full(cls, shape: Sequence[int]) -> "TensorSubset":
        """All of a tensor."""
        return cls(tuple(shape), tuple(whole(size) for size in shape))

    def along(self, dim: int, axis: StridedRange) -> "TensorSubset":
        """The same with another part of one axis."""
        return TensorSubset(self.shape, (*self.axes[:dim], axis, *self.axes[dim + 1 :]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(axis.size for axis in self.axes)

    def is_whole(self, dim: int) -> bool:
        """Whether it is all of an axis, in order."""
        return self.axes[dim] == whole(self.shape[dim])

    @property
    def kind(self) -> Subset:
        """What a classifier calls it."""
        if 0 in self.sizes:
            return Subset.EMPTY
        if all(map(self.is_whole, range(len(self.shape)))):
            return Subset.FULL
        return Subset.POINT if set(self.sizes) == {1} else Subset.TILE

    def __str__(self) -> str:
        axes = [":" if self.is_whole(dim) else str(axis) for dim, axis in enumerate(self.axes)]
        return f"[{', '.join(axes)}] of {'x'.join(map(str, self.shape)) or 'scalar'}"
