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


PLACE = """func.func @main(%x: tensor<3x1xf32>, %k: tensor<3x1xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %s = stablehlo.constant dense<2.0> : tensor<f32>
  %t = stablehlo.constant dense<7> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %s), (%k init: %t) across dimensions = [1] : (tensor<3x1xf32>, tensor<3x1xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
    %p = stablehlo.compare GE, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.select %p, %a, %c : tensor<i1>, tensor<f32>
    %n = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32>
}
"""  # noqa: E501


def test_the_place_of_a_maximum_begins_with_constants_too():
    """A version without them, or with the least number, is another one."""
    bare = """func.func @main(%x: tensor<3x1xf32>, %k: tensor<3x1xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
      %m = stablehlo.reshape %x : (tensor<3x1xf32>) -> tensor<3xf32>
      %n = stablehlo.reshape %k : (tensor<3x1xi32>) -> tensor<3xi32>
      return %m, %n : tensor<3xf32>, tensor<3xi32>
    }"""
    assert hl.verify(PLACE, PLACE).ok
    assert not hl.verify(PLACE, bare).ok
    assert not hl.verify(PLACE, PLACE.replace("GE", "LE")).ok


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
