"""What became of one module: its line of the journal."""

from dataclasses import asdict, dataclass
from typing import Any

from hlo_lower.consumers import ConsumerOutcome


@dataclass(frozen=True)
class Entry:
    """One module.

    Attributes:
      module: its path below the folder, without the suffix.
      digest: of its text.
      scatters: how many it holds.
      not_judged: why there is nothing to compare with, or "".
      native, converted: what became of the two versions; None where there was nothing to compare with.
      not_lowered: why the conversion failed, or "".
      converted_digest: of the converted text; where it is the digest, nothing was converted.
      scatters_left: how many scatters the converted text holds.
      tool: what it was converted by (`made_by.tool`); an entry of another tool is stale.
      notes: which runs of the converted version are others than the module's, or left out, and which bounds say little.
    """

    module: str
    digest: str
    scatters: int = 0
    not_judged: str = ""
    native: ConsumerOutcome | None = None
    converted: ConsumerOutcome | None = None
    not_lowered: str = ""
    converted_digest: str = ""
    scatters_left: int = 0
    tool: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_lost(self) -> bool:
        """Whether the module was fine as it was, and is not fine converted."""
        return self._fine(self.native) and not self._fine(self.converted)

    @property
    def is_gained(self) -> bool:
        """Whether the module is fine converted, and was not before."""
        return self._fine(self.converted) and not self._fine(self.native)

    @property
    def is_due_to_scatter(self) -> bool:
        """Whether the consumer names a scatter as it refuses the converted module, or names nothing and one is left."""
        if self.converted is None or self.converted.ok:
            return False
        names = "scatter" in self.converted.cause and "select_and_scatter" not in self.converted.cause
        return names or (self.scatters_left > 0 and not self.converted.cause)

    @staticmethod
    def _fine(outcome: ConsumerOutcome | None) -> bool:
        return outcome is not None and outcome.ok

    def to_json(self) -> dict[str, Any]:
        """The entry as plain data."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Entry":
        """The entry that was written."""
        outcomes = {name: data[name] and ConsumerOutcome(**data[name]) for name in ("native", "converted")}
        return Entry(**{**data, **outcomes, "notes": tuple(data["notes"])})
