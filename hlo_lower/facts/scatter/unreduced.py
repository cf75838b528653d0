"""Scatters whose results a module calls unreduced: a partial sum on each device, the value being the sum of them.

    %4 = sdy.sharding_constraint %3 <@mesh, [{}], unreduced={"x"}>

A partitioner takes that back to what makes %3 and splits the sum of a scatter itself. Of most other operations it does
not: it calls what they give unreduced although each device holds the whole, which is too much by the size of the axis.
So whatever a scatter becomes has to be told apart from what says unreduced; here those scatters are found, from each
place that says so back through operations that give every element of an operand on.
"""

import re
from collections.abc import Mapping

from hlo_lower.facts.values.sources import is_identity
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.ops.names import CASE, CONVERT, DYNAMIC_UPDATE_SLICE, IF, SCATTER, SELECT, WHILE
from hlo_lower.ops.spec import LAYOUT

SHARDY, GSPMD, FRONTEND = "sdy.sharding", "mhlo.sharding", "mhlo.frontend_attributes"

_WORD = "unreduced"
_IN_HLO = "xla.sdy."
"""What Shardy says within HLO: its meshes have no name in the module."""
_MESH = re.compile(r"<\s*(@[\w.$\"-]+|mesh<[^<>]*>)")
_SAME_ELEMENTS = LAYOUT | {CONVERT, SELECT}
"""Operations that give the elements of their operands on, `select` those of two."""


def unreduced_scatters(graph: Graph) -> Mapping[Node, str]:
    """The scatters whose results reach a place that calls them unreduced, each with what is said there.

    Costs a walk over the module where it has a mesh or partitions, and nothing where not.
    """
    attributes = graph.module.operation.attributes
    if "mhlo.num_partitions" not in attributes or mlir.integer_of(attributes["mhlo.num_partitions"]) == 1:
        return {}
    found: dict[Node, str] = {}
    seen: set[Value] = set()
    pending = _places(graph)
    if not pending:
        return found
    callers = _callers(graph)
    while pending:
        value, said = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.node
        if node is not None and node.name == SCATTER:
            found.setdefault(node, said)
        pending.extend((other, said) for other in _made_of(graph, value, callers))
    return found


def mesh_of(sharding: str) -> str | None:
    """The mesh that a sharding of Shardy is on, by name or as it is written out; None for another language."""
    found = _MESH.search(sharding)
    return None if found is None or _IN_HLO in sharding else found[1]


def _places(graph: Graph) -> list[tuple[Value, str]]:
    """The values that something says are unreduced, and what it says."""
    found: list[tuple[Value, str]] = []

    def visit(raw: mlir.RawOperation) -> None:
        attributes = raw.attributes
        if raw.name == "func.func":
            said = str(attributes["res_attrs"]) if "res_attrs" in attributes else ""
            if _WORD in said and len(raw.regions[0].blocks):
                told = [str(entry) for entry in attributes["res_attrs"]]
                returned = Function(Node(raw)).body.terminator.operands
                found.extend((value, text) for value, text in zip(returned, told, strict=True) if _WORD in text)
            return
        names = ("sharding",) if raw.name == "sdy.sharding_constraint" else (SHARDY, GSPMD, FRONTEND)
        said = " ".join(str(attributes[name]) for name in names if name in attributes)
        if _WORD in said:
            node = Node(raw)
            found.extend((value, said) for value in (node.operands if is_identity(node) else node.results))

    mlir.walk(graph.module.operation, visit)
    return found


def _callers(graph: Graph) -> Mapping[str, list[Node]]:
    found: dict[str, list[Node]] = {}

    def visit(node: Node) -> None:
        if node.name == "func.call":
            found.setdefault(node.callee, []).append(node)

    graph.walk(visit)
    return found


def _made_of(graph: Graph, value: Value, callers: Mapping[str, list[Node]]) -> list[Value]:
    """The values whose elements a value has, or may have."""
    node, number = value.node, value.number
    if node is None:
        return _given(value, callers)
    if is_identity(node) or node.name in (SCATTER, DYNAMIC_UPDATE_SLICE):
        return [node.operand(number)]
    if node.name in _SAME_ELEMENTS:
        return list(node.operands)
    if node.name == WHILE:
        return [node.operand(number), node.blocks[1].terminator.operand(number)]
    if node.name in (CASE, IF):
        return [block.terminator.operand(number) for block in node.blocks]
    callee = graph.functions.get(node.body_name)
    return [callee.body.terminator.operand(number)] if callee is not None and callee.has_body else []


def _given(value: Value, callers: Mapping[str, list[Node]]) -> list[Value]:
    """What an argument of a loop's body, or of a function, is given."""
    block = value.block
    if block is None:
        return []
    owner = block.owner
    if owner.name == WHILE:
        return [owner.operand(value.number), owner.blocks[1].terminator.operand(value.number)]
    if owner.name == "func.func":
        return [call.operand(value.number) for call in callers.get(Function(owner).name, ())]
    return []
