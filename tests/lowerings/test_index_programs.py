"""Random programs that compute indices, lowered and judged by the reference and XLA, under both policies.

What is recognised in a program (runs, wrapped runs, batch coordinates, constants) chooses the rule, so each rule is
only as right as the recognition before it. The arguments take the extremes of the index type.
"""

from functools import partial

import pytest

import hlo_lower as hl
from hlo_lower.testing import case_of_seed
from hlo_lower.testing.fuzz.case import STRATA
from hlo_lower.testing.fuzz.judging import judge

SLOW_LOOPS = ("loop=12000", "window=5000", "step=10000", "pass_element=1", "copy_element=0.005")
"""Costs by which every form is the cheapest one somewhere."""
SEEDS = {
    "shifted_rows": (94, 587, 498),
    "shifted_updated_rows": (12, 103, 189, 250, 305),
    "wrapped_rows": (1306, 1619, 1821, 3617, 4043, 4851),
    "wrapped_updated_rows": (30, 391, 682, 727, 1224),
    "unrolled": (14, 78, 79, 105, 106),
    "select_per_batch": (52, 98, 125, 143, 236),
    "constant_slices": (33, 297, 371, 701, 822, 1023),
    "strided_select": (6, 207, 683, 839, 1014, 1511),
    "constant_gather": (7414,),
}
"""Programs that show a rule of runs, batches and constants at work."""
LAYOUTS = ("Rows", "BatchedTile", "Filter", "Points", "Windows", "Tile")


def assert_right(seeds, oob):
    """All these programs give what the reference gives; gives their rules."""
    cases = [case_of_seed(seed) for seed in seeds]
    judged = judge(cases, partial(hl.lower, oob=oob, prefer=SLOW_LOOPS), oob)
    assert [one for one in judged.outcomes if one.failure] == []
    return [one.rule for one in judged.outcomes]


@pytest.mark.parametrize("count", [2, pytest.param(None, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("oob", ["xla", "spec"])
def test_every_new_rule_is_right_on_computed_indices(oob, count):
    """Each rule lowers the programs that are drawn for it, but those whose windows are dropped in part."""
    pairs = [(rule, seed) for rule, seeds in SEEDS.items() for seed in seeds[:count]]
    expected = [rule for rule, _ in pairs]
    rules = assert_right([seed for _, seed in pairs], oob)
    assert rules == expected if oob == "xla" else set(rules) >= set(SEEDS)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_programs(block):
    """A thousand programs give what the reference gives."""
    seeds = [seed for seed in range(1000 * block, 1000 * (block + 1)) if STRATA[seed % len(STRATA)][0] in LAYOUTS]
    for oob in ("xla", "spec"):
        assert_right(seeds[:50], oob)
