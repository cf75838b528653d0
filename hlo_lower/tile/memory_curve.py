"""The memory of a program over its order: what is live at each op, the bodies of loops included."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_lower.graph import Graph, Node
from hlo_lower.subset.rules import SubsetRules
from hlo_lower.tile.dataflow import Dataflow
from hlo_lower.tile.liveness import inner_peak, liveness


@dataclass(frozen=True)
class LoopSpan:
    """Where a loop's body lies in a curve.

    Attributes:
      first, last: the places of its ops.
      where: the loop's own place ("llama.py:88").
    """

    first: int
    last: int
    where: str


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes that are live at each op, an estimate; arguments and results left out.

    Attributes:
      live: in program order; a loop's body stands in its place, once.
      loops: the loops that are not within another one.
    """

    live: tuple[int, ...]
    loops: tuple[LoopSpan, ...] = field(default=())

    @property
    def most(self) -> int:
        """Bytes at the peak."""
        return max(self.live, default=0)


def curve_of(graph: Graph, rules: SubsetRules) -> MemoryCurve:
    """The curve of a module's entry point."""
    live: list[int] = []
    loops: list[LoopSpan] = []
    for node, lives in _lives(Dataflow(graph, rules)):
        if node.name == "stablehlo.while":
            loops.append(LoopSpan(len(live), len(live) + len(lives) - 1, str(graph.location(node))))
        live += lives
    return MemoryCurve(tuple(live), tuple(loops))


def _lives(program: Dataflow) -> Iterator[tuple[Node, list[int]]]:
    """What is live at each node of a block, or at each op of its bodies and branches where it has such."""
    for node, total in zip(program.nodes, liveness(program).live, strict=True):
        around = total - inner_peak(program, node)
        inside = [size for body in program.inner(node) for _, lives in _lives(body) for size in lives]
        yield node, [around + size for size in inside] or [total]
