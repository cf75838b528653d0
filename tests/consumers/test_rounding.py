"""How closely results have to agree: what may differ, what may not, and that a wrong result is caught."""

import numpy as np
import pytest

from hlo_lower.consumers.rounding import Rounding, rounding_of
from hlo_lower.ir import mlir


def rounding(body, arguments="%a: tensor<4xf32>, %i: tensor<i32>", results="tensor<4xf32>", more=""):
    """The rounding of a module whose @main has this body."""
    text = f"module {{ func.func public @main({arguments}) -> ({results}) {{ {body} }} {more} }}"
    return rounding_of(mlir.parse_module(text))


MOVED = "%r = stablehlo.reverse %a, dims = [0] : tensor<4xf32>\nreturn %r : tensor<4xf32>"
ADDED = "%r = stablehlo.add %a, %a : tensor<4xf32>\nreturn %r : tensor<4xf32>"
CALLED = "%r = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %r : tensor<4xf32>"
INDEXED = """%f = stablehlo.cosine %a : tensor<4xf32>
  %k = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xi32>
  %s = stablehlo.slice %k [0:1] : (tensor<4xi32>) -> tensor<1xi32>
  %t = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
  %u = stablehlo.slice %a [1:2] : (tensor<4xf32>) -> tensor<1xf32>
  %r = stablehlo.dynamic_update_slice %a, %u, %t : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>"""
SCATTERED = """%s = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
  %u = stablehlo.slice %a [1:2] : (tensor<4xf32>) -> tensor<1xf32>
  %w = stablehlo.reshape %u : (tensor<1xf32>) -> tensor<f32>
  %r = "stablehlo.scatter"(%a, %s, %w) <{{scatter_dimension_numbers =
    #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.{combiner} : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }}) : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>"""

CASES = [
    ("moved", MOVED, True),
    ("added", ADDED, False),
    ("called", CALLED, False),
    ("placed by a computed float", INDEXED, False),
    ("scatter that assigns", SCATTERED.format(combiner="optimization_barrier %y"), True),
    ("scatter that adds", SCATTERED.format(combiner="add %x, %y"), False),
    ("argument", "return %a : tensor<4xf32>", True),
]


@pytest.mark.parametrize(("body", "exact"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_floats_that_are_only_moved_are_exact(body, exact):
    """A result is compared bit for bit where nothing that it depends on rounds, in calls and regions, too."""
    inner = "stablehlo.multiply %x, %x : tensor<4xf32>"
    more = f"func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ %y = {inner}\nreturn %y : tensor<4xf32> }}"
    assert rounding(body, more=more).exact == (exact,)


def test_integers_are_exact_whatever_they_come_from():
    """Sums of integers are in any order the same."""
    body = "%r = stablehlo.add %i, %i : tensor<i32>\nreturn %r : tensor<i32>"
    assert rounding(body, results="tensor<i32>").exact == (True,)
    assert Rounding((False,)).difference([np.int32([5])], [np.int32([6])], lambda: [np.zeros(1)]) is not None


def test_a_computed_float_has_the_bound_of_its_element():
    """What is within passes; a row that is missing does not, nor does anything where there are no bounds."""
    bound = rounding(ADDED)
    expected = np.linspace(1, 8, 1000, dtype=np.float32)
    limits = lambda: [np.abs(expected) * 1e-5]  # noqa: E731 a maker of bounds, as a run has it
    near = expected * np.float32(1 + 5e-6)
    assert bound.difference([expected], [near], limits) is None
    assert bound.difference([expected], [near]) is not None
    assert bound.difference([expected], [expected * np.float32(1 + 2e-5)], limits) is not None
    missing = expected.copy()
    missing[10:20] = 0
    found = bound.difference([expected], [missing], limits)
    assert (found.index, found.count) == ((10,), 10)


def test_bounds_are_made_only_where_a_bit_differs():
    """Neither equal results nor exact ones ask for them."""

    def never():
        raise AssertionError

    one = np.ones(2, np.float32)
    assert Rounding((False,)).difference([one], [one.copy()], never) is None
    assert Rounding((True,)).difference([one], [one * 2], never) is not None


def test_moved_floats_differ_in_one_bit():
    """The sign of a zero, and the last bit, are differences where nothing is rounded."""
    exact = rounding(MOVED)
    assert exact.told == "bit for bit"
    assert exact.difference([np.float32([0.0])], [np.float32([-0.0])]) is not None
    assert exact.difference([np.float32([1.0])], [np.nextafter(np.float32([1.0]), np.float32(2))]) is not None
    assert exact.difference([np.float32([np.nan])], [np.float32([np.nan])]) is None


def test_an_integer_type_may_be_told_otherwise():
    """A consumer that has no unsigned integers gives the same bytes; another width is a difference."""
    exact = Rounding((True,))
    assert exact.difference([np.uint32([2**32 - 1])], [np.int32([-1])]) is None
    assert exact.difference([np.bool_([True])], [np.int8([1])]) is None
    assert "int64" in str(exact.difference([np.int64([1])], [np.int32([1])]))
