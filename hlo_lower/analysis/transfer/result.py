"""The result of a transfer function, with the evidence of its operands."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from hlo_lower.analysis.evidence import Evidence, merge
from hlo_lower.analysis.interval import Interval, wrapped
from hlo_lower.graph import Node

Transfer = Callable[[Node, Sequence[Interval]], Interval | None]


def result(node: Node, lo: Any, hi: Any, operands: Sequence[Interval], note: str = "") -> Interval:
    tensor = node.result().tensor_type
    assert tensor is not None
    shape = cast(tuple[int, ...], tensor.shape)
    return wrapped(shape, tensor.element_name, lo, hi, evidence_of(node, operands, note))


def evidence_of(node: Node, operands: Sequence[Interval], note: str = "") -> Evidence | None:
    """What the operands rest on; with a note, a step of its own on top."""
    parents = merge(tuple(o.evidence for o in operands))
    if note:
        return Evidence.at(node, note, parents)
    if len(parents) > 1:
        return Evidence.at(node, node.name.removeprefix("stablehlo."), parents)
    return parents[0] if parents else None
