"""A module with composites of ours, as a target takes it: its own composites, and plain ops for what it does not take.

The largest first: what lies within a composite that the target takes is written out in its decomposition, and what lies
within one that it does not take comes to stand beside it, and is looked at next.
"""

from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.named.match.terms import Terms
from hlo_lower.named.spell.adapters import (
    Adapted,
    Adapter,
    Attribute,
    Found,
    by_roles,
    channels_last,
    normalized_shape,
    replace,
)
from hlo_lower.named.spell.attention import attention
from hlo_lower.named.spell.other_names import OtherNames, as_it_was
from hlo_lower.named.take_out.outline import inline_graph, write_out
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.named_op import NamedOp, SpelledAttribute
from hlo_lower.ops.targets.target import Target
from hlo_lower.ops.vocabulary import BY_NAME, PREFIX

ADAPTER_OF: dict[str, Adapter] = {
    "": by_roles,
    "attention": attention,
    "normalized_shape": normalized_shape,
    "channels_last": channels_last,
}
"""The adapters by their names in a target file."""


def composite_at(graph: Graph, terms: Terms, node: Node) -> Found | None:
    """Read a composite of ours; None where it has no name of ours, or lacks what the vocabulary requires."""
    name = mlir.symbol_name(node.raw.attributes["name"]).removeprefix(PREFIX)
    op = BY_NAME.get(name)
    raw = node.attribute("composite_attributes")
    entries = {} if raw is None else mlir.entries_of(raw)
    if op is None or "operands" not in entries:
        return None
    roles = [mlir.symbol_name(entry) for entry in entries["operands"]]
    if len(roles) != len(node.operands) or len(set(roles)) != len(roles):
        return None
    attributes = {a.name: _read(a.type, a.several, entries[a.name]) for a in op.attributes if a.name in entries}
    attributes.update({a.name: a.default for a in op.attributes if a.name not in entries and a.default is not None})
    return Found(graph, terms, node, name, dict(zip(roles, node.operands, strict=True)), attributes)


def adapt(found: Found, entry: NamedOp) -> Adapted | Cause:
    """Adapt a composite to an entry of the target; a cause where the entry does not fit."""
    lack = _lack(found, entry)
    return Code.NAMED_OP_LACKS(lack) if lack else ADAPTER_OF[entry.adapter](found, entry)


def _lack(found: Found, entry: NamedOp) -> str:
    if len(found.node.results) != 1:
        return "a single result"
    if not all(value.is_static for value in (*found.node.operands, *found.node.results)):
        return "static shapes"
    for name, values in entry.where.items():
        if found.attributes.get(name) not in values:
            return f"{name} = {' or '.join(map(str, values))}"
    needed = {role for role in entry.operands if not role.startswith("[")}
    extra = set(found.operands) - set(entry.roles) - ({"causal_mask"} if entry.adapter == "attention" else set())
    if extra or needed - set(found.operands):
        return f"the operands {', '.join(entry.operands)}"
    for role, value in found.operands.items():
        is_mask = entry.adapter == "attention" and role in ("mask", "causal_mask")
        is_positions = value.element.is_integer and role == "positions"
        if entry.dtypes is not None and value.element_type not in entry.dtypes and not is_mask and not is_positions:
            return f"element types {', '.join(sorted(entry.dtypes))}"
    rank = len(found.node.operands[0].static_shape)
    if entry.ranks is not None and not entry.adapter and rank not in entry.ranks:
        return f"rank {' or '.join(map(str, sorted(entry.ranks)))}"
    return ""


def spelled_attributes(entry: NamedOp, attributes: dict[str, Attribute]) -> mlir.RawAttribute:
    """The attributes of the target's composite."""
    told: dict[str, str] = {}
    for name, spelled in entry.attributes.items():
        value = spelled.value if spelled.value is not None else attributes.get(spelled.of)
        if value is None or (spelled.omit is not None and value == spelled.omit):
            continue
        told[name] = _text(spelled, spelled.words.get(str(value).lower(), value) if spelled.words else value)
    return mlir.parse_attribute("{" + ", ".join(f"{name} = {told[name]}" for name in sorted(told)) + "}")


def _text(spelled: SpelledAttribute, value: Attribute) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"dense<{list(value)}> : tensor<{len(value)}xi64>"
    if isinstance(value, float) or element_type(spelled.type).is_float:
        kind = spelled.type or "f32"
        return f"{float(value):.17e} : {kind}"
    return f"{value} : {spelled.type or 'i64'}"


def _read(kind: type, several: bool, raw: mlir.RawAttribute) -> Attribute:
    if several:
        return mlir.integers_of(raw)
    if kind is bool:
        return str(raw) == "true"
    if kind is str:
        return mlir.symbol_name(raw)
    return mlir.float_of(raw) if kind is float else mlir.integer_of(raw)


# --- a module with composites of ours, as a target takes it ---
#
# A module with composites of ours, as a target takes it: its own composites, and plain ops for what it does not take.
#
# The largest first: what lies within a composite that the target takes is written out in its decomposition, and what
# lies within one that it does not take comes to stand beside it, and is looked at next.


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
    """Replace a composite by the target's, or by its own ops."""
    name, place = mlir.symbol_name(node.raw.attributes["name"]).removeprefix(PREFIX), str(graph.location(node))
    found = composite_at(graph, terms, node)
    why: Cause = Code.NAMED_OP_LACKS("a composite of its meaning")
    for entry in target.named:
        if found is None or entry.op != name:
            continue
        adapted = adapt(found, entry)
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
