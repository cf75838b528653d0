"""Rewrite a module of plain StableHLO to linalg on tensors: jaxlib's own pass, and around it what that leaves behind.

what it does not take   in other words                 (prepare)
nearly everything       stablehlo-legalize-to-linalg, in named ops where it knows one
unsigned types          signless ones                  (signless)
strided writes          tensor.insert_slice            (composite_ops)
softmax, if named       linalg.softmax                 (composite_ops)
sizes at run time       tensor.dim, insert_slice, reshape              (dynamic)
while, if, case         scf.for, scf.while, scf.if     (control, counter)
loops in any order      scf.forall, if that is asked for               (parallel)
shardings               removed, and reported          (legalize.foreign_attributes)
generic products        linalg.matmul, contract, convolutions, poolings    (specialize)
all named ops           linalg.generic, if that is asked for               (generalize)
"""

from hlo_lower.base.errors import NotLoweredError
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.engine.foreign_attributes import remove_foreign
from hlo_lower.lowering.linalg.composite_ops import lower_composites
from hlo_lower.lowering.linalg.control_flow_ops import CONTROL, lower_control, mark_counted
from hlo_lower.lowering.linalg.counter import put_in_plain_places, step_by_size
from hlo_lower.lowering.linalg.dynamic_shapes import DYNAMIC, lower_dynamic
from hlo_lower.lowering.linalg.generalize import generalize
from hlo_lower.lowering.linalg.linalg_report import LinalgReport, is_foreign, left_in
from hlo_lower.lowering.linalg.parallel_loops import ParallelLoops, inline_into_loops, lower_parallel
from hlo_lower.lowering.linalg.prepare import passes_before, prepare
from hlo_lower.lowering.linalg.signless import make_signless
from hlo_lower.lowering.linalg.specialize import specialize
from hlo_lower.ops.names import COMPOSITE

REWRITTEN = CONTROL | DYNAMIC | {COMPOSITE}
"""Operations that jaxlib's pass leaves and that are replaced here."""

STABLEHLO_DIALECTS = ("sdy", "mhlo", "stablehlo", "chlo", "mpmd")
"""Those whose attributes no reader of linalg knows."""

SIMPLIFY = "canonicalize,cse"


def to_linalg(graph: Graph, *, named: bool, parallel: bool = False) -> LinalgReport:
    """Rewrite a module to linalg on tensors, in place.

    Args:
      graph: a module whose scatters are lowered; it is read anew from here on.
      named: write named operations where there are any (`linalg.softmax`, `matmul`, `reduce`, `map`, ...); otherwise
        the same module in `linalg.generic`, softmax in its plain ops.
      parallel: emit counted loops whose iterations do not meet as `scf.forall`.

    Returns:
      What is left of other dialects, and what changed besides.

    Raises:
      NotLoweredError: jaxlib's pass fails, or what it made does not verify.
    """
    for pipeline in passes_before(graph, named=named):
        _run(graph, pipeline)
    prepare(graph)
    mark_counted(graph)
    _run(graph, "stablehlo-legalize-to-linalg{enable-primitive-ops=true}")
    signless = make_signless(graph, REWRITTEN)
    lower_composites(graph)
    lower_dynamic(graph)
    counted, others = lower_control(graph)
    removed = remove_foreign(graph, STABLEHLO_DIALECTS, is_foreign)
    _run(graph, SIMPLIFY)
    if parallel and inline_into_loops(graph):
        _run(graph, SIMPLIFY)
    loops = lower_parallel(graph) if parallel else ParallelLoops()
    for change in (put_in_plain_places, step_by_size):
        if change(graph):
            _run(graph, SIMPLIFY)
    specialize(graph)
    _check(graph)  # which notes the maps of strides and dilations, too
    if not named:
        generalize(graph)
        _check(graph)
    _run(graph, "symbol-dce")
    counted = counted - loops.count
    return LinalgReport(named, left_in(graph), removed, counted, others, signless, loops.count, loops.in_order)


def _run(graph: Graph, pipeline: str) -> None:
    try:
        mlir.run_pass(graph.module.operation, f"builtin.module({pipeline})")
    except mlir.PassError as error:
        raise _failed(graph, f"{pipeline}: {error}") from None


def _check(graph: Graph) -> None:
    problem = mlir.verify_module(graph.module)
    if problem is not None:
        raise _failed(graph, f"the module in linalg does not verify: {problem}")


def _failed(graph: Graph, what: str) -> NotLoweredError:
    return NotLoweredError(graph.name, what, next_step="--target stablehlo writes the module without linalg")
