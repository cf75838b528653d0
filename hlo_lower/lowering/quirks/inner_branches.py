"""Branches that a target may compute wrongly for where they stand, or for what stands in them, though it takes others.

LiteRT's interpreter gives a branch within a loop or a branch what another one takes: it is wrong, or does not prepare
(`RefusedForm.INNER`). Nor do most of three branches or more prepare (`RefusedForm.MANY`).
"""

from hlo_lower.ir.view import Function, Graph, Node
from hlo_lower.ops.names import CASE, IF, WHILE
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.ops.targets.target import Target

BRANCHING = (CASE, IF)
AROUND = (*BRANCHING, WHILE)


def refused_branches(graph: Graph, target: Target, node: Node) -> RefusedForm | None:
    """The form in which a target refuses a branch: within a loop or a branch, or called from one; or one of several."""
    if node.name not in BRANCHING:
        return None
    if RefusedForm.INNER.value in target.refused_forms and _is_within(graph, node, set()):
        return RefusedForm.INNER
    if RefusedForm.MANY.value in target.refused_forms and len(node.blocks) > 2:
        return RefusedForm.MANY
    return None


def _is_within(graph: Graph, node: Node, seen: set[str]) -> bool:
    around = node.parent
    while around is not None and around.name != "func.func":
        if around.name in AROUND:
            return True
        around = around.parent
    if around is None:
        return False
    name = Function(around).name
    if name in seen:
        return False
    seen.add(name)
    return any(_is_within(graph, call, seen) for call in graph.calls_of(name))
