"""Large pieces get fewer runs, constants of gigabytes none, and the verdict says so."""

import numpy as np
import pytest
from two_programs import regions
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import run, verify
from hlo_lower.verify.align import piece
from hlo_lower.verify.align.piece import pieces_of
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.drive import driven_runs
from hlo_lower.verify.drive.input_roles import Role, Roles
from hlo_lower.verify.judges import judge
from hlo_lower.verify.read import meanings
from hlo_lower.verify.run import CannotRunError

ONE, OTHER, SAME = (
    module("%x: 64x8xf32, %y: 8x64xf32", f"%d = dot_general %x, %y, contracting_dims = [1] x [0]; {last}", "%e")
    for last in ("%e = tanh %d", "%e = logistic %d", "%m = negate %d; %n = negate %m; %e = tanh %n")
)


def test_fewer_runs_of_what_is_large(monkeypatch):
    """A piece that gives more values than all runs may has two runs, which the verdict says; a difference is seen."""
    few = hl.verify(ONE, SAME, level="regions").regions[0]
    for where in (driven_runs, judge):
        monkeypatch.setattr(where, "VALUES", 1 << 12)
    [region] = hl.verify(ONE, SAME, level="regions").regions
    assert (few.runs, few.excluded) == (driven_runs.PLAIN_RUNS, ())
    assert region.runs == driven_runs.LEAST_OF_LARGE
    assert region.excluded == ("further runs, because each gives 4,096 values",)
    assert hl.verify(ONE, OTHER, level="regions").differs


def test_windows_are_mixed_first():
    """Of a large piece that places windows the first run has ordinary floats, and each window a place of its own."""
    role = Role((50,), np.dtype(np.int32), columns=(driven_runs.Column(100, 1),))
    first = next(driven_runs.runs_of(Roles([role], (), (), positions=50), [0], 1 << 40))
    starts = first.arguments[0]
    assert (first.aim, first.is_special) == ("mixed", False)
    assert min(starts) < 0
    assert max(starts) >= 100
    assert sum(0 <= start < 100 for start in starts) > 10


def test_disturbed_results_are_kept():
    """Two judges of one run ask for its bounds: the disturbed module runs for the first of them alone."""
    own, rng = OwnBounds(ONE), np.random.default_rng(0)
    arguments = [rng.standard_normal(s).astype(np.float32) for s in ((64, 8), (8, 64))]
    expected = [np.tanh(arguments[0] @ arguments[1])]
    first = own.of(arguments, expected)
    own._disturbed.run = None
    np.testing.assert_array_equal(own.of(arguments, expected)[0], first[0])


SPLAT, DENSE = "1.0", "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"
ENOUGH = 12 * 8 * 4
"""Bytes that a run takes for eight floats."""


def text(value, op="add"):
    """A module that adds a constant."""
    return module("%a: 8xf32", f"%k = constant {value} : 8xf32; %r = {op} %a, %k")


@pytest.mark.parametrize(
    ("value", "budget", "level", "status"),
    [
        (DENSE, ENOUGH, "auto", "equal"),
        (DENSE, ENOUGH - 1, "auto", "not run"),
        (DENSE, ENOUGH - 1, "full", "equal"),
        (SPLAT, ENOUGH - 1, "auto", "equal"),
    ],
)
def test_a_module_of_large_constants_is_not_run(value, budget, level, status):
    """What a run takes for them counts against the budget of memory; one number that is repeated takes nothing."""
    verdict = verify(text(value), text(value), level=level, memory_budget=budget)
    assert verdict.module is not None
    assert verdict.module.status == status
    assert ("constants" in verdict.module.reason) == (status == "not run")


def test_a_region_of_large_constants_is_not_cut_out(monkeypatch):
    """Its pieces would be printed and compiled; where constants are what both have in common, it is."""
    monkeypatch.setattr(meanings, "MAX_ELEMENTS", 4)
    monkeypatch.setattr(piece, "over_budget", lambda ops: run.over_budget(ops, ENOUGH - 1))
    [region] = regions(text(DENSE), text(DENSE, "subtract"))
    pieces_of(region)
    [region] = regions(text(DENSE), text(DENSE.replace("0.0", "9.0", 1)))
    with pytest.raises(CannotRunError, match=r"0\.0 GiB of constants"):
        pieces_of(region)
