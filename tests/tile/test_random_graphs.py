"""Random programs with random loops in them compute the same, bit for bit; wrong rules and wrong loops are seen."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import mismatch
from random_scatters import mismatches
from wrong_loops import MACHINERY, RULES, SEEN, changed

from hlo_lower.ops.axes.all_rules import default_subset_rules


@settings(max_examples=4, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_random_loops_change_nothing(seed):
    """Two random plans, one after the other, in a program of random ops: no result differs."""
    assert mismatch(seed, default_subset_rules()) == ""


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(50))
def test_many_random_loops_change_nothing(block):
    """The same for a hundred programs."""
    rules = default_subset_rules()
    assert [seed for seed in range(100 * block, 100 * (block + 1)) if mismatch(seed, rules)] == []


def test_random_loops_around_scatters_change_nothing():
    """Scatters of points, rows and windows, in bounds, at edges and beyond, are in tiles what they are as a whole."""
    rules = default_subset_rules()
    found = [told for seed in (3, 43) for told in mismatches(seed, rules, 1 + seed // 20)]
    assert found == [""] * len(found)
    assert found


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(40))
def test_many_random_loops_around_scatters_change_nothing(block):
    """The same for two thousand drawings of loops; one program of ten operation by operation, with NumPy's scatters."""
    rules = default_subset_rules()
    drawn = {seed: mismatches(seed, rules, 8, is_numpy=seed % 10 == 0) for seed in range(10 * block, 10 * (block + 1))}
    assert {seed: told for seed, told in drawn.items() if any(told)} == {}


LONG = ("repeated_tail", "forgotten_sum")


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(w, marks=pytest.mark.sweep) if w.__name__ in LONG else w for w in MACHINERY],
    ids=lambda wrong: wrong.__name__,
)
def test_a_wrong_loop_is_seen(wrong, monkeypatch):
    """Each way to get the loop wrong gives other results in a program that is right without it."""
    seed = SEEN[wrong.__name__]
    assert mismatch(seed, default_subset_rules()) == ""
    wrong(monkeypatch)
    assert mismatch(seed, default_subset_rules()) != ""


@pytest.mark.parametrize("what", RULES)
def test_a_wrong_rule_is_seen(what):
    """Each wrong subset rule gives other results in a program that is right without it."""
    seed = SEEN[what]
    assert mismatch(seed, default_subset_rules()) == ""
    assert mismatch(seed, changed(*RULES[what])) != ""
