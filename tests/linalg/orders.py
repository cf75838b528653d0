"""Modules in linalg whose parallel loops run in another order: IREE runs them from the first to the last."""

from leaving import lowered_text

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.lowering.linalg.loops import index_constant, range_of
from hlo_lower.lowering.linalg.lower import LinalgReport, to_linalg


def parallel(source, *, is_reversed=False) -> tuple[str, LinalgReport]:
    """A module in linalg with `scf.forall`, from the last iteration to the first where that is asked for."""
    graph = read(lowered_text(source))
    report = to_linalg(graph, named=True, parallel=True)
    if is_reversed:
        reverse(graph)
    return str(graph.module), report


def reverse(graph):
    """Let the counter of each `scf.forall` stand for its counterpart from the other end."""
    loops = []
    graph.walk(lambda node: loops.append(node) if node.name == "scf.forall" else None)
    with mlir.active(graph.context):
        for loop in loops:
            counted, block = range_of(loop), loop.blocks[0]
            counter = block.argument(0)
            build = Builder(mlir.insert_at_begin(block.raw), loop.raw.location)
            both = index_constant(build, counted[0] + counted[-1])
            other = build.op("arith.subi", [both, both], [counter.raw.type])
            counter.raw.replace_all_uses_with(other.result().raw)
            other.raw.operands[1] = counter.raw
    assert mlir.verify_module(graph.module) is None
