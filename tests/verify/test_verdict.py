"""What a verdict tells: in a line, in lines, as data, and as an exit code."""

import json

import numpy as np
import pytest

from hlo_lower.verify import ModuleVerdict, RegionVerdict, Verdict
from hlo_lower.verify.bounds.compare import Difference
from hlo_lower.verify.read.program import ScatterPosition
from hlo_lower.verify.region_verdict import SAME_TEXT


def region(**what) -> RegionVerdict:
    """A region at one place of both versions."""
    return RegionVerdict(function="main", where="main", first=("llama.py:88",), second=("llama.py:88",), **what)


EQUAL = region(
    scatters=(1, 2), count=2, runs=30, judges=("XLA", "reference"), windows=(3, 0, 5, 1), rules=("updated_slice",),
    excluded=("interpreter: reads unsigned indices as signed",),
)  # fmt: skip
WIDENED = region(how="widened", producers=3, runs=40, judges=("XLA",))
WRONG = region(
    scatters=(3,), status="differs", difference="in range: XLA says result 0 at [1]: ...", inputs={0: np.zeros(3)}
)
ONLY_RUN = region(status="only run", reason="narrow failure not reached, 9 runs")
UNJUDGED = region(status="not judged", reason="an input of type !stablehlo.token")
SAME = region(judges=SAME_TEXT)
DERIVED = region(how="derived", laws=("fold", "commutes"))
DIFFERENCE = Difference(0, (1, 2), "1.0", "2.0", 4, "bit for bit")
MODULE_EQUAL = ModuleVerdict("equal", 3)
PATH = (ScatterPosition(1, "main", "llama.py:88"),)
MODULE_WRONG = ModuleVerdict("differs", 1, difference=DIFFERENCE, on_path=PATH)
NOT_RUN = ModuleVerdict("not run", reason="dynamic shape tensor<?xf32>")
UNEXERCISED = ModuleVerdict("equal", 3, not_exercised=("result 0: 60% of it is NaN",))
CHANGED = ("@main: argument 0 loses tf.aliasing_output = 0 : i32",)
PLAIN = Verdict((), plain=ModuleVerdict("differs", 1, difference=DIFFERENCE))

CASES = [
    (Verdict((DERIVED, WIDENED)), 0, "2 regions: 1 derived, 1 tested"),
    (Verdict((DERIVED, WIDENED), requires="derived"), 4, "2 regions: 1 derived, 1 tested"),
    (Verdict(()), 0, "the same operations"),
    (Verdict((EQUAL,)), 0, "2 regions (1 distinct) tested"),
    (Verdict((EQUAL,), module=MODULE_EQUAL), 0, "2 regions (1 distinct) tested; module 3 runs"),
    (Verdict((WIDENED,), module=UNEXERCISED), 0, "1 region tested; module 3 runs; not exercised: 1"),
    (Verdict((EQUAL, WRONG)), 1, "3 regions (2 distinct): 2 tested, 1 differ"),
    (Verdict((EQUAL,), module=MODULE_WRONG), 1, "2 regions (1 distinct) tested; module differs"),
    (Verdict((), CHANGED), 1, "1 difference beside what is computed; the same operations"),
    (Verdict((EQUAL, ONLY_RUN)), 4, "3 regions (2 distinct): 2 tested, 1 only run"),
    (Verdict((UNJUDGED,)), 4, "1 region not judged"),
    (PLAIN, 1, "the same operations; plain form differs"),
]


@pytest.mark.parametrize(("verdict", "code", "summary"), CASES)
def test_the_summary_is_one_line_and_the_code_says_what_was_found(verdict, code, summary):
    """0 verified, 1 a difference, 4 neither; the summary counts regions, says how they were judged, and the runs."""
    assert (verdict.summary(), verdict.exit_code) == (summary, code)
    assert (verdict.ok, verdict.differs, verdict.only_run) == (code == 0, code == 1, code == 4)


@pytest.mark.parametrize(
    ("regions", "module", "required", "accepts_runs", "code"),
    [
        ((ONLY_RUN,), None, False, True, 0),
        ((ONLY_RUN,), NOT_RUN, True, True, 4),
        ((UNJUDGED,), MODULE_EQUAL, False, True, 4),
        ((ONLY_RUN, WRONG), None, False, True, 1),
        ((EQUAL,), NOT_RUN, True, False, 4),
    ],
)
def test_what_is_enough_is_what_was_asked_for(regions, module, required, accepts_runs, code):
    """Accepted runs are enough; what was not judged, or a module that had to be run and was not, is not."""
    verdict = Verdict(regions, module=module, module_required=required, accepts_runs=accepts_runs)
    assert verdict.exit_code == code


def test_the_lines_name_places_judges_and_differences():
    """Differences come first, then what is not proved, with its reason; equal regions tell how, by whom and where."""
    assert Verdict((EQUAL, WIDENED, WRONG), CHANGED, MODULE_WRONG).lines() == [
        "differs: @main: argument 0 loses tf.aliasing_output = 0 : i32",
        "scatter 3 at llama.py:88 in main: differs: in range: XLA says result 0 at [1]: ...",
        "module differs: result 0 at [1, 2]: expected 1.0, got 2.0 (4 elements differ, bit for bit)",
        "  on its path: scatter 1 at llama.py:88 in @main",
        "scatters 1, 2 at llama.py:88 in main and 1 alike, written by updated_slice: equal as it stands, 30 runs, "
        "judged by XLA, reference",
        "  windows: 3 inside, 5 outside; never overhanging; one element written up to 1 times",
        "  left out: interpreter: reads unsigned indices as signed",
        "llama.py:88 in main: equal with 3 producers of its inputs, 40 runs, judged by XLA",
    ]
    assert Verdict((WIDENED, ONLY_RUN, UNJUDGED), module=NOT_RUN).lines() == [
        "llama.py:88 in main: not judged: an input of type !stablehlo.token",
        "llama.py:88 in main: only run: narrow failure not reached, 9 runs",
        "llama.py:88 in main: equal with 3 producers of its inputs, 40 runs, judged by XLA",
        "module not run: dynamic shape tensor<?xf32>",
    ]
    unexercised = ["module: equal in 3 runs, bit for bit", "  not exercised: result 0: 60% of it is NaN"]
    assert Verdict((), module=UNEXERCISED).lines() == unexercised
    assert Verdict((DERIVED,)).lines() == ["llama.py:88 in main: equal, derived (laws: fold, commutes)"]


def test_json_is_plain_data():
    """A verdict as JSON survives json.dumps and holds the regions, without the arrays of a counterexample."""
    verdict = Verdict((EQUAL, WRONG), CHANGED, MODULE_WRONG, 1.5)
    plain = json.loads(json.dumps(verdict.to_json()))
    assert (plain["ok"], plain["summary"], plain["seconds"]) == (False, verdict.summary(), 1.5)
    assert plain["counts"] == {"tested": 2, "differs": 1}
    assert plain["interface"] == list(CHANGED)
    first, second = plain["regions"]
    assert (first["scatters"], first["judges"], first["rules"]) == ([1, 2], ["XLA", "reference"], ["updated_slice"])
    assert (second["status"], "inputs" in second) == ("differs", False)
    assert plain["module"]["difference"]["index"] == [1, 2]


def test_time_does_not_make_verdicts_differ():
    assert Verdict((EQUAL,), seconds=1.0) == Verdict((EQUAL,), seconds=2.0)


def test_pieces_of_the_same_ops_are_said_to_be_that():
    """They were not run, so no count of runs stands there."""
    assert Verdict((SAME,)).lines() == ["llama.py:88 in main: equal: the same ops on the same inputs"]
