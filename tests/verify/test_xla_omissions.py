"""What XLA leaves out of an op is not left out where it judges."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.run import Executable

FOLDED = """func.func @main(%x: tensor<SHAPExi32>, %s: tensor<i32>) -> tensor<MADEi32> {
  %r = stablehlo.reduce(%x init: %s) applies stablehlo.minimum across dimensions = [0] : (tensor<SHAPExi32>, tensor<i32>) -> tensor<MADEi32>
  return %r : tensor<MADEi32>
}
"""  # noqa: E501

BARE = """func.func @main(%x: tensor<1x3xi32>, %s: tensor<i32>) -> tensor<3xi32> {
  %r = stablehlo.reshape %x : (tensor<1x3xi32>) -> tensor<3xi32>
  START
}
"""

WITH_START = """%b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %m = stablehlo.minimum %r, %b : tensor<3xi32>
  return %m : tensor<3xi32>"""

TURNED = """func.func @main(%x: tensor<8x2x2x2x2xf32>, %k: tensor<2x2x2x1x2xf32>) -> tensor<8x1x1x1x2xf32> {
  %r = stablehlo.convolution(%x, KERNEL) dim_numbers = [b, 0, 1, 2, f]x[o, 0, 1, i, 2]->[b, 0, 1, 2, f], window = {WINDOW} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<8x2x2x2x2xf32>, tensor<2x2x2x1x2xf32>) -> tensor<8x1x1x1x2xf32>
  return %r : tensor<8x1x1x1x2xf32>
}
"""  # noqa: E501


def folded(shape, made):
    """A reduction along the first dim."""
    return FOLDED.replace("SHAPE", shape).replace("MADE", made)


@pytest.mark.parametrize(("shape", "made"), [((1,), ""), ((1, 3), "3x"), ((2, 3), "3x")])
def test_a_reduction_begins_with_its_start(shape, made):
    """Of one element, too."""
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    [found] = Executable(folded("x".join(map(str, shape)), made), "exact").run([x, np.int32(-4)])
    np.testing.assert_array_equal(found, np.minimum(x.min(0), -4))


TWO = """func.func @main(%x: tensor<1x3xi32>, %y: tensor<1x3xf32>, %s: tensor<i32>, %t: tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>) {
  %r:2 = stablehlo.reduce(%x init: %s), (%y init: %t) across dimensions = [0] : (tensor<1x3xi32>, tensor<1x3xf32>, tensor<i32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>)
    reducer(%a: tensor<i32>, %c: tensor<i32>) (%b: tensor<f32>, %d: tensor<f32>) {
    %e = stablehlo.subtract %a, %c : tensor<i32>
    stablehlo.return %e, %b : tensor<i32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<3xi32>, tensor<3xf32>
}
"""  # noqa: E501


def test_two_results_begin_with_their_starts():
    """Of two types, the one what is first subtracted from and the other the start itself."""
    x, y = np.arange(3, dtype=np.int32).reshape(1, 3), np.ones((1, 3), np.float32)
    first, second = Executable(TWO, "exact").run([x, y, np.int32(5), np.float32(7)])
    np.testing.assert_array_equal(first, [5, 4, 3])
    np.testing.assert_array_equal(second, [7, 7, 7])


def test_a_version_without_the_start_is_another():
    """And the one that has it is the same."""
    source = folded("1x3", "3x")
    assert hl.verify(source, BARE.replace("START", WITH_START)).ok
    assert not hl.verify(source, BARE.replace("START", "return %r : tensor<3xi32>")).ok


def test_a_version_without_the_reversal_is_another():
    """Of a kernel as large as what it lies on; the one whose kernel is reversed before is the same."""
    source = TURNED.replace("KERNEL", "%k").replace("WINDOW", "reverse = [true, false, false]")
    plain = TURNED.replace("WINDOW", "reverse = [false, false, false]")
    reverse = "%t = stablehlo.reverse %k, dims = [1] : tensor<2x2x2x1x2xf32>\n  %r ="
    assert hl.verify(source, plain.replace("KERNEL", "%t").replace("%r =", reverse)).ok
    assert not hl.verify(source, plain.replace("KERNEL", "%k")).ok
