"""Scatters that write nothing, and those of one window that covers the whole operand, in bounds: no part is cut."""

from collections.abc import Sequence
from functools import partial

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import InBounds
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.window import READING, new_values
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import Empty, Full

rules = RuleList()
over_all = partial(rules.lowers, SCATTER, subset=Full, in_bounds={InBounds.ALWAYS})


@rules.lowers(
    SCATTER,
    subset=Empty,
    form="the operand, converted if the region promotes",
)
def scatter_to_operand(op: ScatterLowering) -> Sequence[Value]:
    """Replace a scatter that writes nothing by its operand.

        %r = "stablehlo.scatter"(%operand, %indices, %updates) ...   ->   %operand

    Equal, because Empty means one of: there is no index vector, the window or the operand has no element, every
    window is dropped under the policy, or the region returns the current value. A region wider than the operand
    promotes the result's element type (spec, scatter C24), so the operand is converted. Both policies; any
    duplicates; no cost.
    """
    return op.scatter.promoted_operands(op.build)


@over_all(combiner=ASSIGNING, form="the updates")
def scatter_to_updates(op: ScatterLowering) -> Sequence[Value]:
    """Replace an assignment over everything by its updates.

        %r = "stablehlo.scatter"(%operand, %zeros, %updates) ({ return %update })   ->   transpose, reshape of %updates

    Equal, because Full means one window of the operand's shape that starts at 0 (trap 36: W = D in every dim, start 0,
    one position or positions that make a run, and the region does not read the current value), so each result element
    is its update. Both policies; one window, so no duplicates; no more than a transpose.
    """
    return _whole(op)


@over_all(combiner=READING, form="the region, elementwise on operand and updates")
def scatter_to_elementwise(op: ScatterLowering) -> Sequence[Value]:
    """Replace a combination over everything by the region on whole tensors.

        %r = "stablehlo.scatter"(%operand, %zeros, %updates) ({ return %current + %update })
        ->
        %r = stablehlo.add %operand, %updates

    Equal, because each result element is the region of its current value and its one update, and the region is applied
    to each element on its own (`hlo_lower.facts.scatter.lift`). Both policies; no duplicates; one pass over the
    operand.
    """
    return _whole(op)


def _whole(op: ScatterLowering) -> Sequence[Value]:
    updates = [op.build.reshape(u, op.facts.layout.window) for u in op.arrangement.updates(op.build)]
    currents = op.scatter.promoted_operands(op.build) if op.facts.combiner not in ASSIGNING else updates
    return new_values(op, op.build, currents, updates)


assert {Combiner.NO_OP} | ASSIGNING | READING == set(Combiner)
