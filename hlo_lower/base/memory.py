"""The memory of a program over its order, as data: what is live at each op, an estimate, and where its loops lie."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

MOST_STEPS = 120
"""Steps of a curve as it is told: of more ops several share one."""


@dataclass(frozen=True)
class LoopSpan:
    """Where a loop's body lies in a curve.

    Attributes:
      first, last: the places of its ops.
      where: the loop's own place ("llama.py:88").
    """

    first: int
    last: int
    where: str


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes that are live at each op, an estimate; arguments and results left out.

    Attributes:
      live: in program order; the body of a loop or of a function stands in its place, of a loop once.
      loops: the loops that are not within another one.
    """

    live: tuple[int, ...]
    loops: tuple[LoopSpan, ...] = ()

    @property
    def most(self) -> int:
        """Bytes at the peak."""
        return max(self.live, default=0)

    def steps(self, most: int = MOST_STEPS) -> list[int]:
        """The curve in so many steps at most, each with the largest of the ops that share it: peaks stay."""
        count = min(most, len(self.live))
        ends = [len(self.live) * step // count for step in range(count + 1)] if count else [0]
        return [max(self.live[first:last]) for first, last in pairwise(ends)]

    def to_json(self) -> dict[str, Any]:
        """What is told of it, as plain data."""
        loops = [{"first": span.first, "last": span.last, "where": span.where} for span in self.loops]
        return {"peak": self.most, "ops": len(self.live), "steps": self.steps(), "loops": loops}


def shown_bytes(size: int) -> str:
    """Bytes, readable."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):,.1f} {unit}"
    return f"{size} B"
