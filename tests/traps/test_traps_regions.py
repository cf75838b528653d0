"""Traps of the update computation: order of arguments, captured values, promotion."""

import numpy as np
import pytest
from one_scatter import POLICIES, VARIADIC, f32, i32, points, run, tile

BODIES = {
    "operand first": (
        "%n = stablehlo.subtract %c, %u : tensor<i32> stablehlo.return %n : tensor<i32>",
        [10, -5, 30],
    ),
    "update first": ("%n = stablehlo.subtract %u, %c : tensor<i32> stablehlo.return %n : tensor<i32>", [10, 25, 30]),
    "no-op": ("stablehlo.return %c : tensor<i32>", [10, 20, 30]),
    "constant": ("%k = stablehlo.constant dense<7> : tensor<i32> stablehlo.return %k : tensor<i32>", [10, 7, 30]),
    "only the current value": (
        "%n = stablehlo.add %c, %c : tensor<i32> stablehlo.return %n : tensor<i32>",
        [10, 80, 30],
    ),
    "only the update": ("%n = stablehlo.negate %u : tensor<i32> stablehlo.return %n : tensor<i32>", [10, -15, 30]),
    "nested": (
        """%p = stablehlo.compare GT, %u, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %m = stablehlo.multiply %c, %u : tensor<i32>
        %n = stablehlo.select %p, %m, %u : tensor<i1>, tensor<i32> stablehlo.return %n : tensor<i32>""",
        [10, 150, 30],
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_trap_22_update_computations(name):
    """The current value is the first argument, the update the second; a region runs once for each update."""
    body, expected = BODIES[name]
    text = points(2, 3, element="i32", body=body).text()
    [result] = run(text, i32([10, 20, 30]), i32([[1], [1]]), i32([10, 15]))
    assert result.tolist() == expected


def test_trap_22_argmin_and_calls():
    """A lexicographic argmin over two operands, computed in a function that the region calls, takes one pair."""
    body = """%p, %q = func.call @less(%ca, %cb, %ua, %ub)
          : (tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
        stablehlo.return %p, %q : tensor<f32>, tensor<i32>""".replace("%p, %q = func", "%p:2 = func").replace(
        "return %p, %q", "return %p#0, %p#1"
    )
    text = VARIADIC.format(s="f32", t="i32", body=body).replace(
        "module {",
        """module {
  func.func private @less(%ca: tensor<f32>, %cb: tensor<i32>, %ua: tensor<f32>, %ub: tensor<i32>)
      -> (tensor<f32>, tensor<i32>) {
    %0 = stablehlo.compare LT, %ua, %ca : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.compare EQ, %ua, %ca : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare LT, %ub, %cb : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    %4 = stablehlo.or %0, %3 : tensor<i1>
    %5 = stablehlo.select %4, %ua, %ca : tensor<i1>, tensor<f32>
    %6 = stablehlo.select %4, %ub, %cb : tensor<i1>, tensor<i32>
    return %5, %6 : tensor<f32>, tensor<i32>
  }""",
        1,
    )
    values, numbers_ = f32([5, 3, 2, 2, 4, 0]), i32([9, 8, 7, 6, 5, 4])
    a, b = run(text, f32([4] * 4), i32([99] * 4), i32([[1], [1], [1], [1], [3], [4]]), values, numbers_)
    assert [a.tolist(), b.tolist()] == [[4, 2, 4, 4], [99, 6, 99, 5]]


SWAPPED = """%s = stablehlo.subtract %ca, %ua : tensor<i32>
        %t = stablehlo.subtract %ub, %cb : tensor<i32>
        stablehlo.return %t, %s : tensor<i32>, tensor<i32>"""


def test_trap_22_current_values_come_first():
    """Of N operands the N current values come first and the N updates behind, whichever result they go to."""
    text = VARIADIC.format(s="i32", t="i32", body=SWAPPED)
    places, x, y = [1, 1, 2, 9, 0, 1], [1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]
    a, b = [100, 200, 300, 400], [7, 8, 9, 10]
    found = run(text, i32(a), i32(b), i32(places)[:, None], i32(x), i32(y))
    for place, ua, ub in zip(places, x, y, strict=True):
        if place < 4:
            a[place], b[place] = ub - b[place], a[place] - ua
    assert [v.tolist() for v in found] == [a, b]


CAPTURE = """
module {{
  func.func @main(%op: tensor<4xi32>, %i: tensor<{n}xi32>, %up: tensor<2xi32>, %x: tensor<i32>) -> tensor<4xi32> {{
    %k = {captured} : tensor<i32>
    %r = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      {dims}>}}> ({{
      ^bb0(%c: tensor<i32>, %u: tensor<i32>):
        %m = stablehlo.multiply %c, %k : tensor<i32>
        %n = stablehlo.add %m, %u : tensor<i32>
        stablehlo.return %n : tensor<i32>
    }}) : (tensor<4xi32>, tensor<{n}xi32>, tensor<2xi32>) -> tensor<4xi32>
    return %r : tensor<4xi32>
  }}
}}"""

CAPTURE_POINTS = {"n": "2x1", "dims": "inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1"}

CAPTURE_TILE = {"n": "1", "dims": "update_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=0"}


@pytest.mark.parametrize("form", ["points", "tile"])
def test_trap_23_captured_constant(form):
    """A constant that the region takes from around it is carried into what replaces the scatter."""
    _check_capture(form, "stablehlo.constant dense<3>", 3)


@pytest.mark.parametrize("form", ["points", "tile"])
def test_trap_44_captured_value(form):
    """A runtime value that the region captures is carried along, although XLA refuses it in a scatter."""
    _check_capture(form, "stablehlo.add %x, %x", 10)


def _check_capture(form: str, captured: str, factor: int) -> None:
    operand, updates, x = i32([1, 2, 3, 4]), i32([10, 20]), i32(5)
    if form == "tile":
        text, index = CAPTURE.format(captured=captured, **CAPTURE_TILE), i32([1])
        expected = [1, 2 * factor + 10, 3 * factor + 20, 4]
    else:
        text, index = CAPTURE.format(captured=captured, **CAPTURE_POINTS), i32([[2], [2]])
        expected = [1, 2, (3 * factor + 10) * factor + 20, 4]
    [result] = run(text, operand, index, updates, x)
    assert result.tolist() == expected


@pytest.mark.few(3)
@POLICIES
@pytest.mark.parametrize(("narrow", "wide"), [("i8", "i32"), ("bf16", "f32")])
@pytest.mark.parametrize("combiner", ["assign", "add", "subtract"])
def test_trap_24_promotion(narrow, wide, combiner, oob):
    """A region wider than the operand converts operand and updates first, and gives the wide type."""
    points(3, 4, element=narrow, region_element=wide, combiner=combiner).check([1, 1, 1], [0, -1, 4], oob=oob)
    tile(2, 4, element=narrow, region_element=wide, combiner=combiner).check([1], [3], [9], oob=oob)


@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_24_promotion_of_constant_windows(combiner):
    """The same where constant indices are solved at conversion time; elements that are not written are wide, too."""
    for places in ([0, 2, 4], [5, 1, 3], [1, 2, 9]):
        text = points(3, 6, element="i8", region_element="i32", combiner=combiner).with_indices(places)
        expected = np.arange(100, 106)
        for place, update in zip(places, [100, 101, 102], strict=True):
            if place < 6:
                expected[place] = update + (expected[place] if combiner == "add" else 0)
        [found] = run(text, np.arange(100, 106, dtype=np.int8), np.asarray([100, 101, 102], np.int8))
        assert (found.dtype, found.tolist()) == (np.int32, expected.tolist())
