"""Starts beyond the edges in the runs of a whole module: what XLA makes of neighbours that are right alone."""

import numpy as np
from two_programs import main

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.module_runs import EDGES, RUN_REGIMES, draw, drives_of
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import read_signature

SCALAR, ROW, LARGE, ONE = "tensor<i32>", "tensor<16xf32>", "tensor<64xf32>", "tensor<1xf32>"
SLICED = f"%w = stablehlo.dynamic_slice %x, %s, sizes = [16] : ({LARGE}, {SCALAR}) -> {ROW}"
SCATTERED = f"""{SLICED}
%r = "stablehlo.scatter"(%w, %i, %u) <{{indices_are_sorted = false, unique_indices = false,
  scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
  scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %c : tensor<f32>
}}) : ({ROW}, tensor<2x1xi32>, tensor<2xf32>) -> {ROW}"""


def unrolled(*, clamped):
    """A scatter of two indices into a dynamic_slice, its updates guarded; the starts clamped, or as they are."""
    text, operand = (
        f"""{SLICED}
    %lo = stablehlo.constant dense<0> : {SCALAR}
    %hi = stablehlo.constant dense<15> : {SCALAR}
    """,
        "%w",
    )
    for k in range(2):
        start = f"%at{k}" if clamped else f"%k{k}"
        text += f"""%i{k} = stablehlo.slice %i [{k}:{k + 1}, 0:1] : (tensor<2x1xi32>) -> tensor<1x1xi32>
    %k{k} = stablehlo.reshape %i{k} : (tensor<1x1xi32>) -> {SCALAR}
    %u{k} = stablehlo.slice %u [{k}:{k + 1}] : (tensor<2xf32>) -> {ONE}
    %ge{k} = stablehlo.compare GE, %k{k}, %lo, SIGNED : ({SCALAR}, {SCALAR}) -> tensor<i1>
    %le{k} = stablehlo.compare LE, %k{k}, %hi, SIGNED : ({SCALAR}, {SCALAR}) -> tensor<i1>
    %in{k} = stablehlo.and %ge{k}, %le{k} : tensor<i1>
    %at{k} = stablehlo.clamp %lo, %k{k}, %hi : {SCALAR}
    %old{k} = stablehlo.dynamic_slice {operand}, {start}, sizes = [1] : ({ROW}, {SCALAR}) -> {ONE}
    %sum{k} = stablehlo.add %old{k}, %u{k} : {ONE}
    %new{k} = stablehlo.select %in{k}, %sum{k}, %old{k} : tensor<i1>, {ONE}
    %r{k} = stablehlo.dynamic_update_slice {operand}, %new{k}, {start} : ({ROW}, {ONE}, {SCALAR}) -> {ROW}
    """
        operand = f"%r{k}"
    return text


def module(body, result):
    """A module of an array, the start of its slice, two indices and updates."""
    return main(f"%x: {LARGE}, %s: {SCALAR}, %i: tensor<2x1xi32>, %u: tensor<2xf32>", body, result, ROW)


def test_an_unclamped_start_within_another_slice_is_found():
    """XLA adds the two starts; each region is right alone, and only the whole module shows it."""
    verdict = verify(module(SCATTERED, "%r"), module(unrolled(clamped=False), "%r1"))
    assert verdict.exit_code == 1, verdict.lines()
    assert verdict.module.status == "differs"
    verdict = verify(module(SCATTERED, "%r"), module(unrolled(clamped=True), "%r1"))
    assert verdict.exit_code == 0, verdict.lines()
    assert "beyond the edges" in verdict.module.how


def test_starts_of_such_a_run_lie_beyond_the_edges():
    """Below, above and far out, each in some run; the first runs that are asked for lie inside."""
    program = Program(mlir.parse_module(module(SCATTERED, "%r")))
    drives, signature = drives_of(program), read_signature(program.raw)
    starts = [draw(signature, drives, 0, k)[2].reshape(-1) for k in EDGES]
    assert all(((one < 0) | (one > 15)).any() for one in starts)
    drawn = np.concatenate(starts)
    assert (drawn < 0).any()
    assert (np.abs(drawn.astype(np.int64)) > 1000).any()
    assert ((drawn > 15) & (drawn < 32)).any()
    for k in range(len(RUN_REGIMES) - 1):
        inside = draw(signature, drives, 0, k)[2]
        assert inside.min() >= 0
        assert inside.max() <= 15
