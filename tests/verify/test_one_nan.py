"""Runs of floats in total order: which NaN are drawn, where IEEE 754 leaves the sign of a computed one open."""

import numpy as np
import pytest
from two_programs import regions
from untyped_mlir import module

from hlo_lower.verify.align.corrections import widen_region
from hlo_lower.verify.align.one_nan import NOT_COMPUTED, inputs_with_one_nan
from hlo_lower.verify.drive.driven_runs import runs_of
from hlo_lower.verify.drive.input_roles import roles_of

BEFORE = "%a = {a}\n%b = {b}\n%r = compare LT, %a, %b, TOTALORDER"
AFTER = BEFORE.replace(", TOTALORDER", "")


def region_of(a="add %x, %x", b="multiply %y, %y"):
    """The region of a comparison that differs."""
    takes = "%x: 6xf32, %y: 6xf32"
    [region] = regions(*(module(takes, text.format(a=a, b=b)) for text in (BEFORE, AFTER)))
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


def test_no_nan_is_made_where_arithmetic_would_give_it_a_sign():
    """With the ops that compute what is ordered: XLA's own NaN of inf - inf has the sign of its processor."""
    wide = widen_region(region_of("subtract %x, %y", "add %x, %y"), 1, integers_only=False)
    assert roles_of(wide).not_said == NOT_COMPUTED
    assert all((np.abs(values) < 1e15).all() for values in drawn(wide))
