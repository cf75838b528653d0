"""Large pieces get fewer runs, the most telling first, and say so; their bounds are asked for once for each run."""

import numpy as np
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.drive import driven_runs
from hlo_lower.verify.drive.input_roles import Role, Roles
from hlo_lower.verify.judges import judge

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
