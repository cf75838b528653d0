"""Erase what a lowering left dead: pure producers and private functions, and nothing that was dead before."""

from collections.abc import Iterable

from hlo_lower.graph.view import Graph, Node, Value

PURE_OPS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "bitcast_convert", "broadcast_in_dim", "ceil", "clamp", "compare", "complex"),
        *("concatenate", "constant", "convert", "count_leading_zeros", "divide", "dot_general", "dynamic_slice"),
        *("dynamic_update_slice", "exponential", "floor", "gather", "get_dimension_size", "iota", "is_finite", "log"),
        *("maximum", "minimum", "multiply", "negate", "not", "or", "pad", "popcnt", "power", "reduce", "remainder"),
        *("reshape", "reverse", "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left"),
        *("shift_right_arithmetic", "shift_right_logical", "sign", "slice", "sort", "sqrt", "subtract", "transpose"),
        *("xor", "return", "map", "reduce_window", "dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_reshape"),
    )
)
"""Ops without side effects; erasing one whose results nobody uses changes nothing."""


def erase_dead(graph: Graph, candidates: Iterable[Node]) -> None:
    """Erase the candidates that are pure and unused, what they alone used, and private functions no longer called.

    Args:
      graph: the module.
      candidates: nodes that an erased node used.
    """
    pending = list(candidates)
    erased: set[Node] = set()
    called: set[str] = set()
    while pending:
        node = pending.pop()
        if node in erased or any(result.is_used for result in node.results) or not _is_pure(graph, node):
            continue
        if node.name == "func.call":
            called.add(node.callee)
        pending.extend(producer for value in _taken(node) if (producer := value.node) is not None)
        erased.add(node)
        node.raw.erase()
    _erase_uncalled(graph, called, erased)


def _erase_uncalled(graph: Graph, names: set[str], erased: set[Node]) -> None:
    """Erase those private functions of which no call is left, then those that they alone called."""
    gone: set[str] = set()
    pending = sorted(names)
    while pending:
        name = pending.pop()
        function = graph.functions.get(name)
        if function is None or name in gone or function.is_public or graph.has_other_reference(name):
            continue
        if any(call not in erased for call in graph.calls_of(name)):
            continue
        inner = [call for calls in graph.calls.values() for call in calls if call not in erased]
        inside = [call for call in inner if graph.function_of(call).name == name]
        gone.add(name)
        erased.update(inside)
        pending.extend(sorted({call.callee for call in inside}))
        function.node.raw.erase()


def _taken(node: Node) -> list[Value]:
    """What a node takes from around it: its operands, and what its regions capture; not what they define."""
    taken = list(node.operands)
    inside: set[Node] = set()
    used: list[Value] = []

    def visit(outer: Node) -> None:
        for block in outer.blocks:
            for inner in block.nodes:
                inside.add(inner)
                used.extend(inner.operands)
                visit(inner)

    visit(node)
    taken.extend(value for value in used if (producer := value.node) is not None and producer not in inside)
    return taken


def _is_pure(graph: Graph, node: Node) -> bool:
    if node.name == "func.call":
        callee = graph.functions.get(node.callee)
        return callee is not None and callee.has_body and all(_is_pure_inside(graph, n) for n in callee.body.nodes)
    if node.name not in PURE_OPS:
        return False
    return all(_is_pure_inside(graph, inner) for block in node.blocks for inner in block.nodes)


def _is_pure_inside(graph: Graph, node: Node) -> bool:
    return node.name == "func.return" or _is_pure(graph, node)
