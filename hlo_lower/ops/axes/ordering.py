"""Ops that order elements along one dim: sort and top_k. All other dims are axes."""

from collections.abc import Sequence

from hlo_lower.ir.view import Node
from hlo_lower.ops.axes.axis_link import AxisLink, Boundary
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import SORT


@subset_rules.axes(SORT)
def sort(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the sorted one. Right: each line along that dim is sorted by itself."""
    count, rank = len(node.results), len(node.result().shape)
    along = rank - 1 if node.attribute("dimension") is None else node.integer("dimension") % rank
    return [AxisLink((d,) * count, (d,) * count) for d in range(rank) if d != along]


@subset_rules.axes("chlo.top_k")
def top_k(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the last, along which the largest are sought. Right: each line is searched by itself."""
    return [AxisLink((d,), (d, d)) for d in range(len(node.operand(0).shape) - 1)]
