"""Write named ops out again: the inverse of raising.

A composite whose decomposition was made by raising becomes the ops of that function; one whose decomposition is a
function of the module's own becomes a call of it, as it was before. What was raised and is written out is the same
module up to names and the order of ops that do not depend on each other; a constant that a named op shared with others
is there twice.
"""

from collections.abc import Collection

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node
from hlo_lower.named.take_out.outline import PREFIX
from hlo_lower.ops.cleanup import erase_uncalled
from hlo_lower.ops.names import COMPOSITE


def inline_graph(graph: Graph, only: Collection[str] | None = None) -> int:
    """Write the named ops of a module out, in place; how many there were.

    Args:
      graph: the module.
      only: the names of those that are written out, without the prefix; None for all.
    """
    count, unnamed = 0, set[str]()
    while found := [node for node in graph.callers if node.name == COMPOSITE and _is_named(node, only)]:
        for node in found:
            function = graph.functions[node.body_name]
            unnamed.add(function.name)
            write_out(node, function)
        count += len(found)
        graph.forget()
    erase_uncalled(graph, unnamed)
    graph.forget()
    return count


def _is_named(node: Node, only: Collection[str] | None) -> bool:
    name = mlir.symbol_name(node.raw.attributes["name"])
    return name.startswith(PREFIX) and (only is None or name.removeprefix(PREFIX) in only)


def write_out(node: Node, function: Function) -> None:
    """Put the ops of its decomposition in the place of one composite, or a call of a function of the module's own."""
    raw = node.raw
    if function.name.startswith(PREFIX):
        _, given = mlir.inlined(function.node.raw, list(raw.operands), raw)
        for old, new in zip(raw.results, given, strict=True):
            old.replace_all_uses_with(new)
    else:
        mlir.put_instead(raw, "func.call", {"callee": raw.attributes["decomposition"]})
    raw.erase()
