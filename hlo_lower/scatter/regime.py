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
      few_windows: most windows that are unrolled. Unrolled updates cost IREE 1.6 s of compile time at 32 of them and
        7.5 s at 128; at run time XLA CPU writes them as fast as its own scatter.
      dense_per_window: most elements of the operand, per window, for which a pass over the operand pays. A loop costs
        IREE 12 us a window. On XLA CPU a pass took 0.7 (2,048 windows, 320 elements each) to 1.06 times the native
        scatter's time (4,096 each), and in place, for a donated operand, 1.3 (256 each) to 2.1 times (4,096 each).
      constant_rows, growth: most rows of a constant table that replaces constant indices: as a number, or as a multiple
        of the size of the indices, whichever is more. They keep the module's text from growing; not measured.
    """

    few_windows: int = 16
    dense_per_window: int = 4096
    constant_rows: int = 4096
    growth: int = 4


SIZES = SizeTable()
