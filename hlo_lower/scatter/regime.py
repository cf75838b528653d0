"""Size classes: which of several right forms pays, by thresholds that stand in one table."""

from dataclasses import dataclass
from enum import Enum
from math import prod

from hlo_lower.scatter.canonical import CanonicalScatter
from hlo_lower.scatter.constant_map import ConstantMap
from hlo_lower.scatter.layout import Layout
from hlo_lower.subset import Subset


class Regime(Enum):
    """The size class of a scatter.

    FEW_WINDOWS: so few windows that each gets ops of its own. SHORT_AXIS: rows along an axis so short that a pass over
    it costs no more than finding them, or spread over devices, where finding them would gather everything. STRIDED:
    constant rows at an even distance above 1. MANY: anything else.
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


def regime_of(
    scatter: CanonicalScatter,
    subset: Subset,
    layout: Layout,
    masked: tuple[int, ...],
    solved: ConstantMap | None,
    sizes: SizeTable,
    spread: frozenset[int] | None = frozenset(),
) -> Regime:
    """The size class of a scatter.

    Args:
      scatter: the scatter.
      subset: what it writes.
      layout: what its scatter dims do.
      masked: operand dims in which elements are dropped one by one.
      solved: where its constant windows land, if it is solved by that.
      sizes: the thresholds.
      spread: operand dims that are spread over devices; None where the module does not say.
    """
    if solved is not None:
        if solved.pieces is None:
            return Regime.MANY
        return Regime.STRIDED if any(piece.stride > 1 for piece in solved.pieces) else Regime.FEW_WINDOWS
    # A slice at a place in a dim that is spread over devices gathers the operand, once for each window; a compare with
    # an iota is made where the elements are.
    is_spread = spread is None or bool(spread & {*layout.coordinates, *scatter.index_dims})
    if is_spread and subset is Subset.BATCHED_TILE and not masked and _is_row_per_batch(scatter, layout):
        return Regime.SHORT_AXIS
    if layout.positions <= (sizes.few_windows if subset is Subset.BATCHED_TILE else 1):
        return Regime.FEW_WINDOWS
    if subset is Subset.BATCHED_TILE and not masked and _is_row_per_batch(scatter, layout):
        short = prod(scatter.operand_shape) <= sizes.dense_per_window * layout.positions
        return Regime.SHORT_AXIS if short else Regime.MANY
    return Regime.MANY


def _is_row_per_batch(scatter: CanonicalScatter, layout: Layout) -> bool:
    """Whether each window has extent 1 where the data places it, and is whole from 0 elsewhere."""
    placed = {*layout.coordinates, *scatter.index_dims}
    runs = {run.operand_dim for run in layout.runs}
    return all(
        layout.window[d] == (1 if d in placed and d not in runs else scatter.operand_shape[d])
        for d in range(scatter.rank)
    )
