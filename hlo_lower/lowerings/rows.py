"""A run of rows at base + iota: one write of all rows, those outside dropped one by one.

This is the KV cache of a prefill step, `cache.at[:, :, start + arange(n)].set(k)`, and torch's `index_copy`.
"""

from collections.abc import Sequence

from hlo_lower.analysis import ASSIGNING
from hlo_lower.graph import Value
from hlo_lower.lowerings.scatter_lowering import ScatterLowering
from hlo_lower.lowerings.window import READING, one_window
from hlo_lower.registry import RuleList
from hlo_lower.scatter.facts import Parts
from hlo_lower.subset.kinds import Rows

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
    subset=Rows,
    combiner=ASSIGNING,
    parts={Parts.ONE},
    form="dynamic_update_slice of the rows shifted into bounds, those outside masked",
)
def scatter_to_shifted_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of assigned rows, written at base + 0, ..., base + S - 1.

        %base  = the first index
        %s     = clamp(%base, 0, D - min(S, D))     the nearest place inside
        %moved = dynamic_slice(pad(%rows, S, S), (%s - %base) + S)
        %new   = select(0 <= iota + (%s - %base) < S, %moved, dynamic_slice(%operand, %s))
        %r     = dynamic_update_slice(%operand, %new, %s)

    Equal: row k of the updates is a window of its own, so under either policy it is written where `0 <= base + k < D`
    and dropped elsewhere, whatever becomes of the other rows (trap 4). That is what the shifted window does, element
    by element (the proof stands with `scatter_to_shifted_dynamic_update_slice`, and holds for S > D with the cut to
    the operand's extent). The rows differ, so no order matters. In other dims that may be out of bounds, whole rows are
    dropped by the select or, under oob=spec where they overhang, shifted alike. The index type may wrap around behind
    the last row: such a row is negative natively and beyond the operand here, dropped in both
    (`hlo_lower.scatter.layout`). Costs the update, padded; nothing is buffer-sized.
    """
    return one_window(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Rows,
    combiner=READING,
    parts={Parts.ONE},
    form="dynamic_slice, the region, select, dynamic_update_slice on the rows shifted into bounds",
)
def scatter_to_shifted_updated_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of rows that are combined with what is there.

    Equal as `scatter_to_shifted_rows` is; each element inside is combined once with what lies at its place, because the
    rows differ, so sums keep their order. Rows outside keep their value by the select, whatever the region computes
    (trap 19).
    """
    return one_window(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Rows,
    combiner=ASSIGNING,
    parts={Parts.SEVERAL},
    form="two of the shifted windows: the rows moved up from below 0 first, then the others",
)
def scatter_to_wrapped_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of assigned rows whose negative indices have been normalised one by one (trap 39).

    With `x = base + k`, exporters write `select(x < 0, x + A, x)` with A >= D. Rows with x < 0 are the run at base + A,
    the others the run at base:

        %first  = the first index              base + A if base < 0, else base
        %last   = the last index - (S - 1)     base if base + S - 1 >= 0, else base + A
        %part   = the shifted window at %first
        %r      = the shifted window of %part at %last

    Equal: if base >= 0 or base + S - 1 < 0, the run is in one piece, %first = %last, and the second write repeats the
    first. Else %first = base + A and %last = base. At base + A the rows with x >= 0 lie at A or beyond, outside, and at
    base those with x < 0 are negative, so each part writes its own rows. A row of the first part precedes all of the
    second in the updates, so where S > D lets them meet, the later one wins, as natively. A last index out of reach is
    saturated before S - 1 is subtracted, so nothing overflows. Costs twice the update.
    """
    return one_window(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Rows,
    combiner=READING,
    parts={Parts.SEVERAL},
    form="the same with the region, the second window only if it is another one",
)
def scatter_to_wrapped_updated_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of combined rows whose negative indices have been normalised.

    Equal as `scatter_to_wrapped_rows` is. Combined twice, a row would count twice, so the second window is written only
    if %first and %last differ; they are equal just when the run is in one piece.
    """
    return one_window(op)
