"""One window, assigned or combined with what is there: `dynamic_update_slice`, guarded as far as is needed.

A tile is the KV cache of a decode step, `cache.at[:, :, pos].set(k)`; a run of rows at base + iota, of which those
outside are dropped one by one, that of a prefill step, `cache.at[:, :, start + arange(n)].set(k)`, and torch's
`index_copy`.
"""

from collections.abc import Sequence
from functools import partial

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Drops, InBounds, Parts
from hlo_lower.facts.values.region import ASSIGNING
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.window import READING, one_window
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import Rows, Tile

rules = RuleList()
on_tile = partial(rules.lowers, SCATTER, subset=Tile)
on_rows = partial(rules.lowers, SCATTER, subset=Rows)


# --- a tile ---


@on_tile(combiner=ASSIGNING, in_bounds={InBounds.ALWAYS}, form="dynamic_update_slice")
def scatter_to_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that lies inside.

        %r = "stablehlo.scatter"(%operand, %index, %updates) ({ return %update })
        ->
        %r = stablehlo.dynamic_update_slice %operand, %window, %start...

    Equal, because `0 <= start <= D - W` is proved in every dim: nothing is dropped and `dynamic_update_slice` clamps
    nothing, so both write the window at the start. Both policies; one window, so no duplicates. In place on a donated
    buffer; costs the update.
    """
    return one_window(op)


@on_tile(
    combiner=ASSIGNING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_update_slice of select(in_bounds, update, dynamic_slice)",
)
def scatter_to_guarded_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that is dropped as a whole where it is out of bounds.

        %place = stablehlo.clamp 0, %start, D - W
        %old   = stablehlo.dynamic_slice %operand, %place...
        %new   = stablehlo.select (%place == %start), %window, %old
        %r     = stablehlo.dynamic_update_slice %operand, %new, %place...

    Equal: in bounds, nothing is clamped and the window is written. Out of bounds, what was read at the nearest place
    is written back there, so the operand is unchanged, as when the scatter drops the window
    (trap 2). For oob=xla, and for oob=spec where the window has extent 1 in every dim that may be out of bounds, so
    that dropping its elements is dropping it. The guard is as large as the update; in place on a donated buffer.
    """
    return one_window(op)


@on_tile(
    combiner=ASSIGNING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.ELEMENTS},
    form="dynamic_update_slice of the update shifted into bounds, its outside elements masked",
)
def scatter_to_shifted_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window whose elements are dropped one by one where they are out of bounds (oob=spec).

        %s     = clamp(%start, 0, D - W)             the nearest place inside
        %moved = dynamic_slice(pad(%window, W, W), (%s - %start) + W)
        %new   = select(0 <= iota + (%s - %start) < W, %moved, dynamic_slice(%operand, %s))
        %r     = dynamic_update_slice(%operand, %new, %s)

    Equal: the element at position p of the operand, s <= p < s + W, is written by element p - start of the window if
    that lies in [0, W), else not at all. With k = p - s this is element k + (s - start): what %moved holds at k, and
    what the mask asks for. Positions outside [s, s + W) hold no element of the window: a start in bounds is its own
    s, one below 0 has s = 0 and reaches no further than start + W <= W, one above D - W has s = D - W and begins
    behind it. A start more than a window out is saturated first, so nothing overflows (trap 9). Costs the update,
    padded three times in each dim that may be out of bounds; nothing is buffer-sized (trap 3).
    """
    return one_window(op)


@on_tile(combiner=READING, in_bounds={InBounds.ALWAYS}, form="dynamic_slice, the region, dynamic_update_slice")
def scatter_to_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window that lies inside.

        %old = stablehlo.dynamic_slice %operand, %start...
        %new = stablehlo.add %old, %window               (the region, lifted)
        %r   = stablehlo.dynamic_update_slice %operand, %new, %start...

    Equal, because each element of the window is combined once with what lies at its place, and nothing is clamped.
    Both policies; one window, so the order of updates does not matter, nor does floating-point association. Costs the
    update.
    """
    return one_window(op)


@on_tile(
    combiner=READING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_slice, the region, select(in_bounds), dynamic_update_slice",
)
def scatter_to_guarded_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window that is dropped as a whole where it is out of bounds.

        %old = stablehlo.dynamic_slice %operand, %place...
        %new = stablehlo.select (%place == %start), region(%old, %window), %old
        %r   = stablehlo.dynamic_update_slice %operand, %new, %place...

    Equal as in `scatter_to_guarded_dynamic_update_slice`: out of bounds, what was read is written back where it was
    read. The select keeps whatever the region computes from clamped values out of the result, NaN included (trap 19).
    """
    return one_window(op)


@on_tile(
    combiner=READING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.ELEMENTS},
    form="the same on the window shifted into bounds, its outside elements masked",
)
def scatter_to_shifted_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window whose elements are dropped one by one where they are out of bounds (oob=spec).

    The window is moved as in `scatter_to_shifted_dynamic_update_slice`, where the proof stands; the region combines
    each element with what lies at its place, and elements that the window does not cover keep their value by the
    select.
    """
    return one_window(op)


# --- a run of rows ---


@on_rows(
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
    (`hlo_lower.facts.scatter.layout`). Costs the update, padded; nothing is buffer-sized.
    """
    return one_window(op)


@on_rows(
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


@on_rows(
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


@on_rows(
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
