"""Named groups in linalg: an attention, a norm or an activation is a function of its own that keeps its name.

    %r = stablehlo.composite "hl.rms_norm" %x, %w {composite_attributes = {axes = [2], ..., operands = ["x", "weight"]},
        decomposition = @hl.rms_norm.impl}
    ->
    %r = call @hl.rms_norm(%x, %w) {hl.named = {axes = [2], ..., name = "rms_norm", operands = ["x", "weight"]}}

linalg has no such ops. A reader that knows the name takes the call, one that does not inlines it; the function says
the same of itself. What linalg has by a name of its own (softmax, as far as the target's file says) is that op, in
groups as well. A softmax whose numbers are rounded where that op does not round them is a group.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.reader import copy_graph
from hlo_lower.ir.view import Graph, Node
from hlo_lower.named.match.terms import Terms
from hlo_lower.named.naming import raise_named
from hlo_lower.named.spell.adapters import Adapted
from hlo_lower.named.spell.other_names import OtherNames
from hlo_lower.named.spell.spelling import adapt, composite_at, spell_graph
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.target import Target
from hlo_lower.ops.vocabulary import PREFIX

GROUPS = frozenset({
    "attention", "batch_norm", "gelu", "group_norm", "hard_swish", "l2_norm", "layer_norm", "rms_norm", "rope", "silu",
    "softmax", "swiglu",
})  # fmt: skip
"""The named ops that are functions in linalg, where the target has no op for them."""

NAMED = "hl.named"
"""The attribute of a call and of its function: name, operands and attributes of the named op."""


def with_names(graph: Graph, target: Target, *, outlined: bool) -> Graph:
    """A copy of a module in which named ops are composites of the target, or calls of functions.

    Args:
      graph: a module of StableHLO.
      target: whose composites are written.
      outlined: write calls of functions for groups; otherwise these stay plain ops.
    """
    taken = {one.op for one in target.named}
    wanted = taken | GROUPS if outlined else taken
    raised = raise_named(graph, only=wanted) if wanted else None
    if raised is None or not raised.named:
        return copy_graph(graph)
    made = raised.graph
    with mlir.active(made.context):
        if outlined:
            _call_groups(made, target)
        spell_graph(made, target, OtherNames())
    made.forget()
    return made


def _call_groups(graph: Graph, target: Target) -> None:
    """Make calls of the composites of groups, in place, but for those that the target takes."""
    terms = Terms(graph)
    composites = [node for node in graph.callers if node.name == COMPOSITE]
    groups = [node for node in composites if _is_group(graph, terms, node, target)]
    names = _new_names(graph, groups)
    for node in graph.callers:
        if node.body_name in names:
            attribute = "callee" if node.name == "func.call" else "decomposition"
            node.raw.attributes[attribute] = mlir.symbol_attribute(names[node.body_name])
    for node in groups:
        attributes = mlir.attributes_of(node.raw)
        told = mlir.entries_of(attributes["composite_attributes"])
        told["name"] = mlir.string_attribute(_name(node))
        named = mlir.dictionary_attribute(told)
        function = next(old for old, new in names.items() if new == node.body_name)
        graph.functions[function].node.raw.attributes[NAMED] = named
        mlir.put_instead(node.raw, "func.call", {"callee": attributes["decomposition"], NAMED: named})
        node.raw.erase()
    for old, new in names.items():
        graph.functions[old].node.raw.attributes["sym_name"] = mlir.string_attribute(new)
    graph.forget()


def _new_names(graph: Graph, groups: Sequence[Node]) -> dict[str, str]:
    """By the name of a decomposition "hl.rms_norm", or "hl.rms_norm_1" of a further one: whatever its writer called
    it."""
    names: dict[str, str] = {}
    for node in groups:
        if node.body_name not in names:
            name = PREFIX + _name(node)
            names[node.body_name] = next(
                one
                for one in (name, *(f"{name}_{number}" for number in range(1, len(graph.functions) + 1)))
                if one not in graph.functions and one not in names.values()
            )
    return names


def _name(node: Node) -> str:
    """What a composite of ours is called, without "hl."."""
    return mlir.symbol_name(node.raw.attributes["name"]).removeprefix(PREFIX)


def _is_group(graph: Graph, terms: Terms, node: Node, target: Target) -> bool:
    if not mlir.symbol_name(node.raw.attributes["name"]).startswith(PREFIX) or _name(node) not in GROUPS:
        return False
    found = composite_at(graph, terms, node)
    entries = [entry for entry in target.named if found is not None and entry.op == found.name]
    return found is not None and not any(isinstance(adapt(found, entry), Adapted) for entry in entries)
