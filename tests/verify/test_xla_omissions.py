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


KEPT = """func.func @main(%x: tensor<8xTYPE>, %y: tensor<8xTYPE>) -> tensor<8xTYPE> {
  %e = stablehlo.exponential %y : tensor<8xTYPE>
  %m = stablehlo.multiply %x, %e : tensor<8xTYPE>
  %z = stablehlo.constant dense<0.0> : tensor<ELEMENT>
  %s = stablehlo.broadcast_in_dim %z, dims = DIMS : (tensor<ELEMENT>) -> tensor<8xTYPE>
  %r = stablehlo.add ORDER : tensor<8xTYPE>
  return %RETURNED : tensor<8xTYPE>
}
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("order", ["%m, %s", "%s, %m"])
def test_a_version_that_does_not_add_zero_is_another(kind, order):
    """It keeps the sign of a zero; XLA would run both alike, and what is not exact no other judge looks at."""
    text = KEPT.replace("TYPE", kind).replace("ORDER", order).replace("ELEMENT", kind).replace("DIMS", "[]")
    before, after = (text.replace("RETURNED", name) for name in ("r", "m"))
    assert hl.verify(before, before, level="regions").ok
    assert not hl.verify(before, after, level="regions").ok
    assert not hl.verify(after, before, level="regions").ok


ZERO = """func.func @main(%x: tensor<8xTYPE>) -> tensor<8xTYPE> {
  %z = stablehlo.constant dense<VALUE> : tensor<TYPE>
  %s = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<TYPE>) -> tensor<8xTYPE>
  %r = stablehlo.add %x, %s : tensor<8xTYPE>
  return %r : tensor<8xTYPE>
}
"""


@pytest.mark.parametrize(
    ("kind", "value", "dtype"), [("f64", "0.0", np.float64), ("complex<f32>", "(0.0, 0.0)", np.complex64)]
)
def test_zero_is_added(kind, value, dtype):
    """-0.0 and 0.0 are 0.0, in both parts of complex numbers, too."""
    run = Executable(ZERO.replace("TYPE", kind).replace("VALUE", value), "exact")
    [found] = run.run([np.full(8, complex(-0.0, -0.0) if dtype == np.complex64 else -0.0, dtype)])
    assert not np.signbit([found.real, found.imag]).any()


PROMOTING = """func.func @main(%x: tensor<1x8xf16>) -> tensor<8xf32> {
  %z = stablehlo.constant dense<2.5> : tensor<f32>
  %r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<1x8xf16>, tensor<f32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""


def test_a_promoting_reduction_is_not_taken_for_one_without_its_start():
    """XLA does not compile it, so XLA cannot leave the start out."""
    bare = """func.func @main(%x: tensor<1x8xf16>) -> tensor<8xf32> {
      %w = stablehlo.convert %x : (tensor<1x8xf16>) -> tensor<1x8xf32>
      %r = stablehlo.reshape %w : (tensor<1x8xf32>) -> tensor<8xf32>
      return %r : tensor<8xf32>
    }"""
    assert not hl.verify(PROMOTING, bare).ok


SCALAR = """func.func @main(%x: tensor<f32>, %i: tensor<INDICESxi32>, %u: tensor<UPDATESf32>) -> tensor<f32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = VECTOR>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<f32>, tensor<INDICESxi32>, tensor<UPDATESf32>) -> tensor<f32>
  return %r : tensor<f32>
}
"""


@pytest.mark.parametrize(("indices", "updates", "vector"), [("0", "", 0), ("1x0", "1x", 1)])
def test_a_scatter_into_a_scalar_runs(indices, updates, vector):
    """XLA's compiler dies on one where its simplifier is off."""
    text = SCALAR.replace("INDICES", indices).replace("UPDATES", updates).replace("VECTOR", str(vector))
    executable = Executable(text, "exact")
    [found] = executable.run([np.full(a.shape, 2, a.dtype) for a in executable.arguments])
    assert float(found) == 4.0


@pytest.mark.parametrize(
    ("source", "made", "number", "expected"),
    [
        *(("f64", "bf16", 1 + 2**-8 + 2**-40, 1 + 2**-7), ("f64", "f16", -(1 + 2**-11 + 2**-40), -(1 + 2**-10))),
        *(("f64", "bf16", 1 + 2**-8, 1.0), ("i32", "bf16", 2**24 + 2**16 + 1, 2.0**24 + 2**17)),
        *(("i64", "bf16", -(2**62) - 2**54 - 1, -(2.0**62) - 2**55), ("ui64", "bf16", 2**63 + 2**55, 2.0**63)),
        *(("i16", "f8E5M2", 2305, 2560.0), ("f64", "bf16", np.inf, np.inf), ("i64", "bf16", -1, -1.0)),
    ],
)
def test_a_conversion_rounds_once(source, made, number, expected):
    """XLA goes by way of f32 or f16; what lies at a tie or beside it shows that."""
    text = f"""func.func @main(%x: tensor<2x{source}>) -> tensor<2x{made}> {{
      %r = stablehlo.convert %x : (tensor<2x{source}>) -> tensor<2x{made}>
      return %r : tensor<2x{made}>
    }}"""
    executable = Executable(text, "exact")
    [found] = executable.run([np.full(2, number, a.dtype) for a in executable.arguments])
    assert found.astype(np.float64).tolist() == [expected] * 2
