"""A region of scalars on whole tensors: what a map, a reduction or a window does to each element, to all at once."""

from collections.abc import Sequence
from typing import Any

from hlo_lower.base.registry import DoesNotApply
from hlo_lower.facts.scatter.lift import lift_elementwise
from hlo_lower.ir.view import Block, Value
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.ops.names import BROADCAST_IN_DIM


def on_tensors(op: OpLowering[Any], block: Block, values: Sequence[Value]) -> list[Value]:
    """What a region of scalars returns, for each element of tensors of one shape.

    Its ops are repeated, which the target takes or refuses where they stand; broadcasts of scalars are new.

    Args:
      op: the op of which it is a region.
      block: the region.
      values: for each argument a tensor.

    Raises:
      DoesNotApply: it holds an op that is not elementwise.
    """
    known = len(op.build.built)
    found = lift_elementwise(op.build, op.graph, block, values)
    if found is None:
        raise DoesNotApply("its region holds an op that is not elementwise")
    op.build.repeated.update(made for made in op.build.built[known:] if made.name != BROADCAST_IN_DIM)
    return found
