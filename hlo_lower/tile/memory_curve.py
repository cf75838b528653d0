"""The memory of a program over its order: what is live at each op, the bodies of loops included."""

from dataclasses import dataclass, field

from hlo_lower.graph import Graph
from hlo_lower.subset.rules import SubsetRules
from hlo_lower.tile.dataflow import Dataflow
from hlo_lower.tile.liveness import liveness


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
    program = Dataflow(graph, rules)
    live: list[int] = []
    loops: list[LoopSpan] = []
    for node, total in zip(program.nodes, liveness(program).live, strict=True):
        inner = program.inner(node)
        first = len(live)
        curves = [_lives(body) for body in inner]
        around = total - max((max(curve, default=0) for curve in curves), default=0)
        live += [around + bytes_ for curve in curves for bytes_ in curve] or [total]
        if node.name == "stablehlo.while":
            loops.append(LoopSpan(first, len(live) - 1, str(graph.location(node))))
    return MemoryCurve(tuple(live), tuple(loops))


def _lives(program: Dataflow) -> list[int]:
    """What is live at each op of a body, those of its own loops included."""
    found: list[int] = []
    for node, total in zip(program.nodes, liveness(program).live, strict=True):
        curves = [_lives(body) for body in program.inner(node)]
        around = total - max((max(curve, default=0) for curve in curves), default=0)
        found += [around + bytes_ for curve in curves for bytes_ in curve] or [total]
    return found
