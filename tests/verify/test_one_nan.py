"""Runs of floats in total order: which NaN are drawn, where IEEE 754 leaves the sign of a computed one open."""

import numpy as np
import pytest
from two_programs import regions
from untyped_mlir import module

from hlo_lower.verify.align.corrections import widen_region
from hlo_lower.verify.align.one_nan import NOT_COMPUTED, inputs_with_one_nan, may_have_one_nan
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import roles_of

BEFORE = "%a = {a}\n%b = {b}\n%r = compare LT, %a, %b, TOTALORDER"
AFTER = BEFORE.replace(", TOTALORDER", "")


def region_of(a="add %x, %x", b="multiply %y, %y", lines=""):
    """The region of a comparison that differs, behind lines that both versions have."""
    takes = "%x: 6xf32, %y: 6xf32"
    [region] = regions(*(module(takes, lines + text.format(a=a, b=b)) for text in (BEFORE, AFTER)))
    return region


def drawn(region):
    """All floats that runs of a region are given, one behind the other."""
    return [np.concatenate([run.arguments[place] for run in runs_of(roles_of(region), [0])]) for place in (0, 1)]


@pytest.mark.parametrize(
    ("a", "is_open"),
    [("add %x, %x", True), ("negate %x", False), ("abs %x", False), ("maximum %x, %y", True)],
)
def test_the_sign_of_a_computed_nan_is_not_drawn(a, is_open):
    """Only what an argument has, and keeps where it is copied, negated or made positive."""
    region = region_of(a)
    assert (0 in inputs_with_one_nan(region)) == is_open
    nan = [values[np.isnan(values)] for values in drawn(region)]
    assert len(nan[0]) > 10
    assert np.signbit(nan[0]).any() != is_open


@pytest.mark.parametrize(("direction", "is_open"), [("NE", True), ("EQ", False)])
def test_a_nan_that_a_select_takes_the_place_of_is_gone(direction, is_open):
    """An argument's NaN, if it is what is tested; not if numbers are replaced and the NaN stays."""
    lines = f"%n = compare {direction}, %x, %x\n%s = add %y, %y\n"
    region = region_of("select %n, %s, %x", lines=lines)
    side = region.pair.first
    assert may_have_one_nan(side.program, region.first[0].inputs[0]) == is_open


def test_no_nan_is_made_where_arithmetic_would_give_it_a_sign():
    """With the ops that compute what is ordered: XLA's own NaN of inf - inf has the sign of its processor."""
    wide = widen_region(region_of("subtract %x, %y", "add %x, %y"), 1, integers_only=False)
    assert roles_of(wide).not_said == NOT_COMPUTED
    assert all((np.abs(values) < 1e15).all() for values in drawn(wide))
