"""One window that is assigned, the insert_slice class: `dynamic_update_slice`, guarded as far as is needed.

This is the KV cache of a decode step: `cache.at[:, :, pos].set(k)`.
"""

from collections.abc import Sequence

from hlo_lower.analysis import ASSIGNING
from hlo_lower.graph import Value
from hlo_lower.lowerings.scatter_lowering import ScatterLowering
from hlo_lower.lowerings.window import one_window
from hlo_lower.registry import RuleList
from hlo_lower.scatter.facts import Drops, InBounds
from hlo_lower.subset.kinds import Tile

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
    combiner=ASSIGNING,
    in_bounds={InBounds.ALWAYS},
    form="dynamic_update_slice",
)
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


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
    combiner=ASSIGNING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_update_slice of select(in_bounds, update, dynamic_slice)",
)
def scatter_to_guarded_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that is dropped as a whole where it is out of bounds.

        %old = stablehlo.dynamic_slice %operand, %start...
        %new = stablehlo.select %in_bounds, %window, %old
        %r   = stablehlo.dynamic_update_slice %operand, %new, %start...

    Equal: in bounds, neither op clamps and the window is written. Out of bounds, both clamp the start to the same
    place, and what was read there is written back, so the operand is unchanged, as when the scatter drops the window
    (trap 2). For oob=xla, and for oob=spec where the window has extent 1 in every dim that may be out of bounds, so
    that dropping its elements is dropping it. The guard is as large as the update; in place on a donated buffer.
    """
    return one_window(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
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
