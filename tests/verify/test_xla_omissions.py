"""What XLA leaves out of an op is not left out where it judges, and modules on which its newer emitter dies run."""

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.run import Executable


def folded(shape):
    """A minimum along the first dim, from a start that is an argument."""
    body = "%r = reduce(%x init: %s) applies stablehlo.minimum across dimensions = [0]"
    return module(f"%x: {shape}xi32, %s: i32", body)


@pytest.mark.parametrize("shape", [(1,), (1, 3), (2, 3)])
def test_a_reduction_begins_with_its_start(shape):
    """Of one element, too."""
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    [found] = Executable(folded("x".join(map(str, shape))), "exact").run([x, np.int32(-4)])
    np.testing.assert_array_equal(found, np.minimum(x.min(0), -4))


TWO = """%r:2 = reduce(%x, %y, %s, %t) <dimensions = array<i64: 0>> {
  %a, %b, %c, %d: %e = subtract %a, %c; return %e, %b } -> (3xi32, 3xf32)"""


def test_two_results_begin_with_their_starts():
    """Of two types, the one what is first subtracted from and the other the start itself."""
    x, y = np.arange(3, dtype=np.int32).reshape(1, 3), np.ones((1, 3), np.float32)
    text = module("%x: 1x3xi32, %y: 1x3xf32, %s: i32, %t: f32", TWO, "%r#0, %r#1")
    first, second = Executable(text, "exact").run([x, y, np.int32(5), np.float32(7)])
    np.testing.assert_array_equal(first, [5, 4, 3])
    np.testing.assert_array_equal(second, [7, 7, 7])


PLACE = module(
    "%x: 3x1xf32, %k: 3x1xi32",
    """%s = constant 2.0 : f32; %t = constant 7 : i32
    %r:2 = reduce(%x, %k, %s, %t) <dimensions = array<i64: 1>> {
      %a, %b, %c, %d: %p = compare GE, %a, %c; %m = select %p, %a, %c; %n = select %p, %b, %d; return %m, %n
    } -> (3xf32, 3xi32)""",
    "%r#0, %r#1",
)


def test_the_place_of_a_maximum_begins_with_constants_too():
    """A version without them, or with the least number, is another one."""
    bare = module("%x: 3x1xf32, %k: 3x1xi32", "%m = reshape %x -> 3xf32; %n = reshape %k -> 3xi32", "%m, %n")
    assert hl.verify(PLACE, PLACE).ok
    assert not hl.verify(PLACE, bare).ok
    assert not hl.verify(PLACE, PLACE.replace("GE", "LE")).ok


def test_a_version_without_the_start_is_another():
    """And the one that has it is the same."""
    bare = "%r = reshape %x -> 3xi32; %b = broadcast_in_dim %s, dims = [] -> 3xi32; %m = minimum %r, %b"
    for returned, is_same in (("%m", True), ("%r", False)):
        assert hl.verify(folded("1x3"), module("%x: 1x3xi32, %s: i32", bare, returned)).ok == is_same


def convolved(kernel, reversal, before=""):
    """A convolution whose window may be reversed in its first dim."""
    body = f"""{before}; %r = convolution(%x, {kernel}) dim_numbers = [b, 0, 1, 2, f]x[o, 0, 1, i, 2]->[b, 0, 1, 2, f],
      window = {{reverse = [{reversal}, false, false]}} {{batch_group_count = 1 : i64, feature_group_count = 2 : i64}}
      -> 8x1x1x1x2xf32"""
    return module("%x: 8x2x2x2x2xf32, %k: 2x2x2x1x2xf32", body.replace("\n", " "))


def test_a_version_without_the_reversal_is_another():
    """Of a kernel as large as what it lies on; the one whose kernel is reversed before is the same."""
    source = convolved("%k", "true")
    assert hl.verify(source, convolved("%t", "false", "%t = reverse %k, dims = [1]")).ok
    assert not hl.verify(source, convolved("%k", "false")).ok


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("order", ["%m, %s", "%s, %m"])
def test_a_version_that_does_not_add_zero_is_another(kind, order):
    """It keeps the sign of a zero; XLA would run both alike, and what is not exact no other judge looks at."""
    body = f"""%e = exponential %y; %m = multiply %x, %e; %z = constant 0.0 : {kind}
    %s = broadcast_in_dim %z, dims = [] -> 8x{kind}; %r = add {order}"""
    before, after = (module(f"%x: 8x{kind}, %y: 8x{kind}", body, returned) for returned in ("%r", "%m"))
    assert hl.verify(before, before, level="regions").ok
    assert not hl.verify(before, after, level="regions").ok
    assert not hl.verify(after, before, level="regions").ok


@pytest.mark.parametrize(
    ("kind", "value", "dtype"), [("f64", "0.0", np.float64), ("complex<f32>", "(0.0, 0.0)", np.complex64)]
)
def test_zero_is_added(kind, value, dtype):
    """-0.0 and 0.0 are 0.0, in both parts of complex numbers, too."""
    body = f"%z = constant {value} : {kind}; %s = broadcast_in_dim %z, dims = [] -> 8x{kind}; %r = add %x, %s"
    zeros = np.full(8, complex(-0.0, -0.0) if dtype == np.complex64 else -0.0, dtype)
    [found] = Executable(module(f"%x: 8x{kind}", body), "exact").run([zeros])
    assert not np.signbit([found.real, found.imag]).any()


PROMOTING = """%z = constant 2.5 : f32; %r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32> }) : (tensor<1x8xf16>, tensor<f32>) -> tensor<8xf32>"""


def test_a_promoting_reduction_is_not_taken_for_one_without_its_start():
    """XLA does not compile it, so XLA cannot leave the start out."""
    bodies = PROMOTING, "%w = convert %x -> 1x8xf32; %r = reshape %w -> 8xf32"
    assert not hl.verify(*(module("%x: 1x8xf16", body) for body in bodies)).ok


@pytest.mark.parametrize(("indices", "updates", "vector"), [("0", "", 0), ("1x0", "1x", 1)])
def test_a_scatter_into_a_scalar_runs(indices, updates, vector):
    """XLA's compiler dies on one where its simplifier is off."""
    given = f"%x: f32, %i: {indices}xi32, %u: {updates}f32"
    executable = Executable(module(given, f"%r = scatter(%x, %i, %u) <ivd={vector}> {{add}}"), "exact")
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
    executable = Executable(module(f"%x: 2x{source}", f"%r = convert %x -> 2x{made}"), "exact")
    [found] = executable.run([np.full(2, number, a.dtype) for a in executable.arguments])
    assert found.astype(np.float64).tolist() == [expected] * 2


NARROWED = "%0 = convert %a -> 5x4xi32; %1 = convert %b -> 5x4xi32; %2 = OP %0, %1"


@pytest.mark.parametrize("rounding", ["exact", "quick", "default"])
@pytest.mark.parametrize(("op", "right"), [("or", np.bitwise_or), ("and", np.bitwise_and)])
def test_bits_of_narrowed_integers_are_run(op, right, rounding):
    """`or` and `and` of converted integers are compiled by the older emitter, and right."""
    a, b = np.arange(-10, 10).reshape(5, 4), 7 * np.arange(20).reshape(5, 4)
    text = module("%a: 5x4xi64, %b: 5x4xi64", NARROWED.replace("OP", op), "%2")
    [found] = Executable(text, rounding).run([a, b])
    assert found.tolist() == right(a, b).tolist()
