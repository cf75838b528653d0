"""A loop over tiles, as drawings: of each tensor what one step reads, computes, writes or accumulates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_lower.base.drawing.picture import Axis, Box, Look, Picture, two_dims
from hlo_lower.ops.axes.tensor_subset import StridedRange, TensorSubset

ROLES = {Look.READ: "reads", Look.HELD: "computes", Look.WRITTEN: "writes", Look.ADDED: "accumulates"}

MOST_PARTS = 4
"""Tensors of a role that are drawn, the largest."""


@dataclass(frozen=True)
class LoopPart:
    """A tensor, and the part that a step of a loop takes of it.

    Attributes:
      look: what the step does with it, one of ROLES.
      what: the tensor: "argument 1", or the op that gives it.
      part: a run along one dim, or all of it.
    """

    look: Look
    what: str
    part: TensorSubset

    @property
    def role(self) -> str:
        """What the step does with it, in words."""
        return ROLES[self.look]

    def __str__(self) -> str:
        return f"{self.role} {self.what}: {self.part}"

    def to_json(self) -> dict[str, str]:
        """As plain data."""
        return {"role": self.role, "what": self.what, "part": str(self.part)}

    def picture(self, step: int) -> Picture:
        """The drawing of what a step takes, by its number; what is only computed is never stored as a whole."""
        shape = self.part.shape
        axes = [_axis(dim, size, self._along(dim)) for dim, size in enumerate(shape)]
        rows, columns = two_dims(axes) if axes else (Axis(None, 1, True, ":"),) * 2
        cells = [_cells(axis, self._along(axis.dim), step) for axis in (rows, columns)]
        box = Box(cells[0], cells[1], self.look)
        return Picture(rows, columns, (box,), (), is_stored=self.look is not Look.HELD)

    def _along(self, dim: int | None) -> StridedRange | None:
        """The part of a dim; None where all of it is taken."""
        return None if dim is None or self.part.is_whole(dim) else self.part.axes[dim]


def drawn_step(steps: int, size: int) -> int:
    """The first step of the tile that is drawn: one behind the first, so that it is seen to move."""
    return -(-steps // size) * 2 // 5 * size


def in_roles(parts: Sequence[LoopPart]) -> Iterator[tuple[Sequence[LoopPart], int]]:
    """The parts that are drawn together: what is read, computed, given; and of each how many more there are."""
    for looks in ((Look.READ,), (Look.HELD,), (Look.WRITTEN, Look.ADDED)):
        found = [part for part in parts if part.look in looks]
        if found:
            yield found[:MOST_PARTS], len(found[MOST_PARTS:])


def _axis(dim: int, size: int, part: StridedRange | None) -> Axis:
    return Axis(dim, size, True, ":", unit=size) if part is None else Axis(dim, size, True, str(part), part.size)


def _cells(axis: Axis, part: StridedRange | None, step: int) -> tuple[int, int]:
    """The cells that a step takes of an axis."""
    if part is None:
        return 0, axis.size
    first = min(part.start.constant + part.start.scale * step, axis.size - part.size)
    return first, first + part.size
