"""`stablehlo.reverse` for consumers that have none, or not on an element type: slices one by one, or a gather."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import Context, Kind, OpLowering, Stage, Subject
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.ops.names import REVERSE
from hlo_lower.ops.refused_forms import refused_form


class Axes(Enum):
    """How far the dims go that are reversed, all of them together."""

    SHORT = "short"
    LONG = "long"
    APART = "apart"  # the target takes it of neighbouring dims only


@dataclass(frozen=True)
class ReverseFacts(FactsByName):
    """The facts of one reverse of static shape.

    Attributes:
      axes: the fact that rules constrain.
      dims: the dims that are reversed and have more than one element.
      slices: how many elements these have together, for conditions of rules.
    """

    axes: Axes
    dims: tuple[int, ...]
    slices: int


rules = RuleList()


def reverse_facts(node: Node, *, few: float) -> ReverseFacts:
    """The facts of a reverse of static shape.

    Args:
      node: the reverse.
      few: how many ops of its own are worth it.
    """
    shape = node.operand(0).static_shape
    dims = tuple(dim for dim in node.integers("dimensions") if shape[dim] > 1)
    slices = sum(shape[dim] for dim in dims)
    return ReverseFacts(Axes.SHORT if slices <= few else Axes.LONG, dims, slices)


@rules.lowers(REVERSE, axes={Axes.SHORT}, form="concatenate of slices of one element, the last first, dim by dim")
def reverse_to_slices(op: OpLowering[ReverseFacts]) -> Sequence[Value]:
    """Take a tensor apart along each dim and put it together again in opposite order.

        %r = stablehlo.reverse %x, dims = [0]   ->   concatenate %x[n - 1], ..., %x[1], %x[0]

    Equal: element i along a reversed dim is element n - 1 - i, and the dims are independent of each other. No element
    is computed with, so all types keep their bits. A dim of one element, or of none, stays. Costs a copy for each dim.
    """
    value = op.node.operand(0)
    for dim in op.facts.dims:
        shape = value.static_shape
        parts = [slice_along(op.build, value, dim, k, 1) for k in reversed(range(shape[dim]))]
        value = op.build.concatenate(parts, dim)
    return [value]


@rules.lowers(REVERSE, axes={Axes.APART}, form="a reverse of each dim")
def reverse_to_reverses(op: OpLowering[ReverseFacts]) -> Sequence[Value]:
    """Reverse the dims one after the other. Equal: they are independent of each other."""
    value = op.node.operand(0)
    for dim in op.facts.dims:
        value = op.build.reverse(value, [dim])
    return [value]


@rules.lowers(REVERSE, form="gather of rows n - 1, ..., 0, dim by dim")
def reverse_to_gather(op: OpLowering[ReverseFacts]) -> Sequence[Value]:
    """Look each row up from the other end.

        %r = stablehlo.reverse %x, dims = [0]   ->   stablehlo.gather %x, dense<[[n - 1], ..., [0]]>

    Equal: row i is row n - 1 - i, every place is in bounds, and a gather moves elements as they are. Costs a copy and a
    constant table for each dim.
    """
    value = op.node.operand(0)
    for dim in op.facts.dims:
        size = value.static_shape[dim]
        rows = np.arange(size - 1, -1, -1).reshape(-1, 1)
        value = op.build.gather_rows(value, op.build.constant_array(rows, "i32" if size < 1 << 31 else "i64"), dim)
    return [value]


MOST_SLICES = 1024
"""Beyond it a reverse is not taken apart, also where the target has no gather."""


class ReverseKind(Kind):
    """Reverses."""

    name = op = REVERSE
    stage = Stage.LOWERED
    domains = ReverseFacts.domains
    families = (rules,)
    owned = frozenset({"dimensions"})

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None where the target takes it."""
        is_taken = context.target.refusal(REVERSE, dtypes_on(node)) is None
        if is_taken and refused_form(context.graph, context.target, node, self.name) is None:
            return None
        if not node.operand(0).is_static:
            return self.subject(context, node)
        facts = reverse_facts(node, few=context.target.costs.few_windows)
        short = (replace(facts, axes=Axes.SHORT),) if facts.axes is Axes.LONG and facts.slices <= MOST_SLICES else ()
        return self.subject(context, node, replace(facts, axes=Axes.APART) if is_taken else facts, *short)
