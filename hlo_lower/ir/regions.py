"""Regions: the one op that a region may be, the values that it takes, and all ops within a node."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node, Value


def only_op(block: Block) -> Node | None:
    """The op that a region of two scalars consists of, in either order of its arguments; None where it is more."""
    [*nodes] = block.nodes
    if len(nodes) != 2 or len(block.arguments) != 2 or nodes[1].operands != nodes[0].results:
        return None
    return nodes[0] if set(nodes[0].operands) == set(block.arguments) else None


def captured_values(*blocks: Block) -> list[Value]:
    """The values that regions, nested regions included, take from around them."""
    inside = {argument for block in blocks for argument in block.arguments}
    captured: dict[Value, None] = {}

    def visit(block: Block) -> None:
        for node in block.nodes:
            captured.update(dict.fromkeys(v for v in node.operands if v not in inside))
            inside.update(node.results)
            for inner in node.blocks:
                inside.update(inner.arguments)
                visit(inner)

    for block in blocks:
        visit(block)
    return list(captured)


def used_by(node: Node) -> list[Value]:
    """The values that a node takes: its operands, and what its regions take from around it; one may come twice."""
    return [Value(raw) for raw in mlir.taken_by(node.raw)]


T = TypeVar("T", bound=Hashable)


class Nested:
    """Finds the scatters within nodes; each function is walked once.

    Args:
      graph: for the functions that are called.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._functions: dict[str, tuple[list[Node], list[str]]] = {}

    def within(self, node: Node) -> list[Node]:
        """The scatters within a node, those of a function in program order; itself only if it calls itself."""
        own, pending = self._walk(node)
        found = dict.fromkeys(own)
        entered: set[str] = set()
        while pending:
            name = pending.pop()
            if name in entered or name not in self._graph.functions:
                continue
            entered.add(name)
            if name not in self._functions:
                self._functions[name] = self._walk(self._graph.functions[name].node)
            inner, called = self._functions[name]
            found.update(dict.fromkeys(inner))
            pending.extend(called)
        return list(found)

    def _walk(self, node: Node) -> tuple[list[Node], list[str]]:
        """The scatters in a node's regions, and the functions that are called there."""
        found: list[Node] = []
        called: list[str] = []

        for raw in mlir.operations_within(node.raw):
            inner = Node(raw)
            if inner.name == "stablehlo.scatter" and inner != node:
                found.append(inner)
            if inner.body_name:
                called.append(inner.body_name)
        return found, called


def inner_first(items: Sequence[T], within: Callable[[T], Iterable[T]]) -> list[T]:
    """Items in reverse, but each one behind all that are within it."""
    ordered: dict[T, None] = {}
    entered: set[T] = set()

    def visit(item: T) -> None:
        if item not in entered:
            entered.add(item)
            for inner in within(item):
                visit(inner)
            ordered[item] = None

    for item in reversed(items):
        visit(item)
    return list(ordered)
