"""What the solver finds is run: a number that stands in neither piece, and that no pool holds."""

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.pull import derive

DERIVES = True

MIXED = module(
    "%x: 8xi32",
    """%a = constant 69069 : 8xi32; %b = constant 13 : 8xi32; %c = constant 305419896 : 8xi32; %m = multiply %x, %a
    %n = shift_right_logical %x, %b; %s = xor %m, %n; %p = compare EQ, %s, %c, SIGNED; %d = constant 7 : 8xi32
    %r = select %p, %d, %x""",
    "%r",
)
"""One hash in four billion makes the difference."""


@pytest.mark.parametrize("element", ["i1", "i8", "ui16", "i64", "f32", "bf16", "complex<f32>", "i4"])
def test_the_inputs_are_those_of_the_model(element):
    """The element that is told apart is where the outputs differ, in its own type."""
    bodies = ("", "%x"), ("%r = reverse %x, dims = [0]", "%r")
    found = derive(*(module(f"%x: 3x{element}", *body) for body in bodies))
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
    bodies = "%r = tanh %x", "%t = add %x, %x; %s = subtract %t, %x; %r = tanh %s"
    plain, other = (module("%x: 4xf32", body) for body in bodies)
    assert not derive(plain, other)
    assert hl.verify(plain, other).exit_code in (1, 4)
