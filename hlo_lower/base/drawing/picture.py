"""What is taken of a tensor, as a drawing in two dims: which of them, and which boxes.

Two dims are drawn, in the shape's proportions: those that a part moves in first, then the batch coordinate, then the
largest of the others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

GOLDEN = 0.618034
"""Multiples of it, without their whole parts, are spread evenly, however many they are."""


class Look(Enum):
    """What a box stands for."""

    READ = "read"
    HELD = "computed, never stored whole"
    WRITTEN = "written"
    ADDED = "accumulated"
    AGAIN = "again"  # a window that may write elements of another one
    OUTSIDE = "outside"  # a window that leaves the operand


@dataclass(frozen=True)
class Axis:
    """A dim that is drawn.

    Attributes:
      dim: its number; None where the operand has fewer dims than the drawing.
      size: how many cells.
      is_known: whether that is its size; else it is known at run time only.
      index: what is taken of it: ":" is all, "b" each batch coordinate, "2:5" a known place, "i:i+4" and "i:+4"
        one that is not.
      unit: cells between two lines of the grid.
    """

    dim: int | None
    size: int
    is_known: bool
    index: str
    unit: int = 1

    @property
    def told(self) -> str:
        """ "dim 2: pos of 64"; of a dim that is taken whole "dim 3: 16"."""
        size = str(self.size) if self.is_known else "?"
        return "" if self.dim is None else f"dim {self.dim}: {size}" if self.is_whole else self._moved(size)

    def _moved(self, size: str) -> str:
        return f"dim {self.dim}: {self.index} of {size}"

    @property
    def is_whole(self) -> bool:
        """Whether all of it is taken."""
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
        added = re.fullmatch(r".+:.*\+(\d+)", self.index)
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
      boxes: what is taken.
      captions: what the drawing does not show, a line each.
      is_stored: whether the tensor is there as a whole at any time.
    """

    rows: Axis
    columns: Axis
    boxes: tuple[Box, ...]
    captions: tuple[str, ...]
    is_stored: bool = True


def two_dims(axes: Sequence[Axis]) -> tuple[Axis, Axis]:
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
