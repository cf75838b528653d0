"""The self-checking scatter modules of openxla/stablehlo in linalg: nothing of StableHLO is left, and IREE meets them.

How a module is judged stands in tests/test_stablehlo_testdata.py; here its indices are an argument of @main.
"""

import sys
from pathlib import Path

import pytest
from leaving import left_as_linalg, lowered_text

sys.path.append(str(Path(__file__).parents[1]))

from test_stablehlo_testdata import (
    CLOSE_ULPS,
    DYNAMIC,
    MODULES,
    ROUNDS,
    STATIC,
    features,
    name,
    sample,
    ulps,
    with_index_argument,
    without_check,
)

from hlo_lower.verify.bounds.compare import first_difference

needs_corpus = pytest.mark.skipif(not MODULES, reason="the corpus is not there")


@needs_corpus
@pytest.mark.parametrize(
    ("named", "paths"),
    [
        pytest.param(True, DYNAMIC, id="named"),
        pytest.param(False, DYNAMIC[::3], id="generic"),
        pytest.param(False, DYNAMIC, id="all generic", marks=pytest.mark.sweep),
    ],
)
def test_modules_of_dynamic_shape_end_without_stablehlo(named, paths):
    """Each module of dynamic shape ends with linalg and its kin, its sizes read at run time."""
    for path in paths:
        text, report = left_as_linalg(path, named=named)
        assert report.is_complete, (path.name, report.lines())
        assert "stablehlo" not in text


def assert_met(path, *, named):
    """On IREE a static module gets what it expects, as strictly as its combiner and its check allow."""
    from iree_runs import run_on_iree

    moved, indices = with_index_argument(path.read_text())
    unchecked, check = without_check(lowered_text(moved))
    text, report = left_as_linalg(unchecked, named=named)
    assert report.is_complete, report.lines()
    assert "stablehlo" not in text
    got, expected = run_on_iree(text, [indices])
    found = first_difference([expected], [got])
    within = features(path)[1] in ROUNDS and check == "check.expect_close" and ulps(got, expected) <= CLOSE_ULPS
    assert found is None or within, str(found)


@pytest.mark.few(2)
@needs_corpus
@pytest.mark.parametrize("path", sample()[::8], ids=name)
def test_a_sample_meets_its_expectation_on_iree(path):
    """Modules of several forms give on IREE what they expect."""
    assert_met(path, named=True)


@pytest.mark.sweep
@needs_corpus
@pytest.mark.parametrize("named", [True, False], ids=["named", "generic"])
@pytest.mark.parametrize("path", STATIC, ids=name)
def test_every_module_meets_its_expectation_on_iree(path, named):
    """Each static module gives on IREE what it expects, in both forms."""
    assert_met(path, named=named)
