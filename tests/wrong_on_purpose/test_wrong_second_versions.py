"""Second versions that nobody lowered, wrong in one way each: `pytest -k last_row_of_many` runs one of them."""

import pytest
from wrong_second_versions import PAIRS

from hlo_lower.verify import Assumed, Effort, verify
from hlo_lower.verify.module_runs import verify_module

FOUND_BY_THE_MODULE = {
    *("last_row_of_eight", "last_row_of_many", "index_through_i16", "index_through_bf16", "index_clamped"),
    *("third_duplicate", "fifth_duplicate", "first_writer_wins", "last_update_lost", "last_of_many", "last_branch"),
    *("column_leaks_into_the_next_row", "ties_of_integers", "one_of_three_results", "results_exchanged"),
    *("second_iteration", "an_iteration_short", "index_above_2_31", "far_index_wraps", "carried_values_exchanged"),
    *("other_start", "decomposition", "rounded", "order_of_a_sum"),
}
"""What three runs of the whole module find without the regions."""


@pytest.mark.few(11)
@pytest.mark.parametrize("name", PAIRS)
def test_a_wrong_second_version_is_caught_by_its_regions(name):
    """What is wrong beside what is computed is told as such; the rest is a region that differs, none is left open."""
    case = PAIRS[name]
    verdict = verify(case.before, case.after, level="regions")
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, True, 1)
    assert bool(verdict.interface) == case.is_interface
    if not case.is_interface:
        assert {region.status for region in verdict.regions} == {"differs"}
        assert all(f"differs: {region.difference}" in "\n".join(verdict.lines()) for region in verdict.regions)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PAIRS)
def test_what_the_module_s_runs_alone_find(name):
    """More than half of the wrong versions pass three runs of the whole module, which is why there are regions."""
    module = verify_module(PAIRS[name].before, PAIRS[name].after, Assumed(), Effort())
    assert (module.status == "differs") == (name in FOUND_BY_THE_MODULE)


@pytest.mark.parametrize("name", ["third_duplicate", "second_iteration", "nan_lost", "aliasing_lost"])
def test_the_first_version_is_itself(name):
    """The first version against itself has no region, and no difference beside: it is the change that is caught."""
    verdict = verify(PAIRS[name].before, PAIRS[name].before, level="regions")
    assert (verdict.ok, verdict.regions, verdict.interface) == (True, (), ())
