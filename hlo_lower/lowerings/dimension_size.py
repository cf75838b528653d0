"""`stablehlo.set_dimension_size` where it sets what is so: as modules hold it that were HLO before (top_k, sort)."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.registry import DoesNotApply, RuleList

rules = RuleList()


@rules.lowers(PLAIN, named={PlainOp.SET_DIMENSION_SIZE}, form="the operand, whose dim has that size")
def set_dimension_size_to_operand(op: PlainLowering) -> Sequence[Value]:
    """Take the operand where the size is a constant, that of the dim.

        %r = set_dimension_size(%x, %size), dim = d   ->   %x

    Equal: no element is cut, and the result's type says what it did. Costs nothing.

    Raises:
      DoesNotApply: the size is another one, or not known: what lies beyond it does not count then, and a tensor of
        static shape cannot say so.
    """
    value, size = op.node.operands
    known = size.constant()
    if known is None or int(known) != value.static_shape[op.node.integer("dimension")]:
        raise DoesNotApply("the size that is set is not a constant, the dim's own")
    return [value]
