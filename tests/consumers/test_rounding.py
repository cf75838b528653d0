"""How closely results have to agree: what may differ, what may not, and that a wrong result is caught."""

import numpy as np
import pytest
from untyped_mlir import function, module

from hlo_lower.consumers.rounding import Rounding, rounding_of
from hlo_lower.ir import mlir

SQUARED = function("private @f", "%x: 4xf32", "%r = multiply %x, %x")


def rounding(lines):
    """The rounding of a module whose @main has these lines."""
    return rounding_of(mlir.parse_module(module("%a: 4xf32, %i: i32", lines) + SQUARED))


MOVED, ADDED = "%r = reverse %a, dims = [0]", "%r = add %a, %a"
INDEXED = """%f = cosine %a; %k = convert %f -> 4xi32; %s = slice %k [0:1]; %t = reshape %s -> i32
    %u = slice %a [1:2]; %r = dynamic_update_slice %a, %u, %t"""
SCATTERED = """%s = reshape %i -> 1xi32; %u = slice %a [1:2]; %w = reshape %u -> f32
    %r = scatter(%a, %s, %w) <inserted=[0], to=[0]> { %x, %y:
    %z = COMBINED; return %z
    }"""

CASES = {
    "moved": (MOVED, True),
    "added": (ADDED, False),
    "called": ("%r = call @f(%a) -> 4xf32", False),
    "placed by a computed float": (INDEXED, False),
    "scatter that assigns": (SCATTERED.replace("COMBINED", "optimization_barrier %y"), True),
    "scatter that adds": (SCATTERED.replace("COMBINED", "add %x, %y"), False),
    "argument": ("return %a", True),
    # sums of integers are in any order the same
    "integers": ("%r = add %i, %i", True),
}


@pytest.mark.parametrize(("lines", "exact"), CASES.values(), ids=CASES)
def test_floats_that_are_only_moved_are_exact(lines, exact):
    """A result is compared bit for bit where nothing that it depends on rounds, in calls and regions, too."""
    assert rounding(lines).exact == (exact,)


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
    """Neither equal results nor exact ones ask for them; those of integers are 0."""

    def never():
        raise AssertionError

    one = np.ones(2, np.float32)
    assert Rounding((False,)).difference([one], [one.copy()], never) is None
    assert Rounding((True,)).difference([one], [one * 2], never) is not None
    assert Rounding((False,)).difference([np.int32([5])], [np.int32([6])], lambda: [np.zeros(1)]) is not None


ONE, NAN = np.float32([1.0]), np.float32([np.nan])


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        # the sign of a zero, and the last bit, are differences where nothing is rounded
        (np.float32([0.0]), np.float32([-0.0]), "result 0"),
        (ONE, np.nextafter(ONE, np.float32(2)), "result 0"),
        (NAN, NAN, "None"),
        # a consumer that has no unsigned integers gives the same bytes; another width is a difference
        (np.uint32([2**32 - 1]), np.int32([-1]), "None"),
        (np.bool_([True]), np.int8([1]), "None"),
        (np.int64([1]), np.int32([1]), "int64"),
    ],
)
def test_exact_results_differ_in_one_bit(expected, actual, told):
    """Where nothing is rounded, each bit counts."""
    exact = rounding(MOVED)
    assert exact.told == "bit for bit"
    assert told in str(exact.difference([expected], [actual]))
