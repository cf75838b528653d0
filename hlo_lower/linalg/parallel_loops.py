"""Loops whose order is free as `scf.forall`; of the others it is told why they stay `scf.for`."""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.graph import Graph, Node
from hlo_lower.loop.scf_forall import emit_forall


@dataclass(frozen=True)
class ParallelLoops:
    """What became of the counted loops of a module.

    Attributes:
      count: those that are `scf.forall`.
      in_order: where the others are and why they are not, a line each.
    """

    count: int = 0
    in_order: tuple[str, ...] = ()


def lower_parallel(graph: Graph) -> ParallelLoops:
    """Replace the `scf.for` whose iterations do not meet, inner ones first."""
    loops: list[Node] = []
    functions: dict[str, Node] = {}

    def visit(node: Node) -> None:
        if node.name == "scf.for":
            loops.append(node)
        elif node.name == "func.func":
            functions[mlir.symbol_name(node.raw.attributes["sym_name"])] = node

    graph.walk(visit)
    count, in_order = 0, list[str]()
    with mlir.active(graph.context):
        for loop in reversed(loops):
            where = str(graph.location(loop))
            why = emit_forall(loop, functions)
            count += not why
            in_order += [f"scf.for at {where} {why}"] if why else []
    return ParallelLoops(count, tuple(dict.fromkeys(reversed(in_order))))
