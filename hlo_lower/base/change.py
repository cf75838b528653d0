"""What legalizing changed in a module, or left, in the words of a report, and what a target refuses of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code


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
        return f"{self.outcome.value}: {self.op}{times} at {self.where}: {english.phrase(self.why)}"


def merge_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Merge changes that differ in nothing but their count; each stands where its first one stood."""
    first: dict[tuple[Outcome, str, Cause], Change] = {}
    counts: Counter[tuple[Outcome, str, Cause]] = Counter()
    for change in changes:
        key = (change.outcome, change.op, change.why)
        first.setdefault(key, change)
        counts[key] += change.count
    return tuple(replace(change, count=counts[key]) for key, change in first.items())


# --- what a target refuses of a module, as data: what a report tells, and sums over many modules ---


SCATTER = "stablehlo.scatter"

BY_TARGET = (Code.REFUSES_OPS, Code.REFUSES_OP_ON, Code.REFUSES_DTYPE)
"""Reasons that a target's file gives."""


@dataclass(frozen=True)
class RefusedOps:
    """Operations of a module that its target refuses for one reason.

    Attributes:
      op: their name; "" where it is an element type that is refused on every op.
      reason: why; of a scatter, what stands in the way of the nearest lowering.
      count: how many.
      places: where the first ones are.
      modules: in how many modules, where several are counted.
      remedy: the option of `Options` under which none of them is left, as on the command line ("--demote-i64"); ""
        where none is known.
    """

    op: str
    reason: Cause
    count: int
    places: tuple[str, ...]
    modules: int = 1
    remedy: str = ""


def with_remedies(refused: Sequence[RefusedOps], left: Sequence[tuple[str, Sequence[RefusedOps]]]) -> list[RefusedOps]:
    """The same, each with the first option under which nothing of its op is left, and nothing else is refused instead.

    Args:
      refused: what is refused.
      left: for each option, as on the command line, what is refused with it.
    """
    before = {one.op for one in refused}
    helpful = [(option, {one.op for one in others}) for option, others in left]
    helpful = [(option, ops) for option, ops in helpful if ops <= before]
    return [replace(one, remedy=next((o for o, ops in helpful if one.op not in ops), "")) for one in refused]


def total_refusals(modules: Iterable[Sequence[RefusedOps]]) -> tuple[RefusedOps, ...]:
    """Sum the refused ops of several modules, without their places; those in the most modules come first."""
    found: dict[tuple[str, Cause, str], RefusedOps] = {}
    for refused in modules:
        here: dict[tuple[str, Cause, str], int] = {}
        for one in refused:
            key = (one.op, replace(one.reason, at="") if one.reason.code in BY_TARGET else one.reason.kind, one.remedy)
            here[key] = here.get(key, 0) + one.count
        for key, count in here.items():
            op, reason, remedy = key
            known = found.get(key, RefusedOps(op, reason, 0, (), 0, remedy))
            found[key] = replace(known, count=known.count + count, modules=known.modules + 1)
    return tuple(sorted(found.values(), key=lambda one: (-one.modules, -one.count, one.op)))
