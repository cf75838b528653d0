"""Reductions of one computed number read the first of them, for who refuses these."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.verify.judges.devices import compile_anywhere

FORM = "reduce of one number computed"
REFUSING = hl.Target("npu", refused={"stablehlo.scatter": "lowered"}, refused_forms=[FORM])
V, S = "tensor<4x33xf32>", "tensor<4xf32>"


def reduction(of, body="", dims=1, called="%c"):
    """A sum of rows, of a value made in @main or in the body of a private function that is called once."""
    return f"""func.func public @main(%x: {V}) -> {S} {{
  %c = stablehlo.constant dense<0.3> : {V}
  %r = func.call @row({called}) : ({V}) -> {S}
  return %r : {S}
}}
func.func private @row(%p: {V}) -> {S} {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.constant dense<0.7> : tensor<f32>
  {body}
  %s = stablehlo.reduce({of} init: %zero) applies stablehlo.add across dimensions = [1] : ({V}, tensor<f32>) -> {S}
  return %s : {S}
}}
func.func private @twice(%p: {V}) -> {V} {{
  %q = stablehlo.add %p, %p : {V}
  return %q : {V}
}}
"""


EXP = f"%e = stablehlo.exponential %p : {V}"
SPREAD = f"%b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> {V}"
PROGRAMS = {
    "an argument that is a constant at each call": (reduction("%e", EXP), True),
    "of it itself": (reduction("%p"), True),
    "spread and computed": (reduction("%e", f"{SPREAD}\n%e = stablehlo.sqrt %b : {V}"), True),
    "through a call": (reduction("%e", f"{SPREAD}\n%e = func.call @twice(%b) : ({V}) -> {V}"), True),
    "a constant": (reduction("%e", f"%e = stablehlo.constant dense<0.3> : {V}"), False),
    "spread": (reduction("%b", SPREAD), False),
    "an argument": (reduction("%e", EXP, called="%x"), False),
    "beside an argument": (reduction("%e", f"{SPREAD}\n%e = stablehlo.multiply %p, %b : {V}", called="%x"), False),
    "other numbers": (reduction("%e", f"%i = stablehlo.iota dim = 1 : {V}\n%e = stablehlo.negate %i : {V}"), False),
}


def test_one_element_is_read_as_it_is():
    """It is added once."""
    text = PROGRAMS["of it itself"][0].replace("4x33x", "4x1x")
    assert "stablehlo.slice" not in hl.lower(text, target=REFUSING).text


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_computed_number_is_spread_again(name):
    """The same bits; what reads a tensor, or a constant as it stands, stays as it was."""
    text, is_changed = PROGRAMS[name]
    lowered = hl.lower(text, target=REFUSING).text
    assert ("stablehlo.slice" in lowered) is is_changed
    x = np.linspace(-2, 2, 132, dtype=np.float32).reshape(4, 33)
    expected, found = (version.run([x]) for version in compile_anywhere([(text, "exact"), (lowered, "exact")]))
    assert [np.asarray(e).tobytes() for e in expected] == [np.asarray(f).tobytes() for f in found]
