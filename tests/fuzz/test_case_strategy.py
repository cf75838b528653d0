"""The hypothesis strategy: its examples are legal, and a fault shrinks to one small scatter."""

import sys
from math import prod

import pytest
from hypothesis import HealthCheck, find, given, settings

import hlo_lower as hl
from hlo_lower.testing.case_strategy import legal_scatters
from hlo_lower.testing.fuzz.case import Case, recorded_case
from hlo_lower.testing.fuzz.module_text import module_text
from hlo_lower.testing.fuzz.shrink import shrink

QUIET = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@QUIET
@given(legal_scatters())
def test_every_example_is_legal(case):
    """jaxlib verifies the module, and it holds one scatter that has a rule."""
    [record] = hl.classify(hl.read(module_text([case])))
    assert record.rule


def is_small(case):
    """One window of a few elements of f32, at one runtime start."""
    form = case.form
    assert isinstance(case, Case)
    assert (len(form.columns), prod(form.positions), case.operands) == (1, 1, ("f32",))
    assert len(form.operand) <= 2
    assert prod(form.operand) <= 6
    assert "stablehlo.return %u0 : tensor<f32>" in module_text([case])
    return True


@pytest.mark.sweep
def test_a_lost_guard_shrinks_to_one_small_scatter(unguarded, differs):
    """hypothesis finds a lowering that clamps, and reduces it to an assignment of one small window."""
    assert is_small(find(legal_scatters(("Tile", "assign")), differs, settings=QUIET))


@pytest.mark.sweep
def test_a_failing_seed_shrinks_in_the_same_way(unguarded, differs):
    """The choices of a seed, shrunk without hypothesis, lead to a case as small, and never to one that passes."""
    seed = next(s for s in range(1, 10_000, 202) if differs(recorded_case(s)[0]))
    case, choices = recorded_case(seed)
    small, used = shrink(case, choices, lambda cases: [differs(c) for c in cases], most=150)
    assert is_small(small)
    assert differs(small)
    sizes = [sum(prod(shape) for shape in (c.form.operand, c.form.updates, c.form.indices)) for c in (small, case)]
    assert sizes[0] < sizes[1]
    assert sum(used) < sum(choices)


def test_a_passing_case_does_not_shrink():
    """Where nothing fails, the case stays as it is; of a cell that is none the message lists the cells."""
    case, choices = recorded_case(3)
    assert shrink(case, choices, lambda cases: [False] * len(cases), most=30) == (case, choices)
    with pytest.raises(ValueError, match=r"\('Row', 'assign'\) is not a cell; the cells are Point/assign, Tile/assign"):
        legal_scatters(("Row", "assign"))


def test_without_hypothesis_the_strategy_says_so(monkeypatch):
    """The package needs no hypothesis; the strategy's module names what to install."""
    for name in [n for n in sys.modules if n.split(".")[0] == "hypothesis" or n == "hlo_lower.testing.case_strategy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match=r"case_strategy needs hypothesis: pip install hypothesis"):
        __import__("hlo_lower.testing.case_strategy")
