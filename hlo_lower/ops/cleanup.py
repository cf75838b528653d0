"""Erase what a lowering left dead: pure producers and private functions, and nothing that was dead before."""

from collections.abc import Callable, Iterable, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.purity import PURE_OPS

_NAMELESS = {"builtin.module", "func.func", *PURE_OPS}
"""Ops that name no function but the one they are."""


def erase(graph: Graph, node: Node, tell: Callable[[Node], None] | None = None) -> set[str]:
    """Erase a node that has been replaced, and the pure producers that only it used.

    Args:
      graph, node: the node, and its module.
      tell: is called with each producer before it is erased, and with the ops that stand in it.

    Returns:
      The functions of which a call was erased with them, for `erase_uncalled`.
    """
    called, pending = _uses_of(node.raw)
    node.raw.erase()
    while pending:
        value = pending.popitem()[0]
        producer = None if mlir.is_used(value) else mlir.producer(value)
        if producer is None:
            continue
        results = list(producer.results)
        if any(map(mlir.is_used, results)) or not _is_pure(graph, Node(producer)):
            continue
        for result in results:  # the bindings must not touch what an erased operation gave, not even to hash it
            pending.pop(result, None)
        inner, taken = _uses_of(producer)
        called |= inner
        pending |= taken
        if tell is not None:
            for op in mlir.operations_within(producer):
                tell(Node(op))
        producer.erase()
    return called


def erase_built(built: Sequence[Node], beside: Node) -> None:
    """Erase operations that were built beside a node, which nothing uses yet, with what stands in their regions."""
    parent = beside.raw.parent
    for node in reversed([node for node in built if node.raw.parent == parent]):
        node.raw.erase()


def erase_uncalled(graph: Graph, names: Iterable[str]) -> None:
    """Erase those of these functions that are private and named nowhere any more, then those that only they called."""
    pending: set[str] = {name for name in names if name in graph.functions and not graph.functions[name].is_public}
    while pending:
        still_named = _named_in(graph)
        dead: list[str] = sorted(pending - still_named)
        pending &= still_named
        if not dead:
            return
        for name in dead:
            function = graph.functions[name].node.raw
            called = _called_in(mlir.operations_within(function))
            pending |= {c for c in called if c not in dead and not graph.functions[c].is_public}
            function.erase()


def _named_in(graph: Graph) -> set[str]:
    """The symbols that any operation names: calls, composites, custom calls."""
    naming = (raw for raw in mlir.operations_within(graph.module.operation) if raw.name not in _NAMELESS)
    return {name for raw in naming for name in mlir.symbols_in(raw)}


def _called_in(operations: Iterable[mlir.RawOperation]) -> set[str]:
    """The functions that operations call, or that are the bodies of composites."""
    return {name for op in operations if (name := Node(op).body_name)}


def _uses_of(raw: mlir.RawOperation) -> tuple[set[str], dict[mlir.RawValue, None]]:
    """The functions that an operation calls, and the values that it takes from around it: its operands, and what its
    regions capture, arguments of blocks left out."""
    inside = mlir.operations_within(raw)
    taken = [value for op in inside[1:] for value in op.operands if not mlir.is_block_argument(value)]
    own = {result for op in inside for result in op.results} if taken else ()
    return _called_in(inside), dict.fromkeys([*raw.operands, *(value for value in taken if value not in own)])


def _is_pure(graph: Graph, node: Node) -> bool:
    if node.name == "func.call":
        callee = graph.functions.get(node.callee)
        return callee is not None and callee.has_body and all(_is_pure_inside(graph, n) for n in callee.body.nodes)
    if node.name not in PURE_OPS:
        return False
    return all(_is_pure_inside(graph, inner) for block in node.blocks for inner in block.nodes)


def _is_pure_inside(graph: Graph, node: Node) -> bool:
    return node.name == "func.return" or _is_pure(graph, node)
