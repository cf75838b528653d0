"""What shardings say of scatters: over which dims operands are spread, and which results are unreduced.

A partitioned module gives shardings of arguments, results and constraints, and a partitioner finds the others. Here
the operand is followed to the nearest one, towards what it is made of and towards what uses the result, through ops
that keep every element in its place. Only a choice between right forms depends on the answer, never what is computed.
"""

import re
from collections.abc import Mapping
from math import prod

from hlo_lower.facts.values.sources import is_identity
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.ops.names import (
    CASE,
    CONVERT,
    CUSTOM_CALL,
    DYNAMIC_UPDATE_SLICE,
    IF,
    OPTIMIZATION_BARRIER,
    RETURN,
    SCATTER,
    SELECT,
    WHILE,
)
from hlo_lower.ops.spec import FRONTEND, GSPMD, LAYOUT, MANUAL, PARTITIONS, SHARDY

_IN_PLACE = frozenset({SCATTER, DYNAMIC_UPDATE_SLICE, CONVERT, OPTIMIZATION_BARRIER, WHILE})
"""Ops whose result k has its elements where operand k has them."""

_MAX_STEPS = 64

_TILES = re.compile(r"devices=\[([\d,]+)\]")
_INLINED_MESH = re.compile(r"\bmesh<[^<>]*>")
"""A mesh that stands in a sharding, `mesh<["x"=2]>`, in the place of its name."""


def spread_dims(scatter: mlir.RawOperation) -> frozenset[int] | None:
    """The dims of a scatter's first operand that are spread over devices; None where the module does not say.

    A module for one device has none, nor has the body of an `sdy.manual_computation`, which is written for one.
    """
    module = scatter
    while module.parent is not None:
        module = module.parent.operation
    if not is_partitioned(module):
        return frozenset()
    found = _of_operation(scatter, 0)
    found = _behind(scatter.operands[0]) if found is None else found
    return _ahead(scatter.results[0]) if found is None else found


def is_partitioned(module: mlir.RawOperation) -> bool:
    """Whether a module is for several devices: by its own count, which may not be said, or by a mesh that it names."""
    is_counted = PARTITIONS in module.attributes and mlir.integer_of(module.attributes[PARTITIONS]) != 1
    return is_counted or any(prod(axes.values()) != 1 for axes in mlir.mesh_axes(module))


def _dims(text: str) -> frozenset[int] | None:
    """The dims that a printed sharding spreads, Shardy's or GSPMD's; None where it says nothing."""
    text = _INLINED_MESH.sub("@mesh", text)
    if "@" in text or text.startswith("#sdy"):
        begin = text.find("[", text.find("@"))
        end, depth = begin, 0
        while end < len(text):
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            if depth == 0:
                break
            end += 1
        per_dim = re.findall(r"\{([^}]*)\}", text[begin:end])
        if per_dim and all(axes == "?" for axes in per_dim):
            return None
        return frozenset(d for d, axes in enumerate(per_dim) if '"' in axes)
    if tiles := _TILES.search(text):
        return frozenset(d for d, count in enumerate(tiles[1].split(",")) if int(count) > 1)
    return frozenset() if "replicated" in text or "maximal" in text else None


def _of_operation(op: mlir.RawOperation, number: int) -> frozenset[int] | None:
    """The sharded dims of one of an operation's results, as its attributes give them; None where they do not."""
    attributes = op.attributes
    if op.name == "sdy.sharding_constraint":
        return _dims(str(attributes["sharding"]))
    if SHARDY in attributes:
        entries = _INLINED_MESH.sub("@mesh", str(attributes[SHARDY])).split("<@")[1:]
        return _dims(f"@{entries[number]}") if number < len(entries) else None
    if GSPMD in attributes and len(op.results) == 1:
        return _dims(str(attributes[GSPMD]))
    return None


def _of_function(op: mlir.RawOperation, which: str, number: int) -> frozenset[int] | None:
    """The sharded dims of a function's argument or result, as its attributes give them; None where they do not."""
    if which not in op.attributes:
        return None
    own = op.attributes[which][number]
    name = next((n for n in (SHARDY, GSPMD) if n in own), None)
    return None if name is None else _dims(str(own[name]))


