"""Loops and branches that a consumer takes, but not in each form: short loops that pass values on, cheap branches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rewrites import assert_same
from rule_examples import target
from untyped_mlir import module

import hlo_lower as hl

X, Y = np.float32([1, 2, 3, 4]), np.float32([5, -6, 7, 8])
NPU = target("npu", refused_forms=["short while passing values on", "cheap branches of several results"])


def turned(trips, given=lambda x, y: (y, x + y), sized=True):
    """A loop of so many trips, given how a trip makes two arrays, or numbers, of two."""
    shaped = (lambda v: v) if sized else jnp.sum
    return lambda x, y: lax.fori_loop(0, trips, lambda _, c: given(*c), (shaped(x), shaped(y)))


LOOPS = {
    "in turn": (turned(3), True),
    "through a function": (turned(3, jax.jit(lambda x, y: (y, jnp.sin(x) + y))), True),
    "unchanged": (turned(3, lambda x, y: (x, x + y)), False),
    "computed anew": (turned(3, lambda x, y: (y + 1, x + y)), False),
    "of many trips": (turned(9), False),
    "of numbers alone": (turned(3, sized=False), False),
    "as often as an argument says": (lambda x, y: turned(y[0].astype(int))(x, y), False),
    "with a branch": (turned(3, lambda x, y: (y, lax.cond(x[0] > 0, jnp.sin, jnp.cos, y))), False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_short_loops_that_pass_arrays_on_are_written_out(name):
    """Others stay, and none is told to be left."""
    function, is_written_out = LOOPS[name]
    source = hl.export(function, X, Y)
    lowered = hl.lower(source, target=NPU)
    assert ("stablehlo.while" not in lowered.text, lowered.refused) == (is_written_out, ())
    assert_same(source, lowered, X, Y)


def test_a_loop_that_gives_what_stands_outside_is_no_loop_that_passes_on():
    """An argument of the function is none of the body, whatever its number."""
    body = """%z = constant 0 : i32; %three = constant 3 : i32; %one = constant 1 : i32
    %l:3 = while(%i = %z, %a = %y, %b = %x) cond { %p = compare LT, %i, %three; return %p } do {
      %j = add %i, %one; %s = add %a, %b; return %j, %s, %y }"""
    text = module("%x: 4xf32, %y: 4xf32", body, "%l#1, %l#2")
    assert "stablehlo.while" in hl.lower(text, target=NPU).text
    passed_on = text.replace("%s, %y", "%s, %a")
    assert passed_on != text
    assert "stablehlo.while" not in hl.lower(passed_on, target=NPU).text


def chosen(*branches):
    """Branches of two arrays, by the first number of one."""
    return lambda x, y: lax.switch((y[0] - 5).astype(int), branches, x, y)


def keep(x, y):
    return x, y


BRANCHES = {
    "elementwise": (chosen(keep, lambda x, y: (x + y, jnp.sin(y))), True),
    "of three": (chosen(keep, lambda x, y: (y, x), lambda x, y: (x * x.sum(), y)), True),
    "through a function": (chosen(keep, jax.jit(lambda x, y: (jnp.where(x > 2, y, x), y))), True),
    "of one result": (chosen(jnp.add, jnp.subtract), False),
    "of an array and a number": (chosen(lambda x, y: (x, y[0]), lambda x, y: (y, x.sum())), False),
    "with a product": (chosen(keep, lambda x, y: (x @ y * x, y)), False),
    "with an update": (chosen(keep, lambda x, y: (x.at[2].set(9), y)), False),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_cheap_branches_of_several_arrays_are_selected_from(name):
    """Those of one array, or that may cost much, stay."""
    function, is_selected = BRANCHES[name]
    source = hl.export(function, X, Y)
    lowered = hl.lower(source, target=NPU)
    assert ("stablehlo.case" not in lowered.text, lowered.refused) == (is_selected, ())
    for first in (4, 5, 6, 7):
        assert_same(source, lowered, X, np.float32([first, *Y[1:]]))
