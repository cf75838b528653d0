"""What is live over the program order: an estimate of what a compiler must store, to find what is large.

What XLA fuses into its user is not stored, but what it reads stays. What a loop carries lies where it lay before: a
result of a `while` is its operand's storage, unless something else still reads that. What lives in a loop's body, or in
a branch, is live at the loop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from hlo_lower.base.memory import LoopSpan, MemoryCurve
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.ops.names import WHILE


@dataclass(frozen=True)
class Liveness:
    """Bytes that are live at each node, arguments and results of the block left out.

    Attributes:
      live: bytes at each node, in program order.
      peak: the place at which they are most.
      at_peak: the values that are stored there, the largest first.
    """

    live: tuple[int, ...]
    peak: int
    at_peak: tuple[Value, ...]

    @property
    def most(self) -> int:
        """Bytes at the peak."""
        return self.live[self.peak] if self.live else 0


def liveness(program: Dataflow) -> Liveness:
    """The liveness of a block in its order."""
    storage = _Storage(program)
    stored = zip(program.nodes, storage.at(), strict=True)
    live = [total + max((liveness(b).most for b in program.inner(node)), default=0) for node, total in stored]
    peak = max(range(len(live)), key=lambda place: live[place], default=0)
    there = [v for v, (first, last) in storage.spans.items() if first <= peak <= last]
    return Liveness(tuple(live), peak, tuple(sorted(there, key=lambda v: -program.size[v])))


def most_below(program: Dataflow, size: int) -> int:
    """The most bytes that values of less than `size` bytes have together, wherever they are live at once."""
    storage = _Storage(program)
    return max(storage.at(value for value in storage.spans if program.size[value] < size), default=0)


def programs_at_peak(program: Dataflow) -> list[Dataflow]:
    """The block, and the loop's body in it that holds at least half of what is live at its peak, and so on."""
    found = liveness(program)
    if not program.nodes:
        return [program]
    inner = max(program.inner(program.nodes[found.peak]), key=lambda body: liveness(body).most, default=None)
    if inner is None or 2 * liveness(inner).most < found.most:
        return [program]
    return [program, *programs_at_peak(inner)]


class _Storage:
    """Which values are stored, and from where to where."""

    def __init__(self, program: Dataflow) -> None:
        self._program = program
        self._root: dict[Value, Value] = {}
        for node in program.nodes:
            if node.name == WHILE:
                self._carry(node)

    def root(self, value: Value) -> Value:
        """The value whose storage a value has: itself, or what a loop carried."""
        while value in self._root:
            value = self._root[value]
        return value

    def _carry(self, loop: Node) -> None:
        """Results that keep their operand's storage: what the body returns as it is, and what nothing else reads."""
        body = loop.blocks[1]
        for number, (value, result) in enumerate(zip(loop.operands, loop.results, strict=True)):
            is_kept = body.terminator.operand(number) == body.argument(number)
            is_alone = value in self._program.maker and self._program.users[value] == [loop]
            if is_kept or (is_alone and loop.operands.count(value) == 1):
                self._root[result] = value

    @cached_property
    def spans(self) -> dict[Value, tuple[int, int]]:
        """For each stored value that is no argument and is not returned the places of its maker and of its last use."""
        program, last = self._program, self._last
        returned = {self.root(value) for value in program.outputs}
        spans: dict[Value, tuple[int, int]] = {}
        for value in program.maker:
            root = self.root(value)
            if root not in program.maker or root in returned or not program.size[root] or program.is_fused(root):
                continue
            first = program.place[program.maker[root]]
            spans[root] = first, max(last[value], spans.get(root, (first, first))[1])
        return spans

    def at(self, values: Iterable[Value] | None = None) -> list[int]:
        """Bytes that are stored at each node, of these values or of all."""
        changes = [0] * (len(self._program.nodes) + 2)
        for value in self.spans if values is None else values:
            first, last = self.spans[value]
            changes[first] += self._program.size[value]
            changes[last + 1] -= self._program.size[value]
        return list(accumulate(changes[:-2]))

    @cached_property
    def _last(self) -> dict[Value, int]:
        """The place of the last node that reads each value, itself or through what is fused into it."""
        program, last = self._program, dict[Value, int]()
        for value in reversed(list(program.maker)):
            place = program.place[program.maker[value]]
            for user in program.users[value]:
                through = [last[v] for v in user.results if user in program.place and program.is_fused(v)]
                place = max(place, program.place[user], *through)
            last[value] = place
        return last


# --- the memory of a module over its order: what is live at each op, in loops, branches and functions too ---


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
        for node, stored in zip(program.nodes, _Storage(program).at(), strict=True):
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
