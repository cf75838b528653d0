"""What came of the cases of a rule."""

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
