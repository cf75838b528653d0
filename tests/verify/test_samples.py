"""Values of two functions that are far apart on the same arguments are told; nothing is said where results are."""

import pytest
from two_programs import programs
from untyped_mlir import module

from hlo_lower.verify.align.corrections import values_apart

ONE, OTHER = (
    f"%two = constant 2.0 : 8xf32; %s = {first} %x, %two; %t = {second} %s, %two; %r = add %t, %x"
    for first, second in (("add", "subtract"), ("subtract", "add"))
)
"""2 x, in two ways."""


def told(before: str, after: str) -> set[tuple[int, int]]:
    """The values that are apart, by the places of the operations that make them."""
    first, second = programs(*(module("%x: 8xf32", body, "%r") for body in (before, after)))
    makers = [(first.makers[x], second.makers[y]) for x, y in values_apart(first, second, "main")]
    return {(one.order, other.order) for one, other in makers if one is not None and other is not None}


def test_values_that_differ_are_apart():
    """x + 2 is not x - 2, and what is rounded otherwise is not apart: x + 2 - 2 and x - 2 + 2."""
    assert (1, 1) in told(ONE, OTHER)
    assert (2, 2) not in told(ONE, OTHER)


@pytest.mark.parametrize("wrong", ["%t, %two", "%s, %x"])
def test_nothing_is_said_of_functions_that_differ(wrong):
    """Their difference is looked for where it is."""
    assert told(ONE, OTHER.replace("%r = add %t, %x", f"%r = add {wrong}")) == set()
