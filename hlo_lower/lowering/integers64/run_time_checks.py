"""Which ops have to be tested at run time, so that what narrowing 64-bit integers assumes is known to hold.

An assumption says that the result of an op fits. A test computes that from the op's narrowed operands, and says
something only where these are right themselves: so what they are made of is tested, too, as far as it is not proved.
"""

from collections.abc import Mapping, Sequence

from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.lowering.integers64.demand import Demand, is_wide
from hlo_lower.lowering.integers64.moved_elements import FOLDING
from hlo_lower.lowering.integers64.overflow import why_not_testable
from hlo_lower.lowering.integers64.width_roles import ORDERED, WITHIN
from hlo_lower.ops.names import CASE, CONSTANT, CONVERT, IF, WHILE

THREADED = frozenset({WHILE, CASE, IF})
"""Ops whose regions can give one more result."""


class RunTimeChecks:
    """The tests of a module's assumptions.

    Args:
      graph: the module before it is narrowed.
      demand: what is asked of its 64-bit integers.
      callers: for each function the nodes that call it, or name it as composites.

    Attributes:
      tested: the nodes to be tested.
      untested: the assumed nodes of which no test can be made, each with the reason.
    """

    def __init__(self, graph: Graph, demand: Demand, callers: Mapping[str, Sequence[Node]]) -> None:
        self._graph = graph
        self._demand = demand
        self._callers = callers
        self.tested: dict[Node, None] = {}
        self.untested: dict[Node, str] = {}
        for node in demand.assumed:
            found, reason = self._needed(node)
            if reason:
                self.untested[node] = reason
            else:
                self.tested.update(found)

    def _needed(self, assumed: Node) -> tuple[dict[Node, None], str]:
        """The nodes that are tested for one assumption; why there is no test, "" where there is one."""
        found: dict[Node, None] = {}
        seen: set[Value] = set()
        pending = [assumed.result()]
        while pending:
            value = pending.pop()
            if value in seen or not is_wide(value) or (value != assumed.result() and self._demand.fits(value)):
                continue
            seen.add(value)
            node = value.node
            if node is not None and node.name == CONSTANT:
                return {}, "it is made of a constant that does not fit"
            sources = self._demand.sources_of(value)
            if sources is not None:
                pending += sources
            elif node is not None and (node.name in ORDERED | WITHIN or _is_nothing(node)):
                pending += node.operands
            elif node is not None:
                tested = _folded(node)
                reason = why_not_testable(tested) or self._why_out_of_reach(tested)
                if reason:
                    return {}, reason
                found[tested] = None
                pending += tested.operands
            # else an argument of a public function: whoever calls it narrows it
        return found, ""

    def _why_out_of_reach(self, node: Node) -> str:
        """Why what is computed behind a node cannot become a result of the public functions, "" where it can."""
        child = node
        while (parent := child.parent) is not None and parent.name != "func.func":
            if parent.name not in THREADED:
                return f"it stands within a {parent.name.removeprefix('stablehlo.')}"
            if parent.name == WHILE and child in list(parent.blocks[0].nodes):
                return "it stands in the condition of a loop"
            child = parent
        if parent is None:
            return "it stands in no function"
        return self._why_function_out_of_reach(Function(parent))

    def _why_function_out_of_reach(self, function: Function) -> str:
        if self._graph.has_other_reference(function.name):
            return f"@{function.name} is named otherwise than by calls"
        callers = self._callers.get(function.name, ())
        return next((reason for call in callers if (reason := self._why_out_of_reach(call))), "")


def _is_nothing(node: Node) -> bool:
    """Whether a node converts to the type that is there already, and so goes."""
    return node.name == CONVERT and node.operand(0).element_type == node.result().element_type


def _folded(node: Node) -> Node:
    """The fold in whose region a node stands, or the node itself."""
    parent = node.parent
    return parent if parent is not None and parent.name in FOLDING else node
