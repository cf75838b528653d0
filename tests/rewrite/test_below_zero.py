"""Sines, tangents and powers of what may be below zero, for a target that refuses them in that form."""

import numpy as np
import pytest
from jax import numpy as jnp
from rewrites import main, results

import hlo_lower as hl
from hlo_lower.lowering.engine import traced

DTYPES = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64}
POSITIVE = hl.Target("positive", refused_forms=["sine or tangent below 0", "power below 0"])
EDGES = (
    *(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-10, 1e30, 2.0**24 - 1, 2.0**25, np.inf),
    0.99951172,  # 2 less it is 1 once it is rounded to f16
)
SUBNORMAL, SMALLEST = 1e-42, 2.0**-126


def module(op, element, size, *, first="", operands="%x"):
    """A module of one op of %x, and %y, or of what stands before it."""
    x = f"tensor<{size}x{element}>"
    body = f"{first.replace('$t', x)} %r = stablehlo.{op} {operands} : {x}"
    return main(f"%x: {x}, %y: {x}", body, f"%r : {x}")


def assert_same_numbers(source, lowered, x, y, compared=slice(None)):
    """All bits are the same, but those of NaN."""
    [expected], [found] = (results(one, x, y, rounding="exact") for one in (source, lowered))
    wide = np.asarray(expected, np.float64)
    np.testing.assert_array_equal(np.asarray(found, np.float64)[compared], wide[compared])
    signs = (np.signbit(one)[compared][~np.isnan(wide[compared])] for one in (found, expected))
    np.testing.assert_array_equal(*signs)


def edges(element):
    """The edges of both signs, and NaN, in a type."""
    with np.errstate(over="ignore"):
        return np.asarray([*EDGES, *np.negative(EDGES), np.nan]).astype(DTYPES[element])


@pytest.mark.parametrize("op", ["sine", "tan"])
@pytest.mark.parametrize("element", DTYPES)
def test_an_odd_function_is_that_of_the_magnitude(element, op):
    """Every number of 16 bits, and edges of wider ones; of subnormals XLA's tangent is zero, its sine is not."""
    x = edges(element)
    if op == "sine":
        x = np.append(x, np.asarray([SUBNORMAL, -SUBNORMAL], x.dtype))
    if x.itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(x.dtype)
    source = module(op, element, x.size)
    lowered = hl.lower(source, target=POSITIVE)
    assert (lowered.refused, "(odd_function_to_magnitude)" in lowered.notes[0]) == ((), True)
    with np.errstate(invalid="ignore"):  # of NaN that signal
        size = np.abs(x.astype(np.float64))
    assert_same_numbers(source, lowered, x, x, (size == 0) | ~(size < (SMALLEST if op == "tan" else 0.0)))


BOTH = "%x, %y"


@pytest.mark.parametrize("element", DTYPES)
def test_a_power_is_that_of_the_magnitude(element):
    """Each edge to the power of each: zeros, infinities, NaN, whole and odd numbers up to where all are even."""
    x, y = (np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(edges(element), edges(element)))
    source = module("power", element, x.size, operands=BOTH)
    lowered = hl.lower(source, target=POSITIVE)
    assert lowered.refused == ()
    assert_same_numbers(source, lowered, x, y)


def constant(value, operands="%x, %c"):
    """A module of a power of an argument and a constant."""
    spread = "%c = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> $t"
    return module(
        "power", "f32", 64, first=f"%s = stablehlo.constant dense<{value}> : tensor<f32> {spread}", operands=operands
    )


@pytest.mark.parametrize(
    ("text", "is_lowered", "is_short"),
    [
        # the square is that of the magnitude; of 0, of odd and of broken exponents there is more to say
        *((constant(value), True, True) for value in ("2.0", "-4.0")),
        *((constant(value), True, False) for value in ("0.0", "3.0", "0.5")),
        # base and exponent may come from any op; (-0)^y has a sign where y is odd
        (module("power", "f32", 8, first="%a = stablehlo.add %x, %y : $t", operands="%a, %a"), True, False),
        (constant("-0.0", "%c, %x"), True, False),
        # a base that is a constant of no sign, a magnitude, and what is no float are taken as they are
        (constant("10000.0", "%c, %x"), False, True),
        (module("power", "i32", 4, operands=BOTH), False, True),
        (module("sine", "complex<f32>", 4), False, True),
        (module("sine", "f32", 4, first="%a = stablehlo.abs %x : $t", operands="%a"), False, True),
    ],
)
def test_what_may_be_below_zero_is_lowered_and_nothing_else(text, is_lowered, is_short):
    """As a power of the magnitude, in as few ops as may be; and all is verified."""
    lowered = hl.lower(text, target=POSITIVE)
    assert lowered.refused == ()
    assert any("(power_to_magnitude)" in note for note in lowered.notes) is is_lowered
    assert ("floor" not in lowered.text) is is_short
    assert hl.verify(text, lowered).ok if is_lowered else lowered.notes == ()


def test_open_shapes_need_no_constants():
    """The sine of an open shape is lowered; a power stays and is told."""
    lowered = hl.lower(module("sine", "f32", "?"), target=POSITIVE)
    assert (lowered.refused, "stablehlo.abs" in lowered.text) == ((), True)
    [left] = hl.lower(module("power", "f32", "?", operands=BOTH), target=POSITIVE).refused
    assert left.op == "stablehlo.power"


def test_bodies_are_lowered_too():
    """What a reduction folds by may hold a sine."""
    v, f = "tensor<4xf32>", "tensor<f32>"
    body = f"""%z = stablehlo.constant dense<0.0> : {f}
  %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : ({v}, {f}) -> {f} reducer(%a: {f}, %b: {f}) {{
    %m = stablehlo.sine %a : {f}
    %s = stablehlo.add %m, %b : {f}
    stablehlo.return %s : {f}
  }}"""
    text = main(f"%x: {v}, %y: {v}", body, f"%r : {f}")
    lowered = hl.lower(text, target=POSITIVE)
    assert lowered.refused == ()
    x = np.asarray([-1.0, 2.0, -0.0, -1e-3], np.float32)
    assert_same_numbers(text, lowered, x, x, ...)


@pytest.mark.parametrize(("name", "instead"), [("neg", "abs"), ("floor", "ceil"), ("div", "multiply")])
def test_wrong_powers_do_not_verify(monkeypatch, name, instead):
    """Without the sign, or what is whole, it is another function; without a division (-0)^3 has no sign."""
    source = module("power", "f32", 64, operands=BOTH)
    monkeypatch.setitem(traced.ELEMENTWISE, name, instead)
    lowered = hl.lower(source, target=POSITIVE)
    if name == "div":
        [found] = results(lowered, *(np.full(64, n, np.float32) for n in (-0.0, 3.0)), rounding="exact")
        assert not np.signbit(found[0])
    else:
        assert not hl.verify(source, lowered).ok
