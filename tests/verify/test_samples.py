"""Values of two functions that are far apart on the same arguments are told; nothing is said where results are."""

import pytest
from two_programs import F8, main, programs

from hlo_lower.verify.align.corrections import values_apart

TWO = f"%two = stablehlo.constant dense<2.0> : {F8}\n"


def twice(lines: str) -> str:
    """A module that returns 2 x, in some way."""
    return main(f"%x: {F8}", TWO + lines, "%r")


ONE = twice(
    f"%s = stablehlo.add %x, %two : {F8}\n%t = stablehlo.subtract %s, %two : {F8}\n%r = stablehlo.add %t, %x : {F8}"
)
OTHER = twice(
    f"%s = stablehlo.subtract %x, %two : {F8}\n%t = stablehlo.add %s, %two : {F8}\n%r = stablehlo.add %t, %x : {F8}"
)


def told(before: str, after: str) -> set[tuple[int, int]]:
    """The values that are apart, by the places of the operations that make them."""
    first, second = programs(before, after)
    makers = [(first.makers[x], second.makers[y]) for x, y in values_apart(first, second, "main")]
    return {(one.order, other.order) for one, other in makers if one is not None and other is not None}


def test_values_that_differ_are_apart():
    """x + 2 is not x - 2, and what is rounded otherwise is not apart: x + 2 - 2 and x - 2 + 2."""
    assert (1, 1) in told(ONE, OTHER)
    assert (2, 2) not in told(ONE, OTHER)


@pytest.mark.parametrize("wrong", ["%t, %two", "%s, %x"])
def test_nothing_is_said_of_functions_that_differ(wrong):
    """Their difference is looked for where it is."""
    assert told(ONE, OTHER.replace("%r = stablehlo.add %t, %x", f"%r = stablehlo.add {wrong}")) == set()
