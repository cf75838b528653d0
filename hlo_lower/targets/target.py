"""A target as data: which operations it refuses, each with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """A consumer of StableHLO.

    Attributes:
      name: as on the command line.
      description: one line.
      refused: operations that it does not take, with the reason; all others are taken.
    """

    name: str
    description: str
    refused: Mapping[str, str] = field(default_factory=dict[str, str])

    def refusal(self, op: str) -> str | None:
        """Why the target does not take an operation, or None if it does."""
        reason = self.refused.get(op)
        return None if reason is None else f"emits {op}, which {self.name} refuses: {reason}"
