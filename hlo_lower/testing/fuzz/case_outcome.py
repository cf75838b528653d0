"""What became of a case, and the tally of many."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hlo_lower.base.short_forms import by_count
from hlo_lower.testing.fuzz.case import CELLS, IMPOSSIBLE


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case."""

    name: str  # the case's
    # subset, family: what `classify` says
    subset: str = ""
    family: str = ""
    rule: str = ""  # the lowering that was chosen
    judges: tuple[str, ...] = ()  # who compared results: "reference", "XLA"
    not_xla: str = ""  # why XLA compared none, or not all argument sets; "" if it compared all
    ran_on: str = ""  # what ran the lowered case: "XLA", "interpreter", or "" if nothing could
    why_not_xla_ran: str = ""  # why it was not XLA
    bites: tuple[str, ...] = ()  # what changes the result: "overhang", "drop", "duplicate"
    second_look: bool = False  # whether it was equal only without fusion and algebraic simplification
    failure: str = ""  # "" or what is wrong


@dataclass
class Tally:
    """Counts over outcomes, and seconds spent on each step; added up over batches and processes."""

    counts: Counter[str] = field(default_factory=Counter[str])
    seconds: Counter[str] = field(default_factory=Counter[str])

    def add(self, outcome: CaseOutcome) -> None:
        """Count one case."""
        told = [("cases", ""), ("cell", f"{outcome.subset}/{outcome.family}"), ("rule", outcome.rule)]
        told += [("failed", "")] if outcome.failure else []
        told += [("judged by", " and ".join(outcome.judges) or "nobody")]
        told += [("not judged by XLA", outcome.not_xla)] if outcome.not_xla else []
        told += [("lowered run by", outcome.ran_on or "nothing")]
        told += [("lowered not run by XLA", outcome.why_not_xla_ran)] if outcome.why_not_xla_ran else []
        told += [("bites", name) for name in outcome.bites]
        told += [("bites", "any")] if outcome.bites else []
        told += [("second look", "")] if outcome.second_look else []
        self.counts.update(f"{kind}\t{what}" for kind, what in told)

    def extend(self, outcomes: Iterable[CaseOutcome], seconds: Mapping[str, float]) -> None:
        """Count a batch."""
        for outcome in outcomes:
            self.add(outcome)
        self.seconds.update(dict(seconds))  # pyright: ignore[reportArgumentType] Counter adds floats as well

    def of(self, kind: str) -> dict[str, int]:
        """The counts of one kind, the largest first."""
        return by_count({k.split("\t")[1]: n for k, n in self.counts.items() if k.split("\t")[0] == kind})

    def count(self, kind: str, what: str = "") -> int:
        """One count."""
        return self.counts[f"{kind}\t{what}"]

    def cells(self) -> dict[tuple[str, str], int]:
        """How many cases are in each cell that a scatter can be in."""
        return {(subset, family): self.count("cell", f"{subset}/{family}") for subset, family in CELLS}


def to_json(outcome: CaseOutcome) -> dict[str, Any]:
    """An outcome as plain data, without what is empty."""
    return {name: value for name, value in asdict(outcome).items() if value}


def from_json(plain: Mapping[str, Any]) -> CaseOutcome:
    """Back from plain data."""
    lists: dict[str, tuple[str, ...]] = {name: tuple(plain.get(name, ())) for name in ("judges", "bites")}
    return replace(CaseOutcome(**{name: value for name, value in plain.items() if name not in lists}), **lists)


def impossible_lines() -> list[str]:
    """The cells that no scatter is in, with the reason, a line each reason."""
    by_reason: dict[str, list[str]] = {}
    for (subset, family), reason in IMPOSSIBLE.items():
        by_reason.setdefault(reason, []).append(f"{subset}/{family}")
    return [f"{', '.join(cells)}: {reason}" for reason, cells in by_reason.items()]
