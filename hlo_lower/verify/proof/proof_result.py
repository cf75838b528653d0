"""What a proof ends with."""

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray


@dataclass(frozen=True)
class ProofResult:
    """Whether two modules compute the same.

    Attributes:
      status: "proved" for all arguments of the signature; "refuted" by the inputs below, on which the two were run and
        differ; "doubted" for the inputs below, for which the solver has them differ and no run shows it; "unknown"
        otherwise.
      reason: why it is not known, or where the two differ.
      inputs: for "refuted" and "doubted" an array for each argument.
      seconds: what it took.
    """

    status: Literal["proved", "refuted", "doubted", "unknown"]
    reason: str = ""
    inputs: tuple[NDArray[Any], ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        """Whether it is proved."""
        return self.status == "proved"
