"""Ops that nothing uses are erased before loops are made; those that do more than compute stay, with what they read."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.verify.run import Executable

MODULE = """func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x96xf32>) -> tensor<64xf32> {{
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %large = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x96xf32>) -> tensor<64x96xf32>
  %e = stablehlo.exponential %large : tensor<64x96xf32>
  {}
  %sums = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  return %sums : tensor<64xf32>
}}"""

DEAD = {
    "one": "%d = stablehlo.minimum %e, %large : tensor<64x96xf32>",
    "a chain": """%c = stablehlo.minimum %e, %large : tensor<64x96xf32>
  %d = stablehlo.transpose %c, dims = [1, 0] : (tensor<64x96xf32>) -> tensor<96x64xf32>
  %f = stablehlo.tanh %d : tensor<96x64xf32>""",
    "several results": "%d:2 = chlo.top_k(%e, k = 3) : tensor<64x96xf32> -> (tensor<64x3xf32>, tensor<64x3xi32>)",
    "a reduction": """%d = stablehlo.reduce(%e init: %zero) applies stablehlo.maximum across dimensions = [0]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<96xf32>""",
    "in a region": """%d = stablehlo.while(%i = %zero) : tensor<f32> cond {
      %p = stablehlo.compare LT, %i, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %m = stablehlo.minimum %e, %large : tensor<64x96xf32>
      stablehlo.return %i : tensor<f32>
    }""",
}
KEPT = "%d = stablehlo.custom_call @f(%e) {has_side_effect = true} : (tensor<64x96xf32>) -> tensor<64x96xf32>"


def tiled(text, is_prepared=True):
    """The module with a loop over rows of the product."""
    graph = hl.read(text)
    if is_prepared:
        prepare(graph)
    program = Dataflow(graph, default_subset_rules())
    choice = choice_by_hand(program, hl.ByHand("<module>:5", 0, 8))
    emit(program, choice.plan, choice.sizes)
    return to_text(graph)


@pytest.mark.parametrize("what", DEAD)
@pytest.mark.parametrize("is_prepared", [True, False])
def test_what_nothing_uses_is_no_part_of_a_loop(what, is_prepared):
    """The loop stores no value for a dead op, and gives the sums of the module without it, bit for bit."""
    after = tiled(MODULE.format(DEAD[what]), is_prepared)
    assert "UNKNOWN" not in after
    assert not is_prepared or "minimum" not in after
    assert after.count("stablehlo.while") == 1 + (what == "in a region" and not is_prepared)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s).astype("f4") for s in ((64, 8), (8, 96))]
    sums = [Executable(text, "exact").run(given)[0] for text in (MODULE.format(""), after)]
    assert np.allclose(*sums, rtol=1e-5)


def test_what_may_have_an_effect_stays():
    """A custom call with effects that nothing uses reads the whole of what a loop writes tile by tile."""
    after = tiled(MODULE.format(KEPT))
    assert "custom_call @f" in after
    assert "tensor<64x96xf32>" in after[after.index("stablehlo.while") :].splitlines()[0]
