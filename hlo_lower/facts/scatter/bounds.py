"""Where the windows of a scatter lie: inside, outside or overhanging, as far as the ranges of its indices tell."""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns
from hlo_lower.facts.scatter.facts import InBounds, OutOfBounds, Windows

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Placement:
    """Per operand dim and position, as far as it is known: where a window lies. Masks broadcast to the positions.

    Attributes:
      scatter: the scatter.
      inside: starts in [0, D - W].
      outside: starts in which no element lies in the operand.
      missed: starts that are surely not inside: outside or overhanging.
      sure_overhang: known starts that reach out in part; the window does if it is outside in no other dim.
    """

    scatter: CanonicalScatter
    inside: dict[int, Mask]
    outside: dict[int, Mask]
    missed: dict[int, Mask]
    sure_overhang: dict[int, Mask]

    def is_inside(self, dim: int) -> bool:
        """Whether every start in an operand dim is proved to be inside."""
        return dim not in self.inside or bool(np.all(self.inside[dim]))

    def windows(self) -> Windows:
        """Where the windows lie, whatever the policy."""
        if self.scatter.is_empty:
            return Windows.OUTSIDE
        outside = _any_of(self.outside)
        if np.all(_all_of(self.inside)):
            return Windows.INSIDE
        if np.all(outside):
            return Windows.OUTSIDE
        reaching = {d: self.inside[d] | self.sure_overhang[d] for d in self.inside}
        if np.any(_any_of(self.sure_overhang) & _all_of(reaching)):
            return Windows.OVERHANGS
        settled = {
            d: self.inside[d] | self.outside[d] | np.asarray(self.scatter.window[d] == 1)
            for d in self.scatter.index_dims
        }
        return Windows.WHOLE if np.all(_all_of(settled) | outside) else Windows.UNKNOWN

    def in_bounds(self, windows: Windows, oob: OutOfBounds) -> InBounds:
        """Whether updates are written, under a policy."""
        if windows is Windows.INSIDE:
            return InBounds.ALWAYS
        if windows is Windows.OUTSIDE:
            return InBounds.NEVER
        if oob is OutOfBounds.XLA and np.all(_any_of(self.missed)):
            return InBounds.NEVER
        return InBounds.UNKNOWN

    def causes(self) -> tuple[Cause, ...]:
        """What is proved, a cause per indexed dim."""
        told: list[Cause] = []
        for dim in self.scatter.index_dims:
            last = self.scatter.operand_shape[dim] - self.scatter.window[dim]
            told.append(Code.START_WITHIN(dim, last, self.is_inside(dim)))
        return tuple(told) or (Code.NO_INDEXED_DIM(),)


def place(scatter: CanonicalScatter, interval: Interval) -> Placement:
    """Compare each index column with its bounds: a start s is inside in [0, D - W] and outside in s <= -W or s >= D."""
    found = Placement(scatter, {}, {}, {}, {})
    for dim, column in index_columns(scatter, len(interval.shape)):
        low, high = interval.part(column)
        size, window = scatter.operand_shape[dim], scatter.window[dim]
        outside = np.asarray((high <= -window) | (low >= size), np.bool_)
        missed = np.asarray((high < 0) | (low > size - window), np.bool_)
        found.inside[dim] = np.asarray((low >= 0) & (high <= size - window), np.bool_)
        found.outside[dim] = outside
        found.missed[dim] = missed
        found.sure_overhang[dim] = np.asarray((low == high) & missed & ~outside, np.bool_)
    return found


def _all_of(masks: dict[int, Mask]) -> Mask:
    return reduce(np.logical_and, masks.values(), np.asarray(True))


def _any_of(masks: dict[int, Mask]) -> Mask:
    return reduce(np.logical_or, masks.values(), np.asarray(False))
