"""What came of the cases of a rule."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from hlo_lower.testing.prove.proof_case import ProofCase, concrete

Array = NDArray[Any]


@dataclass(frozen=True)
class Refuted:
    """A case in which a rule is wrong.

    Attributes:
      case: the case.
      after: the lowered module.
      inputs: an array for each argument, on which the two differ.
      reason: where they differ.
      confirmed: by which runs, in words.
    """

    case: ProofCase
    after: str
    inputs: tuple[Array, ...]
    reason: str
    confirmed: str

    @property
    def module(self) -> str:
        """The first module with its arguments concrete."""
        return concrete(self.case.text, self.inputs)


@dataclass(frozen=True)
class Undecided:
    """A case of which nothing is proved, and why."""

    name: str
    reason: str


@dataclass
class RuleOutcome:
    """The cases of one rule.

    Attributes:
      op, rule: what it lowers, and its short name.
      proved: number of modules that are proved for all indices and payloads.
      other: modules that another rule took, so that they say nothing of this one.
      unknown, refuted: the others.
      seconds: what it took.
    """

    op: str
    rule: str
    proved: int = 0
    other: int = 0
    unknown: list[Undecided] = field(default_factory=list[Undecided])
    refuted: list[Refuted] = field(default_factory=list[Refuted])
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """Modules that the rule took."""
        return self.proved + len(self.unknown) + len(self.refuted)

    @property
    def status(self) -> str:
        """ "refuted", "proved", "in part" or "no shape"."""
        if self.refuted:
            return "refuted"
        if not self.proved:
            return "no shape"
        return "in part" if self.unknown else "proved"

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`."""
        refuted = [
            {"case": r.case.name, "reason": r.reason, "confirmed": r.confirmed, "module": r.module, "after": r.after}
            for r in self.refuted
        ]
        counts = {"proved": self.proved, "tried": self.tried, "other": self.other, "seconds": round(self.seconds, 3)}
        unknown = [{"case": u.name, "reason": u.reason} for u in self.unknown]
        return {
            "op": self.op,
            "rule": self.rule,
            "status": self.status,
            **counts,
            "unknown": unknown,
            "refuted": refuted,
        }


HEADERS = ("rule", "proved", "tried", "unknown", "refuted", "seconds")


def render_text(outcomes: Sequence[RuleOutcome]) -> str:
    """A line for each rule, what is unknown by reason, and each counterexample as a module."""
    rows = [HEADERS, *(_row(o) for o in outcomes)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADERS))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines += ["", *_summary(outcomes)]
    for outcome in outcomes:
        lines += [f"{outcome.rule}: unknown: {count} because of {reason}" for reason, count in _reasons(outcome)]
        for refuted in outcome.refuted:
            lines += [
                f"{outcome.rule}: refuted: {refuted.case.name}",
                f"  {refuted.reason}; confirmed by {refuted.confirmed}",
                *(f"  | {line}" for line in refuted.module.splitlines()),
            ]
    return "\n".join(lines) + "\n"


def _row(outcome: RuleOutcome) -> tuple[str, ...]:
    counts = (outcome.proved, outcome.tried, len(outcome.unknown), len(outcome.refuted))
    return (outcome.rule, *map(str, counts), f"{outcome.seconds:.1f}")


def _reasons(outcome: RuleOutcome) -> list[tuple[str, int]]:
    return Counter(unknown.reason for unknown in outcome.unknown).most_common()


def _summary(outcomes: Sequence[RuleOutcome]) -> list[str]:
    """How many rules and shapes are proved, and which rules have none."""
    proved = [o for o in outcomes if o.proved and not o.refuted]
    without = [o.rule for o in outcomes if not o.tried]
    counts = [sum(o.proved for o in outcomes), sum(o.tried for o in outcomes)]
    told = (
        f"{len(proved)} of {len(outcomes)} rules have proved shapes and none refuted; {counts[0]} of {counts[1]} shapes"
    )
    return [told, *([f"no shape of the family is taken by: {', '.join(without)}"] if without else [])]


def render_json(outcomes: Sequence[RuleOutcome]) -> str:
    """The outcomes as JSON."""
    return json.dumps({"rules": [outcome.to_json() for outcome in outcomes]}, indent=2) + "\n"
