"""A module with composites of ours, as a target takes it: its own composites, and plain ops for what it does not take.

The largest first: what lies within a composite that the target takes is written out in its decomposition, and what lies
within one that it does not take comes to stand beside it, and is looked at next.
"""

from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.named.match.terms import Terms
from hlo_lower.named.spell.acceptance import adapted_by, found_at, spelled_attributes
from hlo_lower.named.spell.adapters import Adapted, replace
from hlo_lower.named.spell.other_names import OtherNames, as_it_was
from hlo_lower.named.take_out.outline import inline_graph, write_out
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.target import Target
from hlo_lower.ops.vocabulary import PREFIX


@dataclass(frozen=True)
class Spelling:
    """What became of a named op for a target."""

    name: str  # ours, without "hl."
    place: str  # where it comes from
    composite: str = ""  # the target's composite in its place; "" where it was written out
    delegate: str = ""  # what runs that
    why: Cause | None = None  # why it was written out; None where it was not


def spell_graph(graph: Graph, target: Target, others: OtherNames) -> list[Spelling]:
    """Put a target's composites in the place of ours, in place, and plain ops where it has none; composites of
    others that it does not accept become what they were."""
    told: list[Spelling] = []
    made: set[str] = set()
    while pending := _outermost(graph, made):
        terms, functions = Terms(graph), set[str]()
        for node in pending:
            functions.add(node.body_name)
            told.append(_spell(graph, terms, node, target, made, others))
        erase_uncalled(graph, functions)
        graph.forget()
    inline_graph(graph)  # what lies within the decompositions that were made
    return told


def _outermost(graph: Graph, made: set[str]) -> list[Node]:
    within = {node.body_name for node in graph.callers if node.name == COMPOSITE} | made
    return [
        node
        for node in graph.callers
        if node.name == COMPOSITE
        and mlir.symbol_name(node.raw.attributes["name"]).startswith(PREFIX)
        and graph.function_of(node).name not in within
    ]


def _spell(graph: Graph, terms: Terms, node: Node, target: Target, made: set[str], others: OtherNames) -> Spelling:
    """One composite: the target's in its place, or its ops."""
    name, place = mlir.symbol_name(node.raw.attributes["name"]).removeprefix(PREFIX), str(graph.location(node))
    found = found_at(graph, terms, node)
    why: Cause = Code.NAMED_OP_LACKS("a composite of its meaning")
    for entry in target.named:
        if found is None or entry.op != name:
            continue
        adapted = adapted_by(found, entry)
        if isinstance(adapted, Adapted):
            attributes = spelled_attributes(entry, {**found.attributes, **adapted.attributes})
            function = _free_name(graph, made, entry.composite)
            made.add(function)
            replace(found, adapted, entry.composite, attributes, function)
            return Spelling(name, place, entry.composite, entry.delegate)
        why = adapted
    if node.body_name in others.by_function:
        as_it_was(node, others.by_function[node.body_name])
    else:
        write_out(node, graph.functions[node.body_name])
    return Spelling(name, place, why=why)


def _free_name(graph: Graph, made: set[str], composite: str) -> str:
    number, name = 0, f"{composite}.impl"
    while name in graph.functions or name in made:
        number += 1
        name = f"{composite}.impl_{number}"
    return name
