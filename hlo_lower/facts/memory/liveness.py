"""What is live over the program order: an estimate of what a compiler must store, to find what is large.

What XLA fuses into its user is not stored, but what it reads stays. What a loop carries lies where it lay before: a
result of a `while` is its operand's storage, unless something else still reads that. What lives in a loop's body, or in
a branch, is live at the loop.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Node, Value
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
    stored = zip(program.nodes, storage.at, strict=True)
    live = [total + max((liveness(b).most for b in program.inner(node)), default=0) for node, total in stored]
    peak = max(range(len(live)), key=lambda place: live[place], default=0)
    there = [v for v, (first, last) in storage.spans.items() if first <= peak <= last]
    return Liveness(tuple(live), peak, tuple(sorted(there, key=lambda v: -program.size[v])))


def stored_at(program: Dataflow) -> list[int]:
    """Bytes that are live at each node of a block, without what lives in its bodies."""
    return _Storage(program).at


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
        returned = {self.root(value) for value in program.returned}
        spans: dict[Value, tuple[int, int]] = {}
        for value in program.maker:
            root = self.root(value)
            if root not in program.maker or root in returned or not program.size[root] or program.is_fused(root):
                continue
            first = program.place[program.maker[root]]
            spans[root] = first, max(last[value], spans.get(root, (first, first))[1])
        return spans

    @property
    def at(self) -> list[int]:
        """Bytes that are stored at each node."""
        changes = [0] * (len(self._program.nodes) + 2)
        for value, (first, last) in self.spans.items():
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
