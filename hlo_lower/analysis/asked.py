"""What the rules of `sources` and `mapped` may ask: `Distinctness`, as they see it."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from hlo_lower.analysis.affine import AffineAnalysis
from hlo_lower.analysis.along import Along
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.index_facts import IndexAnalysis
from hlo_lower.analysis.linear import Linear, Position
from hlo_lower.analysis.places import Place
from hlo_lower.graph import Node, Value

Axes: TypeAlias = tuple[Position, ...]


class Asked(Protocol):
    """What gives facts: `hlo_lower.analysis.distinctness.Distinctness`, where the methods are described."""

    @property
    def intervals(self) -> IndexAnalysis: ...

    @property
    def affine(self) -> AffineAnalysis: ...

    def along(self, value: Value, place: Place, axes: Axes, frame: Frame | None = None, depth: int = 0) -> Along: ...

    def fresh(self, size: int) -> Position: ...

    def moves_with(self, value: Value, place: Place, axes: Axes, frame: Frame | None) -> Axes: ...

    def hull(self, value: Value, frame: Frame | None) -> tuple[int, int]: ...

    def whole_dim(
        self, value: Value, place: Place, dim: int, axes: Axes, frame: Frame | None, depth: int
    ) -> tuple[Along, Position] | None: ...

    def picked(self, whole: Along, coordinate: Linear, size: int, axes: Axes) -> Along: ...


Rule: TypeAlias = Callable[[Asked, Value, Node, Place, Axes, Frame | None, int], Along]
"""What an op's result is along positions: the analysis, the result, its node, the place, the axes, frame and depth."""
