"""Ops that may do more than compute keep their order among each other, and are not computed piece by piece."""

import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.cut import Boundary
from hlo_lower.ops.purity import FUNCTIONS
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.prepare.normalize import prepare

OPS = {
    "custom_call": "stablehlo.custom_call @f({}) {{has_side_effect = true}} : (tensor<64xf32>) -> tensor<64xf32>",
    "all_reduce": """"stablehlo.all_reduce"({}) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) {{replica_groups = dense<0> : tensor<1x1xi64>}} : (tensor<64xf32>) -> tensor<64xf32>""",
    "collective_permute": """"stablehlo.collective_permute"({}) {{source_target_pairs = dense<0> : tensor<1x2xi64>}}
    : (tensor<64xf32>) -> tensor<64xf32>""",
}
"""Each of 64 floats."""

MODULE = """\
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x96xf32>, %y: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) {{
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %large = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x96xf32>) -> tensor<64x96xf32>
  %sums = stablehlo.reduce(%large init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  %first = {}
  %second = {}
  %all = stablehlo.broadcast_in_dim %second, dims = [0] : (tensor<64xf32>) -> tensor<64x96xf32>
  %product = stablehlo.multiply %large, %all : tensor<64x96xf32>
  %most = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  return %first, %most : tensor<64xf32>, tensor<64xf32>
}}
"""


@pytest.mark.parametrize(("one", "other"), [("custom_call", "all_reduce"), ("collective_permute", "custom_call")])
def test_effects_keep_their_order(one, other):
    """What stands behind an op with effects and does not need it is not moved before it, though one loop would do."""
    text = MODULE.format(OPS[one].format("%sums"), OPS[other].format("%y"))
    graph = hl.read(text)
    prepare(graph)
    program = Dataflow(graph, default_subset_rules())
    choice = choice_by_hand(program, hl.ByHand("<module>:4", 0, 8))
    emit(program, choice.plan, choice.sizes)
    after = to_text(graph)
    assert after.count("stablehlo.while") == 2
    assert after.index(f"stablehlo.{one}") < after.index(f"stablehlo.{other}")


def test_ops_with_rules_are_functions():
    """Every op that is computed piece by piece is known to be a function of its operands."""
    assert set(default_subset_rules().by_axes) - FUNCTIONS == set()


def test_regions_with_effects_are_boundaries():
    """A sort by a comparison that draws a random number is a boundary."""
    text = """func.func public @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %s = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %shape = stablehlo.constant dense<> : tensor<0xi64>
    %r = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    %c = stablehlo.compare LT, %r, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %s : tensor<8x64xf32>
}"""
    program = Dataflow(hl.read(text), default_subset_rules())
    [axes] = map(program.axes, program.nodes)
    assert isinstance(axes, Boundary)
    assert axes.reason == "stablehlo.sort may have side effects"
