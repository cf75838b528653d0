"""What the solver finds is run: a number that stands in neither piece, and that no pool holds."""

import pytest

import hlo_lower as hl
from hlo_lower.verify.pull import derive

DERIVES = True

MIXED = """
func.func public @main(%x: tensor<8xi32>) -> tensor<8xi32> {
  %a = stablehlo.constant dense<69069> : tensor<8xi32>
  %b = stablehlo.constant dense<13> : tensor<8xi32>
  %c = stablehlo.constant dense<305419896> : tensor<8xi32>
  %m = stablehlo.multiply %x, %a : tensor<8xi32>
  %n = stablehlo.shift_right_logical %x, %b : tensor<8xi32>
  %s = stablehlo.xor %m, %n : tensor<8xi32>
  %p = stablehlo.compare EQ, %s, %c, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %d = stablehlo.constant dense<7> : tensor<8xi32>
  %r = stablehlo.select %p, %d, %x : tensor<8xi1>, tensor<8xi32>
  return %r : tensor<8xi32>
}
"""
"""One hash in four billion makes the difference."""


@pytest.mark.parametrize("element", ["i1", "i8", "ui16", "i64", "f32", "bf16", "complex<f32>", "i4"])
def test_the_inputs_are_those_of_the_model(element):
    """The element that is told apart is where the outputs differ, in its own type."""
    one = f"func.func public @main(%x: tensor<3x{element}>) -> tensor<3x{element}> {{ RETURN : tensor<3x{element}> }}"
    turned = f"%r = stablehlo.reverse %x, dims = [0] : tensor<3x{element}>\nreturn %r"
    found = derive(one.replace("RETURN", "return %x"), one.replace("RETURN", turned))
    [array] = found.inputs
    assert array.shape == (3,)
    assert array[0].tobytes() != array[2].tobytes()


def test_a_model_is_run():
    """A hash that no pool holds, nor any operation undone gives, is found, and the run with it shows the difference."""
    verdict = hl.verify(MIXED, MIXED.replace("dense<7>", "dense<8>"))
    assert verdict.exit_code == 1
    [region] = verdict.regions
    assert "inputs of a model" in region.difference


def test_what_rounds_is_not_told_by_the_solver():
    """A function on floats is whatever the model says, so that a run decides."""
    text = "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{}  return %r : tensor<4xf32>\n}}"
    plain = text.format("  %r = stablehlo.tanh %x : tensor<4xf32>\n")
    other = text.format("  %t = stablehlo.add %x, %x : tensor<4xf32>\n  %s = stablehlo.subtract %t, %x : tensor<4xf32>\n  %r = stablehlo.tanh %s : tensor<4xf32>\n")  # fmt: skip  # noqa: E501
    assert not derive(plain, other)
    assert hl.verify(plain, other).exit_code in (1, 4)
