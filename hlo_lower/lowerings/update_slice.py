"""One window that is combined with what is there: read, region, write."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.scatter_lowering import ScatterLowering
from hlo_lower.lowerings.window import READING, one_window
from hlo_lower.registry import RuleList
from hlo_lower.scatter.facts import Drops, InBounds
from hlo_lower.subset.kinds import Tile

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
    combiner=READING,
    in_bounds={InBounds.ALWAYS},
    form="dynamic_slice, the region, dynamic_update_slice",
)
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


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
    combiner=READING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_slice, the region, select(in_bounds), dynamic_update_slice",
)
def scatter_to_guarded_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window that is dropped as a whole where it is out of bounds.

        %old = stablehlo.dynamic_slice %operand, %start...
        %new = stablehlo.select %in_bounds, region(%old, %window), %old
        %r   = stablehlo.dynamic_update_slice %operand, %new, %start...

    Equal as in `scatter_to_guarded_dynamic_update_slice`: out of bounds, what was read is written back where it was
    read. The select keeps whatever the region computes from clamped values out of the result, NaN included (trap 19).
    """
    return one_window(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Tile,
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
