"""Legal scatters as a hypothesis strategy. The examples shrink to one small scatter of f32 at one place."""

from typing import Any, cast

try:
    from hypothesis import strategies
except ImportError:
    raise ImportError("hlo_lower.testing.case_strategy needs hypothesis: pip install hypothesis") from None

from hlo_lower.testing.fuzz.case import CELLS, Case, draw_case
from hlo_lower.testing.fuzz.draw import Draw


class _Hypothesis:
    """Choices that hypothesis makes."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """See `Source`."""
        return cast(int, self._draw(strategies.integers(low, high)))


def legal_scatters(cell: tuple[str, str] | None = None) -> "strategies.SearchStrategy[Case]":
    """Any legal scatter, or one that is meant for a cell: a subset ("Rows") and a combiner family ("add", "min/max")
    of `CELLS`."""
    if cell is not None and cell not in CELLS:
        raise ValueError(f"{cell} is not a cell; the cells are {', '.join('/'.join(c) for c in CELLS)}")

    def build(draw: Any) -> Case:
        return draw_case(Draw(_Hypothesis(draw)), cell=cell)

    return strategies.composite(build)()
