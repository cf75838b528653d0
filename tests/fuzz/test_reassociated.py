"""Sums whose order is free: another order passes, and what is more than another order does not."""

from itertools import islice

import numpy as np
import pytest

from hlo_lower.lowering.scatter import numbered_rows
from hlo_lower.testing.fuzz.campaign_worker import built_in
from hlo_lower.testing.fuzz.case import STRATA, case_of_seed
from hlo_lower.testing.fuzz.case_arguments import arguments_of
from hlo_lower.testing.fuzz.judging import judge
from hlo_lower.testing.fuzz.reassociated import allowances, difference_within
from hlo_lower.testing.fuzz.sensitivity import reference

FORMS = ("compare_reduce", "one_hot_dot", "sorted_segments")


def summing(element, family="add"):
    """The first case that adds to some elements of a float type several times, its third arguments, and its results."""
    for seed in range(6 * len(STRATA)):
        case = case_of_seed(seed)
        if case.intended[1] == family and case.operands == case.region.elements == (element,):
            for k in range(4):
                arguments = arguments_of(case, k)
                expected = reference(case, arguments, "xla")
                [allowed] = allowances(case, family, arguments, expected, "xla")
                changed = (allowed > 0) & np.isfinite(expected[0].astype(float)) & np.isfinite(allowed)
                if changed.any() and (allowed == 0).any():
                    return expected, [allowed], tuple(np.argwhere(changed)[0])
    raise AssertionError("no such case")


@pytest.mark.parametrize("element", ["f32", "f64", "bf16"])
def test_a_bound_lets_a_rounding_pass_and_nothing_larger(element):
    """A rounding of a sum is allowed, twice the allowance is not, and what nothing is added to stays as it is."""
    expected, allowed, place = summing(element)
    near, far = expected[0].copy(), expected[0].copy()
    near[place] = np.nextafter(near[place], near.dtype.type(np.inf))
    far[place] = far[place] + far.dtype.type(2 * allowed[0][place])
    assert difference_within(expected, [near], allowed) is None
    assert difference_within(expected, [far], allowed) is not None
    untouched = tuple(np.argwhere((allowed[0] == 0) & np.isfinite(expected[0]))[0])
    other = expected[0].copy()
    other[untouched] = np.nextafter(other[untouched], other.dtype.type(np.inf))
    assert difference_within(expected, [other], allowed) is not None


def test_assignments_are_allowed_nothing():
    """The bound is for sums and products of floats; of any other combiner, and of integers, every bit counts."""
    for seed in range(len(STRATA)):
        case = case_of_seed(seed)
        arguments = arguments_of(case, 0)
        expected = reference(case, arguments, "xla")
        if case.intended[1] in ("assign", "min/max", "and/or/xor"):
            assert not any(a.any() for a in allowances(case, "assign", arguments, expected, "xla"))
        if case.operands == ("i32",) and case.intended[1] == "add":
            assert not any(a.any() for a in allowances(case, "add", arguments, expected, "xla"))


def sums(count):
    """Seeds of cases that add floats at runtime places, several windows each."""
    cases = ((seed, case_of_seed(seed)) for seed in range(40 * len(STRATA)))
    kinds, floats = ("Points", "Windows", "Filter"), ("f32", "f16", "bf16")
    found = (s for s, c in cases if c.intended[0] in kinds and c.intended[1] == "add" and c.operands[0] in floats)
    return list(islice(found, count))


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("rule", FORMS)
def test_the_forms_sum_in_another_order(rule, oob):
    """Each form that adds in another order is within the bound on cases of floats, and is what they are lowered by."""
    cases = [case_of_seed(seed) for seed in sums(24)]
    outcomes = judge(cases, built_in(oob, (rule, "mask_elements=16"), "reassociate"), oob).outcomes
    assert [(o.name, o.failure) for o in outcomes if o.failure] == []
    assert sum(o.rule == rule for o in outcomes) >= 8


@pytest.mark.sweep
def test_a_lost_update_is_found(monkeypatch):
    """A form that leaves out what stands one place before is beyond the bound in a good part of the cases."""
    right = numbered_rows.shift_along

    def one_further(build, value, step, filling):
        return right(build, value, step + (value.static_shape[1] > step + 1), filling)

    monkeypatch.setattr(numbered_rows, "shift_along", one_further)
    cases = [case_of_seed(seed) for seed in sums(12)]
    outcomes = judge(cases, built_in("xla", ("sorted_segments",), "reassociate"), "xla").outcomes
    assert sum(bool(o.failure) for o in outcomes) >= 2
