"""Ops that compute each element of the result from the elements at the same place."""

from collections.abc import Sequence

from hlo_lower.ir.view import Node
from hlo_lower.ops.axes.axis_link import AxisLink, Boundary
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.spec import ELEMENTWISE


@subset_rules.axes(*sorted(ELEMENTWISE))
def elementwise(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim is an axis of all operands and the result; a scalar (of select, of clamp) is taken whole.

    Right: element p of the result depends on the elements p of the operands alone.
    """
    shape = node.result().shape
    dims = range(len(shape))
    return [AxisLink(tuple(d if value.shape == shape else None for value in node.operands), (d,)) for d in dims]
