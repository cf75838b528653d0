"""The memory of a module over its order: what is live at each op, in loops, branches and functions too."""

from hlo_lower.base.memory import LoopSpan, MemoryCurve
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import stored_at
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.names import WHILE

MOST_OPS = 1 << 16
"""Ops of a curve up to which bodies and called functions stand in it with all of theirs, and then with their peak:
calls of calls can be more than any memory holds (trap 54)."""

MOST_OPEN = 100
"""Functions, each called by the one before, of which the last is looked into."""


def curves_of(*graphs: Graph) -> tuple[MemoryCurve, ...]:
    """The curve of the entry point of each module; none where a size is known at run time only."""
    try:
        return tuple(_Curves(graph).of(Dataflow(graph, default_subset_rules())) for graph in graphs)
    except _UnknownSizeError:
        return ()


class _UnknownSizeError(Exception):
    """A value has a size that is known at run time only."""


class _Curves:
    """The curves of a module's blocks; that of a function is made once, however often it is called."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._functions: dict[str, MemoryCurve] = {}
        self._open = 0

    def of(self, program: Dataflow) -> MemoryCurve:
        """The curve of a block."""
        if any(value.tensor_type is not None and not value.tensor_type.is_static for value in program.maker):
            raise _UnknownSizeError
        live: list[int] = []
        loops: list[LoopSpan] = []
        for node, stored in zip(program.nodes, stored_at(program), strict=True):
            first, inner = len(live), self._inner(program, node)
            for curve in inner:
                is_long = len(live) + len(curve.live) > MOST_OPS
                shown = MemoryCurve((curve.most,)) if is_long else curve
                loops += [LoopSpan(len(live) + own.first, len(live) + own.last, own.where) for own in shown.loops]
                live += [stored + size for size in shown.live]
            live += [stored] if len(live) == first else []
            if node.name == WHILE:
                loops = [span for span in loops if span.first < first]
                loops.append(LoopSpan(first, len(live) - 1, str(self._graph.location(node))))
        return MemoryCurve(tuple(live), tuple(loops))

    def _inner(self, program: Dataflow, node: Node) -> list[MemoryCurve]:
        """The curves of a loop's body, of branches, or of the function that is called."""
        if node.name != "func.call":
            return [self.of(body) for body in program.inner(node)]
        function = self._graph.functions.get(node.callee)
        if function is None or not function.has_body or self._open == MOST_OPEN:
            return []
        if node.callee not in self._functions:
            self._open += 1
            self._functions[node.callee] = MemoryCurve(())  # what it is for a function that calls itself
            self._functions[node.callee] = self.of(Dataflow(self._graph, program.rules, function.body))
            self._open -= 1
        return [self._functions[node.callee]]
