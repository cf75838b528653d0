"""Branches within loops and branches, which a target may compute wrongly though it takes others (`RefusedForm.INNER`).

LiteRT's interpreter gives a branch in one of these what another one takes: it is wrong, or does not prepare.
"""

from hlo_lower.graph import Function, Graph, Node
from hlo_lower.refused_forms import RefusedForm
from hlo_lower.targets import Target

BRANCHING = ("stablehlo.case", "stablehlo.if")
AROUND = (*BRANCHING, "stablehlo.while")


def is_refused_inner(graph: Graph, target: Target, node: Node) -> bool:
    """Whether a branch is refused for where it stands: in a region of a loop or a branch, or called from one."""
    return node.name in BRANCHING and RefusedForm.INNER.value in target.refused_forms and _is_within(graph, node, set())


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
