"""Scatters that write nothing."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.scatter_lowering import ScatterLowering
from hlo_lower.registry import RuleList
from hlo_lower.subset.kinds import Empty

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
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
