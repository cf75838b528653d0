"""What a rule says of an op: the axes along which its results can be computed piece by piece.

It is the one source of what follows what: labels spread by it (`hlo_lower.tile.find.labels`), and pieces are built by
it, of the parts of operands that a part of a result needs, and the other way round (`hlo_lower.ops.axes.cut`).
"""

from dataclasses import dataclass

THREADED = "threaded"
"""The `combine` of an op whose first operand goes in where its result comes out, piece after piece, in order."""


@dataclass(frozen=True)
class AxisLink:
    """One axis of an op: the dims of operands and results that are cut at the same places.

    Dims of different sizes are cut into as many steps: 2048 tokens and 4 sequences of 512 into at most 4.

    Attributes:
      operands: the dim of each operand that is cut; None: each piece takes the whole operand.
      results: the dim of each result that is cut; None: each piece gives something of the whole shape.
      combine: how what the pieces give becomes the result. "": the pieces are parts of it; an elementwise op ("add"):
        combined by it, from what it leaves alone or from the op's initial value; `THREADED`.
    """

    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]
    combine: str = ""

    def __post_init__(self) -> None:
        is_cut = {dim is not None for dim in self.results}
        assert is_cut == {not self.combine}, "results are cut, all of them, or combined"


@dataclass(frozen=True)
class OpAxes:
    """The axes of an op. Where a dim is in no axis, a part along it is computed from all of the op."""

    axes: tuple[AxisLink, ...]

    def of_result(self, dim: int) -> AxisLink | None:
        """The axis along which dim of the results is cut."""
        return next((axis for axis in self.axes if axis.results and axis.results[0] == dim), None)

    def of_operand(self, number: int, dim: int) -> AxisLink | None:
        """The axis along which dim of an operand is cut."""
        return next((axis for axis in self.axes if axis.operands[number] == dim), None)


@dataclass(frozen=True)
class Boundary:
    """Why an op is not computed piece by piece."""

    reason: str
