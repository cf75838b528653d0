"""Loops whose order is free as `scf.forall`; of the others it is told why they stay `scf.for`."""

from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.linalg.scf_forall import emit_forall

MOST_INLINED = 4096
"""Operations that loops get from functions that they call."""


@dataclass(frozen=True)
class ParallelLoops:
    """What became of the counted loops of a module.

    Attributes:
      count: those that are `scf.forall`.
      in_order: where the others are and why they are not, a line each.
    """

    count: int = 0
    in_order: tuple[str, ...] = ()


def inline_into_loops(graph: Graph) -> bool:
    """Put the bodies of functions that loops call in the place of the calls, so that what they write is seen.

    Returns:
      Whether there were any.
    """
    loops, functions = _found(graph)
    pending = [call for loop in loops for call in _calls(loop.raw)]
    count = 0
    with mlir.active(graph.context):
        while pending and count < MOST_INLINED:
            call = pending.pop()
            blocks = functions[call.callee].blocks if call.callee in functions else ()
            if not blocks or call.parent is None:
                continue
            *raws, last = (node.raw for node in blocks[0].nodes)
            arguments = [argument.raw for argument in blocks[0].arguments]
            template = mlir.template_of(raws, arguments, list(last.operands), call.raw.location)
            built, given = mlir.inlined(template, list(call.raw.operands), call.raw)
            for result, value in zip(call.raw.results, given, strict=True):
                result.replace_all_uses_with(value)
            call.raw.erase()
            pending += [inner for raw in built for inner in _calls(raw)]
            count += len(built)
    return count > 0


def lower_parallel(graph: Graph) -> ParallelLoops:
    """Replace the `scf.for` whose iterations do not meet, inner ones first."""
    loops, functions = _found(graph)
    count, in_order = 0, list[str]()
    with mlir.active(graph.context):
        for loop in reversed(loops):
            where = str(graph.location(loop))
            why = emit_forall(loop, functions)
            count += not why
            in_order += [f"scf.for at {where} {why}"] if why else []
    return ParallelLoops(count, tuple(dict.fromkeys(reversed(in_order))))


def _found(graph: Graph) -> tuple[list[Node], dict[str, Node]]:
    """The `scf.for` of a module, in program order, and its functions by name."""
    loops: list[Node] = []
    functions: dict[str, Node] = {}

    def visit(node: Node) -> None:
        if node.name == "scf.for":
            loops.append(node)
        elif node.name == "func.func":
            functions[mlir.symbol_name(node.raw.attributes["sym_name"])] = node

    graph.walk(visit)
    return loops, functions


def _calls(raw: mlir.RawOperation) -> list[Node]:
    return [Node(inner) for inner in mlir.walked(raw) if inner.name == "func.call"]
