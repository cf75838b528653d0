"""The result of a transfer function, with the evidence of its operands."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.ranges.interval import Interval, wrapped
from hlo_lower.facts.values.evidence import Evidence, merge, plain_name
from hlo_lower.ir.view import Node

Transfer = Callable[[Node, Sequence[Interval]], Interval | None]


def result(node: Node, lo: Any, hi: Any, operands: Sequence[Interval], step: Cause | None = None) -> Interval:
    tensor = node.result().tensor_type
    assert tensor is not None
    shape = cast(tuple[int, ...], tensor.shape)
    return wrapped(shape, tensor.element_name, lo, hi, evidence_of(node, operands, step))


def evidence_of(node: Node, operands: Sequence[Interval], step: Cause | None = None) -> Evidence | None:
    """What the operands rest on; with a step of its own, that on top."""
    parents = merge(tuple(o.evidence for o in operands))
    if step is not None:
        return Evidence.at(node, step, parents)
    if len(parents) > 1:
        return Evidence.at(node, Code.OPERATION(plain_name(node.name)), parents)
    return parents[0] if parents else None
