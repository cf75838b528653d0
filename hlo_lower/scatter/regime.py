"""Size classes: which of several right forms pays, by thresholds that stand in one table."""

from dataclasses import dataclass
from enum import Enum


class Regime(Enum):
    """The size class of a scatter.

    FEW_WINDOWS: so few windows that each gets ops of its own. SHORT_AXIS: rows along an axis so short that a pass over
    it costs no more than finding them. STRIDED: constant rows at an even distance above 1. MANY: anything else.
    """

    FEW_WINDOWS = "few_windows"
    SHORT_AXIS = "short_axis"
    STRIDED = "strided"
    MANY = "many"


@dataclass(frozen=True)
class SizeTable:
    """The thresholds, each with what it was set by.

    Attributes:
      few_windows: most windows that are unrolled.
      dense_per_window: most elements of the operand, per window, for which a pass over the operand pays.
      constant_rows, growth: most rows of a constant table that replaces constant indices: as a number, or as a multiple
        of the size of the indices, whichever is more.
    """

    few_windows: int = 16
    dense_per_window: int = 4096
    constant_rows: int = 4096
    growth: int = 4


SIZES = SizeTable()
