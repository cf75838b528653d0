"""Starts beyond the edges in the runs of a whole module: what XLA makes of neighbours that are right alone."""

import numpy as np
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.verify import verify
from hlo_lower.verify.module_runs import EDGES, RUN_REGIMES, draw, drives_of
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import read_signature

ARGUMENTS = "%x: 64xf32, %s: i32, %i: 2x1xi32, %u: 2xf32"
SLICED = "%w = dynamic_slice %x, %s, sizes = [16]"
SCATTERED = module(
    ARGUMENTS,
    f"{SLICED}; %r = scatter(%w, %i, %u) <indices_are_sorted = false, unique_indices = false, points> {{add}}",
    "%r",
)


def unrolled(*, clamped):
    """A scatter of two indices into a dynamic_slice, its updates guarded; the starts clamped, or as they are."""
    text, operand = f"{SLICED}; %lo = constant 0 : i32; %hi = constant 15 : i32\n", "%w"
    for k in range(2):
        start = f"%at{k}" if clamped else f"%k{k}"
        text += f"""%i{k} = slice %i [{k}:{k + 1}, 0:1]; %k{k} = reshape %i{k} -> i32; %u{k} = slice %u [{k}:{k + 1}]
        %ge{k} = compare GE, %k{k}, %lo, SIGNED; %le{k} = compare LE, %k{k}, %hi, SIGNED; %in{k} = and %ge{k}, %le{k}
        %at{k} = clamp %lo, %k{k}, %hi; %old{k} = dynamic_slice {operand}, {start}, sizes = [1]
        %sum{k} = add %old{k}, %u{k}; %new{k} = select %in{k}, %sum{k}, %old{k}
        %r{k} = dynamic_update_slice {operand}, %new{k}, {start}
        """
        operand = f"%r{k}"
    return module(ARGUMENTS, text, "%r1")


def test_an_unclamped_start_within_another_slice_is_found():
    """XLA adds the two starts; each region is right alone, and only the whole module shows it."""
    verdict = verify(SCATTERED, unrolled(clamped=False))
    assert verdict.exit_code == 1, verdict.lines()
    assert verdict.module.status == "differs"
    verdict = verify(SCATTERED, unrolled(clamped=True))
    assert verdict.exit_code == 0, verdict.lines()
    assert "beyond the edges" in verdict.module.how


def test_starts_of_such_a_run_lie_beyond_the_edges():
    """Below, above and far out, each in some run; the first runs that are asked for lie inside."""
    program = Program(mlir.parse_module(SCATTERED))
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
