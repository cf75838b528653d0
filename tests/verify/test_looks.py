"""A module in bf16 and one that moves and computes in f32: values are aligned through the conversions."""

import hlo_lower as hl

DERIVES = True

BEFORE = """
func.func public @main(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>, %i: tensor<1xi32>)
    -> tensor<8x4xbf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xbf16>, tensor<8x8xbf16>)
    -> tensor<4x8xbf16>
  %c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xbf16>) -> tensor<4x8xbf16>
  %z = stablehlo.add %y, %c : tensor<4x8xbf16>
  %t = stablehlo.tanh %z : tensor<4x8xbf16>
  %r = stablehlo.transpose %t, dims = [1, 0] : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
  return %r : tensor<8x4xbf16>
}
"""

AFTER = """
func.func public @main(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>, %i: tensor<1xi32>)
    -> tensor<8x4xbf16> {
  %0 = stablehlo.convert %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %1 = stablehlo.convert %w : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>)
    -> tensor<4x8xf32>
  %y = stablehlo.convert %2 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %3 = stablehlo.convert %b : (tensor<8xbf16>) -> tensor<8xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.convert %y : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %6 = stablehlo.add %5, %4 : tensor<4x8xf32>
  %z = stablehlo.convert %6 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %t = stablehlo.tanh %z : tensor<4x8xbf16>
  %7 = stablehlo.convert %t : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %8 = stablehlo.transpose %7, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %r = stablehlo.convert %8 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  return %r : tensor<8x4xbf16>
}
"""


def test_each_op_is_a_region():
    """What is computed in f32 and rounded is derived op by op, and the tanh between is the same in both."""
    verdict = hl.verify(BEFORE, AFTER)
    assert [(region.how, len(region.first)) for region in verdict.regions] == [("derived", n) for n in (1, 2, 1)]


def test_a_number_that_is_not_rounded_is_another():
    """The sum of the product before it is rounded looks like another value, and is one."""
    unrounded = AFTER.replace("%6 = stablehlo.add %5, %4", "%6 = stablehlo.add %2, %4")
    assert unrounded != AFTER
    verdict = hl.verify(BEFORE, unrounded)
    assert verdict.exit_code == 1
    assert verdict.summary().count("derived") <= 1
