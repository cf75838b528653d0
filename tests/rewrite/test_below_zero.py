"""Sines, tangents and powers of what may be below zero, for a target that refuses them in that form."""

import numpy as np
import pytest
from jax import numpy as jnp

import hlo_lower as hl
from hlo_lower.lowering.engine import traced
from hlo_lower.verify.run import Executable

DTYPES = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64}
POSITIVE = hl.Target("positive", refused_forms=["sine or tangent below 0", "power below 0"])
EDGES = (
    *(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-10, 1e30, 2.0**24 - 1, 2.0**25, np.inf),
    0.99951172,  # 2 less it is 1 once it is rounded to f16
)
SUBNORMAL, SMALLEST = 1e-42, 2.0**-126


def module(op, element, size, operands=1):
    """A module of one op."""
    kind = f"tensor<{size}x{element}>"
    arguments = ", ".join(f"%x{k}: {kind}" for k in range(operands))
    taken, kinds = ", ".join(f"%x{k}" for k in range(operands)), ", ".join([kind] * operands)
    return f"""func.func public @main({arguments}) -> {kind} {{
      %r = "{op}"({taken}) : ({kinds}) -> {kind}
      return %r : {kind}
    }}"""


def same(found, expected):
    """Whether all bits are the same, but those of NaN."""
    wide = np.asarray(expected, np.float64)
    np.testing.assert_array_equal(np.asarray(found, np.float64), wide)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(wide)], np.signbit(expected)[~np.isnan(wide)])


def edges(element):
    """The edges of both signs, and NaN, in a type."""
    with np.errstate(over="ignore"):
        return np.asarray([*EDGES, *np.negative(EDGES), np.nan]).astype(DTYPES[element])


def pairs(element):
    """Each edge with each."""
    both = np.meshgrid(edges(element), edges(element))
    return [np.ascontiguousarray(array.reshape(-1)) for array in both]


@pytest.mark.parametrize("op", ["stablehlo.sine", "stablehlo.tan"])
@pytest.mark.parametrize("element", DTYPES)
def test_an_odd_function_is_that_of_the_magnitude(element, op):
    """Every number of 16 bits, and edges of wider ones; of subnormals XLA's tangent is zero, its sine is not."""
    x = edges(element)
    if op == "stablehlo.sine":
        x = np.append(x, np.asarray([SUBNORMAL, -SUBNORMAL], x.dtype))
    if x.itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(x.dtype)
    source = module(op, element, x.size)
    lowered = hl.lower(source, target=POSITIVE)
    assert (lowered.refused, "(odd_function_to_magnitude)" in lowered.notes[0]) == ((), True)
    [expected], [found] = (Executable(text, "exact").run([x]) for text in (source, lowered.text))
    with np.errstate(invalid="ignore"):  # of NaN that signal
        size = np.abs(x.astype(np.float64))
    compared = (size == 0) | ~(size < (SMALLEST if op == "stablehlo.tan" else 0.0))
    same(found[compared], expected[compared])


@pytest.mark.parametrize("element", DTYPES)
def test_a_power_is_that_of_the_magnitude(element):
    """Each edge to the power of each: zeros, infinities, NaN, whole and odd numbers up to where all are even."""
    x, y = pairs(element)
    source = module("stablehlo.power", element, x.size, 2)
    lowered = hl.lower(source, target=POSITIVE)
    assert lowered.refused == ()
    [expected], [found] = (Executable(text, "exact").run([x, y]) for text in (source, lowered.text))
    same(found, expected)


def constant(value, op="power", swap=False):
    """A module of a power of an argument and a constant."""
    operands = "%c, %x" if swap else "%x, %c"
    return f"""func.func public @main(%x: tensor<64xf32>) -> tensor<64xf32> {{
      %s = stablehlo.constant dense<{value}> : tensor<f32>
      %c = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<64xf32>
      %r = stablehlo.{op} {operands} : tensor<64xf32>
      return %r : tensor<64xf32>
    }}"""


