"""What a value may come from, and what reads it: through ops of some kinds, and calls, which a consumer inlines."""

from collections.abc import Callable, Collection, Iterator

from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.ops.names import OPTIMIZATION_BARRIER
from hlo_lower.ops.spec import CONSTANTS, ELEMENTWISE, RESHAPING

CALL = "func.call"

MOVED_OR_ALONE = RESHAPING | ELEMENTWISE
"""Ops that move elements, or compute each alone."""

UNMOVED = ELEMENTWISE | CONSTANTS | {OPTIMIZATION_BARRIER}
"""Ops behind which a consumer has nothing to move: those that compute each element alone, and those of no other op."""


def given_at_calls(graph: Graph, value: Value) -> list[Value]:
    """What a value stands for at all calls of its function, or in the function that is called; none where not known."""
    node = value.node
    if node is not None:
        callee = graph.functions[node.callee] if node.name == CALL else None
        return [callee.body.terminator.operand(value.number)] if callee is not None and callee.has_body else []
    owner = value.block.owner if value.block is not None else None
    if owner is None or owner.name != "func.func":
        return []
    function = Function(owner)
    is_known = not (function.is_public or graph.has_other_reference(function.name))
    return [call.operand(value.number) for call in graph.calls_of(function.name)] if is_known else []


def read_at_calls(graph: Graph, node: Node, number: int) -> list[Value]:
    """What an operand of a call is in the function, or one of a return at the calls of the function."""
    if node.name == CALL:
        function = graph.functions[node.callee]
        return [function.body.arguments[number]] if function.has_body else []
    if node.name != "func.return":
        return []
    function = Function(Node(node.raw.parent))
    return [] if function.is_public else [call.result(number) for call in graph.calls_of(function.name)]


def made_by(ops: Collection[str]) -> Callable[[Node | None], bool]:
    """Whether a value is made by one of these ops."""
    return lambda made: made is not None and made.name in ops


def made_by_others(ops: Collection[str]) -> Callable[[Node | None], bool]:
    """Whether a value is made by an op that is none of these."""
    return lambda made: made is not None and made.name not in ops


class ComesFrom:
    """Whether a value may come from a source. Each value of a module is looked at once, whatever is asked.

    Attributes:
      graph: the module.
      is_source: whether one is what is looked for: the op that makes it, or None for an argument of no known call.
      through: the names of the ops that are looked through; None for all.
    """

    def __init__(self, graph: Graph, is_source: Callable[[Node | None], bool], through: Collection[str] | None) -> None:
        self._graph, self._is_source, self._through = graph, is_source, through
        self._known: dict[Value, bool] = {}

    def __call__(self, value: Value) -> bool:
        """Whether it does."""
        known = self._at_once(value)
        path, entered, has_round = [(value, self._before(value))] if known is None else [], {value}, False
        while path and not known:
            following = next(path[-1][1], None)
            if following is None:
                last, _ = path.pop()
                if not has_round:
                    self._known[last] = False
            elif following in entered:
                has_round |= following not in self._known  # a function called with what it gave: known at the end
            elif (known := self._at_once(following)) is None:
                entered.add(following)
                path.append((following, self._before(following)))
        if known:
            self._known.update((one, True) for one, _ in path)
        elif has_round:
            self._known.update(dict.fromkeys(entered, False))
        return bool(known)

    def _at_once(self, value: Value) -> bool | None:
        """What is known of a value already, or by the op that makes it; None where it depends on what is before."""
        if value not in self._known and not given_at_calls(self._graph, value) and self._is_source(value.node):
            self._known[value] = True
        return self._known.get(value)

    def _before(self, value: Value) -> Iterator[Value]:
        made = value.node
        if given := given_at_calls(self._graph, value):
            return iter(given)
        return iter(made.operands if made is not None and (self._through is None or made.name in self._through) else ())