def _behind(value: mlir.RawValue) -> frozenset[int] | None:
    for _ in range(_MAX_STEPS):
        if mlir.is_block_argument(value):
            owner, number = value.owner.owner.operation, mlir.argument_number(value)
            if owner.name == MANUAL:
                return frozenset()
            if owner.name == "func.func":
                return _of_function(owner, "arg_attrs", number)
            if owner.name != WHILE:
                return None
            value = owner.operands[number]
            continue
        op, number = value.owner.operation, mlir.result_number(value)
        found = _of_operation(op, number)
        if found is not None or op.name not in _IN_PLACE:
            return found
        value = op.operands[number]
    return None


def _ahead(value: mlir.RawValue) -> frozenset[int] | None:
    for _ in range(_MAX_STEPS):
        following = None
        for use in value.uses:
            user, number = use.owner.operation, int(use.operand_number)
            if user.name in ("func.return", RETURN):
                around = user.parent.operation
                if around.name == "func.func":
                    return _of_function(around, "res_attrs", number)
                following = around.results[number] if around.name == WHILE else None
                continue
            found = _of_operation(user, 0) if user.name in ("sdy.sharding_constraint", CUSTOM_CALL) else None
            if found is not None:
                return found
            if user.name in _IN_PLACE and number < len(user.results):
                following = user.results[number]
        if following is None:
            return None
        value = following
    return None


# --- scatters whose results a module calls unreduced: a partial sum on each device, the value being the sum of them ---
#
#     %4 = sdy.sharding_constraint %3 <@mesh, [{}], unreduced={"x"}>
#
# A partitioner takes that back to what makes %3 and splits the sum of a scatter itself. Of most other operations it
# does not: it calls what they give unreduced although each device holds the whole, which is too much by the size of
# the axis. So whatever a scatter becomes has to be told apart from what says unreduced; here those scatters are found,
# from each place that says so back through operations that give every element of an operand on.


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
    if PARTITIONS not in attributes or mlir.integer_of(attributes[PARTITIONS]) == 1:
        return {}
    found: dict[Node, str] = {}
    seen: set[Value] = set()
    pending = _places(graph)
    if not pending:
        return found
    while pending:
        value, said = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        node = value.node
        if node is not None and node.name == SCATTER:
            found.setdefault(node, said)
        pending.extend((other, said) for other in _element_sources(graph, value))
    return found


def mesh_of(sharding: str) -> str | None:
    """The mesh that a sharding of Shardy is on, by name or as it is written out; None for another language."""
    found = _MESH.search(sharding)
    return None if found is None or _IN_HLO in sharding else found[1]


def _places(graph: Graph) -> list[tuple[Value, str]]:
    """The values that something says are unreduced, and what it says."""
    found: list[tuple[Value, str]] = []

    for raw in mlir.operations_within(graph.module.operation):
        attributes = raw.attributes
        if raw.name == "func.func":
            said = str(attributes["res_attrs"]) if "res_attrs" in attributes else ""
            if _WORD in said and len(raw.regions[0].blocks):
                told = [str(entry) for entry in attributes["res_attrs"]]
                returned = Function(Node(raw)).body.terminator.operands
                found.extend((value, text) for value, text in zip(returned, told, strict=True) if _WORD in text)
            continue
        names = ("sharding",) if raw.name == "sdy.sharding_constraint" else (SHARDY, GSPMD, FRONTEND)
        said = " ".join(str(attributes[name]) for name in names if name in attributes)
        if _WORD in said:
            node = Node(raw)
            found.extend((value, said) for value in (node.operands if is_identity(node) else node.results))
    return found


def _element_sources(graph: Graph, value: Value) -> list[Value]:
    """The values whose elements a value has, or may have."""
    node, number = value.node, value.number
    if node is None:
        return _incoming_values(graph, value)
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


def _incoming_values(graph: Graph, value: Value) -> list[Value]:
    """The values that reach an argument of a loop's body or of a function."""
    block = value.block
    if block is None:
        return []
    owner = block.owner
    if owner.name == WHILE:
        return [owner.operand(value.number), owner.blocks[1].terminator.operand(value.number)]
    if owner.name == "func.func":
        return [call.operand(value.number) for call in graph.calls_of(Function(owner).name)]
    return []