def test_even_constants_need_nothing_else():
    """The square is that of the magnitude; of 0, of odd and of broken exponents there is more to say."""
    for value, is_even in (("2.0", True), ("-4.0", True), ("0.0", False), ("3.0", False), ("0.5", False)):
        lowered = hl.lower(constant(value), target=POSITIVE)
        assert ("floor" not in lowered.text) == is_even
        assert hl.verify(constant(value), lowered).ok


@pytest.mark.parametrize(
    "text",
    [
        constant("10000.0", swap=True),
        module("stablehlo.power", "i32", 4, 2),
        module("stablehlo.sine", "complex<f32>", 4),
        module("stablehlo.sine", "f32", 4).replace('%r = "', '%a = stablehlo.abs %x0 : tensor<4xf32>\n%r = "', 1)
        .replace('"(%x0)', '"(%a)'),
    ],
    ids=["a constant base", "integers", "complex numbers", "a magnitude"],
)  # fmt: skip
def test_what_is_not_below_zero_stays(text):
    """A base that is a constant of no sign, a magnitude, and what is no float are taken as they are."""
    lowered = hl.lower(text, target=POSITIVE)
    assert (lowered.notes, lowered.refused) == ((), ())


def test_what_is_computed_may_be_below_zero():
    """Base and exponent may come from any op."""
    added = "%a = stablehlo.add %x0, %x1 : tensor<8xf32>"
    text = module("stablehlo.power", "f32", 8, 2).replace("%r =", f"{added}\n%r =").replace("(%x0, %x1)", "(%a, %a)")
    lowered = hl.lower(text, target=POSITIVE)
    assert "(power_to_magnitude)" in lowered.notes[0]
    assert hl.verify(text, lowered).ok


def test_a_negative_zero_is_below_zero():
    """(-0)^y has a sign where y is odd."""
    text = constant("-0.0", swap=True)
    lowered = hl.lower(text, target=POSITIVE)
    assert "(power_to_magnitude)" in lowered.notes[0]
    assert hl.verify(text, lowered).ok


def test_open_shapes_need_no_constants():
    """The sine of an open shape is lowered; a power stays and is told."""
    lowered = hl.lower(module("stablehlo.sine", "f32", "?"), target=POSITIVE)
    assert (lowered.refused, "stablehlo.abs" in lowered.text) == ((), True)
    [left] = hl.lower(module("stablehlo.power", "f32", "?", 2), target=POSITIVE).refused
    assert left.op == "stablehlo.power"


def test_bodies_are_lowered_too():
    """What a reduction folds by may hold a sine."""
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<f32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        reducer(%a: tensor<f32>, %b: tensor<f32>) {
          %m = stablehlo.sine %a : tensor<f32>
          %s = stablehlo.add %m, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
      return %r : tensor<f32>
    }"""
    lowered = hl.lower(text, target=POSITIVE)
    assert lowered.refused == ()
    x = np.asarray([-1.0, 2.0, -0.0, -1e-3], np.float32)
    [expected], [found] = (Executable(one, "exact").run([x]) for one in (text, lowered.text))
    same(found, expected)


WRONG = {"neg": "abs", "floor": "ceil"}
"""Ops of the rule, each with another one in its place."""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_powers_do_not_verify(monkeypatch, name):
    """Without the sign, or what is whole, or of the base itself it is another function."""
    source = module("stablehlo.power", "f32", 64, 2)
    monkeypatch.setitem(traced.ELEMENTWISE, name, WRONG[name])
    assert not hl.verify(source, hl.lower(source, target=POSITIVE)).ok


def test_the_sign_of_zero_is_told_by_division(monkeypatch):
    """Without it (-0)^3 has no sign."""
    source = module("stablehlo.power", "f32", 1, 2)
    monkeypatch.setitem(traced.ELEMENTWISE, "div", "multiply")
    lowered = hl.lower(source, target=POSITIVE)
    [found] = Executable(lowered.text, "exact").run([np.asarray([-0.0], np.float32), np.asarray([3.0], np.float32)])
    assert not np.signbit(found[0])
