"""The verdict on a region: what it is, and what it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

Array = NDArray[Any]

SAME_TEXT = ("their text",)
"""Who judges pieces that are the same operations on the same inputs."""

Status = Literal["equal", "differs", "only run", "not judged"]
Basis = Literal["derived", "tested", "only run", "not judged", "differs"]
How = Literal["as it stands", "widened", "derived"]
Sizes = Literal["", "all", "chosen"]


@dataclass(frozen=True, repr=False)
class RegionVerdict:
    """The verdict on the regions that are alike.

    Attributes:
      function, where: the public function, and the way to the bodies that hold the pieces ("main > while 1").
      first, second: where the operations of the two pieces are.
      scatters: numbers of the scatters of the first module that the first piece holds, of all regions that are alike.
      status: "equal"; "differs"; "only run": no difference was found, which is no proof; "not judged".
      how: whether the pieces are equal as they stand, with producers of their inputs, or derived.
      producers: operations of the first module that were taken in.
      count: how many regions are alike.
      runs, judges: how many runs, and who compared.
      windows: how many windows of its scatters lay inside, overhanging and outside; how often one element was written.
      excluded: judges that were left out, each with the reason.
      not_exercised: branches and loop bodies of the pieces that no run entered.
      difference, reason: what differs, or why it is not judged or only run.
      inputs: arguments of the function, by place, on which the modules differ, or may by proof.
      rules: the rules that wrote the second piece, where the converter's records are at hand.
      laws: the laws that a derivation rests on, beside the definitions of the ops.
      from_cache: whether an earlier verification found it (`--cache`).
      sizes: of modules of symbolic sizes "all" where it holds for all of them, "chosen" where it was judged at some; of
        others "".

    Example:
      >>> [region] = hl.verify("decode.mlir", hl.lower("decode.mlir"), level="regions").regions
      >>> region.status, region.scatters, region.rules
      ('equal', (1,), ('guarded_dynamic_update_slice',))
    """

    function: str
    where: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scatters: tuple[int, ...] = ()
    status: Status = "equal"
    how: How = "as it stands"
    producers: int = 0
    count: int = 1
    runs: int = 0
    judges: tuple[str, ...] = ()
    windows: tuple[int, int, int, int] = (0, 0, 0, 0)
    excluded: tuple[str, ...] = ()
    not_exercised: tuple[str, ...] = ()
    difference: str = ""
    reason: str = ""
    inputs: Mapping[int, Array] = field(default_factory=dict[int, Array], compare=False, repr=False)
    rules: tuple[str, ...] = ()
    laws: tuple[str, ...] = ()
    from_cache: bool = field(compare=False, default=False)
    sizes: Sizes = ""

    @property
    def basis(self) -> Basis:
        """What the verdict rests on: "derived" holds for all inputs, "tested" for those that were driven or chosen."""
        if self.status != "equal" or self.sizes == "chosen":
            return self.status if self.status != "equal" else "tested"
        return "derived" if self.how == "derived" or self.judges == SAME_TEXT else "tested"

    def __repr__(self) -> str:
        what = (
            f"scatter{'s' * (len(self.scatters) > 1)} {', '.join(map(str, self.scatters))} in " if self.scatters else ""
        )
        told = self.difference or self.reason
        if self.status == "equal":
            told = "derived" if self.how == "derived" else f"{self.how}, {self.runs} runs"
            told += {"all": " for all sizes", "chosen": " at chosen sizes"}.get(self.sizes, "")
        return f"<RegionVerdict {what}{self.where}: {self.status}: {told}>"
