"""What a proof ends with."""

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray


@dataclass(frozen=True)
class ProofResult:
    """Whether two modules compute the same.

    Attributes:
      status: "proved" for all arguments of the signature; "refuted" by the inputs below, on which the two were run and
        differ; "unknown" otherwise.
      reason: why it is unknown, or where the two differ.
      inputs: for "refuted" an array for each argument.
      seconds: what it took.
    """

    status: Literal["proved", "refuted", "unknown"]
    reason: str = ""
    inputs: tuple[NDArray[Any], ...] = ()
    seconds: float = 0.0

    def __bool__(self) -> bool:
        """Whether it is proved."""
        return self.status == "proved"
