"""Composites that others write ("odml.softmax", "aten.gelu.default"), read: ours where they are seen to be that op.

The name is a claim, and counts for nothing. While named ops are looked for, such a composite is a call of its
decomposition; where that function is seen to be a named op, its composite is ours, under the name of what it computes.
Every other one becomes again what it was, attributes and all.
"""

from dataclasses import dataclass, field

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.vocabulary import PREFIX

PREFIXES = ("odml.", "aten.", "tfl.", "tenstorrent.")
"""What the names begin with that exporters of PyTorch and LiteRT, and tt-xla, write."""


MARK = "hl.was"


@dataclass
class OtherNames:
    """The composites of a module that became calls."""

    # their attributes, by the number in the mark of their call
    composites: list[dict[str, mlir.RawAttribute]] = field(default_factory=list[dict[str, mlir.RawAttribute]])
    # the same by the decomposition, where one composite alone names it
    by_function: dict[str, dict[str, mlir.RawAttribute]] = field(
        default_factory=dict[str, dict[str, mlir.RawAttribute]]
    )


def open_composites(graph: Graph) -> OtherNames:
    """Turn the composites of others into marked calls, in place."""
    found = OtherNames()
    named = [node for node in graph.callers if node.name == COMPOSITE]
    users: dict[str, int] = {}
    for node in named:
        users[node.body_name] = users.get(node.body_name, 0) + 1
    numbers: dict[tuple[object, ...], int] = {}
    for node in named:
        name = mlir.symbol_name(node.raw.attributes["name"])
        function = graph.functions.get(node.body_name)
        if not name.startswith(PREFIXES) or name.startswith(PREFIX) or function is None or not function.has_body:
            continue
        attributes = mlir.attributes_of(node.raw)
        number = numbers.setdefault(mlir.attribute_key(node.raw), len(numbers))
        if number == len(found.composites):
            found.composites.append(attributes)
        if users[node.body_name] == 1:
            found.by_function[node.body_name] = attributes
        mark = {"callee": attributes["decomposition"], MARK: mlir.i64_attribute(number)}
        mlir.put_instead(node.raw, "func.call", mark)
        node.raw.erase()
    if found.composites:
        graph.forget()
    return found


def close_composites(graph: Graph, found: OtherNames) -> None:
    """Turn the marked calls that remain back into composites, in place."""
    if not found.composites:
        return
    for node in list(graph.callers):
        mark = node.attribute(MARK)
        if mark is not None:
            as_it_was(node, found.composites[mlir.integer_of(mark)])
    graph.forget()


def as_it_was(node: Node, attributes: dict[str, mlir.RawAttribute]) -> None:
    """Give a composite of ours, or a call, the name and the attributes back that it had."""
    mlir.put_instead(node.raw, COMPOSITE, attributes)
    node.raw.erase()
