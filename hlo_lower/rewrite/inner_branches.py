"""Branches that a target may compute wrongly for where they stand, or for what stands in them, though it takes others.

LiteRT's interpreter gives a branch within a loop or a branch what another one takes: it is wrong, or does not prepare
(`RefusedForm.INNER`). Nor does one of three branches or more prepare where a loop stands in any (`RefusedForm.MANY`).
"""

from hlo_lower import mlir
from hlo_lower.graph import Function, Graph, Node
from hlo_lower.refused_forms import RefusedForm
from hlo_lower.targets import Target

WHILE = "stablehlo.while"
BRANCHING = ("stablehlo.case", "stablehlo.if")
AROUND = (*BRANCHING, WHILE)


def refused_branches(graph: Graph, target: Target, node: Node) -> RefusedForm | None:
    """The form in which a target refuses a branch: in a region of a loop or a branch, or called from one; or several
    with a loop."""
    if node.name not in BRANCHING:
        return None
    if RefusedForm.INNER.value in target.refused_forms and _is_within(graph, node, set()):
        return RefusedForm.INNER
    if RefusedForm.MANY.value in target.refused_forms and len(node.blocks) > 2 and _has_loop(graph, node, set()):
        return RefusedForm.MANY
    return None


def _has_loop(graph: Graph, node: Node, seen: set[str]) -> bool:
    """Whether a loop stands in what a node holds, or in a function that is called there."""
    for raw in mlir.walked(node.raw):
        name = Node(raw).callee if raw.name == "func.call" else ""
        if raw.name == WHILE:
            return True
        if name and name not in seen and (callee := graph.functions[name]).has_body:
            seen.add(name)
            if _has_loop(graph, callee.node, seen):
                return True
    return False


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
