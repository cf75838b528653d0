"""What legalizing changed in a module, or left, in the words of a report."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from hlo_lower.base import english
from hlo_lower.base.causes import Cause


class Outcome(Enum):
    """What became of an operation."""

    LEGALIZED = "legalized"
    LOWERED = "lowered"  # an operation besides scatters that the target does not take as it is
    KEPT = "kept"  # the target takes it
    LEFT = "left"  # nothing is known that it could become


@dataclass(frozen=True)
class Change:
    """Operations of one kind and what became of them.

    Attributes:
      outcome: legalized, lowered, kept or left.
      op: what they were ("chlo.erf", "stablehlo.custom_call @mhlo.erf", 'stablehlo.composite "odml.softmax"').
      why: what they became, or why they stay.
      where: the place of the first one.
      count: how many.
    """

    outcome: Outcome
    op: str
    why: Cause
    where: str
    count: int = 1

    def __str__(self) -> str:
        times = "" if self.count == 1 else f", {self.count} times, first"
        return f"{self.outcome.value}: {self.op}{times} at {self.where}: {english.told(self.why)}"


def grouped(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes with those of one kind as one, in the order of their first ones."""
    first: dict[tuple[Outcome, str, Cause], Change] = {}
    counts: Counter[tuple[Outcome, str, Cause]] = Counter()
    for change in changes:
        key = (change.outcome, change.op, change.why)
        first.setdefault(key, change)
        counts[key] += change.count
    return tuple(replace(change, count=counts[key]) for key, change in first.items())
