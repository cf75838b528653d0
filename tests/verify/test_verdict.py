"""What a verdict tells: in a line, in lines, and as data."""

import json

import pytest

from hlo_lower.verify import ModuleVerdict, Regime, ScatterVerdict, Verdict
from hlo_lower.verify.compare import Difference
from hlo_lower.verify.cutout import Place

REGIMES = (
    Regime("in range", 3, 0, 0, 1, ("XLA", "reference")),
    Regime("negative", 0, 0, 3, 0, ("XLA", "interpreter")),
)
FIRST, SECOND, THIRD = (Place(n, "main", f"llama.py:{87 + n}") for n in (1, 2, 3))
EQUAL = ScatterVerdict((FIRST, SECOND), "equal", REGIMES, ("interpreter: reads unsigned indices as signed",))
WRONG = ScatterVerdict((THIRD,), "differs", REGIMES[:1], difference="in range: XLA says result 0 at [1]: ...")
DIFFERENCE = Difference(0, (1, 2), "1.0", "2.0", 4, "bit for bit")
MODULE_EQUAL = ModuleVerdict("equal", 3)
MODULE_WRONG = ModuleVerdict("differs", 1, difference=DIFFERENCE, on_path=(FIRST, THIRD))
NOT_RUN = ModuleVerdict("not run", reason="dynamic shape tensor<?xf32>")


@pytest.mark.parametrize(
    ("verdict", "ok", "summary"),
    [
        (Verdict((), None), True, "no scatter"),
        (Verdict((EQUAL,), None), True, "2 scatters in 2 regimes"),
        (Verdict((EQUAL,), MODULE_EQUAL), True, "2 scatters in 2 regimes, module 3 runs"),
        (Verdict((EQUAL,), NOT_RUN), True, "2 scatters in 2 regimes, module not run: dynamic shape tensor<?xf32>"),
        (Verdict((EQUAL, WRONG), None), False, "3 scatters (2 distinct) in 2 regimes, 1 distinct differs"),
        (Verdict((EQUAL,), MODULE_WRONG), False, "2 scatters in 2 regimes, module differs"),
        (Verdict((WRONG,), None), False, "1 scatter in 1 regime, 1 distinct differs"),
        (
            Verdict((EQUAL,), ModuleVerdict("equal", 3, not_exercised=("result 0: 60% of it is NaN",))),
            True,
            "2 scatters in 2 regimes, module 3 runs, not exercised: 1",
        ),
    ],
)
def test_the_summary_is_one_line(verdict, ok, summary):
    """The summary counts scatters, distinct ones, regimes and runs, and says what is not well."""
    assert (verdict.ok, verdict.summary()) == (ok, summary)


@pytest.mark.parametrize("status", ["differs", "not judged", "refused"])
def test_only_equal_is_ok(status):
    """A scatter that was not judged, or refused, is not ok."""
    assert not Verdict((ScatterVerdict((FIRST,), status, reason="why"),), MODULE_EQUAL).ok


def test_the_lines_name_places_judges_and_differences():
    """Differences come first, with the scatters on their path; equal ones tell their judges and who was left out."""
    assert Verdict((EQUAL, WRONG), MODULE_WRONG).lines() == [
        "module differs: result 0 at [1, 2]: expected 1.0, got 2.0 (4 elements differ, bit for bit)",
        "  on its path: scatter 1 at llama.py:88 in @main",
        "  on its path: scatter 3 at llama.py:90 in @main",
        "scatter 3 at llama.py:90 in @main: differs: in range: XLA says result 0 at [1]: ...",
        "scatter 1 at llama.py:88 in @main and 1 alike: equal in 2 regimes, judged by XLA, interpreter, reference",
        "  windows: 3 inside, 3 outside; never overhanging; one element written up to 1 times",
        "  left out: interpreter: reads unsigned indices as signed",
    ]


def test_the_lines_tell_why_nothing_was_run():
    """A module that was not run, a refused scatter and what was not exercised are told with their reasons."""
    refused = ScatterVerdict((FIRST,), "refused", reason="no lowering")
    assert Verdict((refused,), NOT_RUN).lines() == [
        "scatter 1 at llama.py:88 in @main: refused: no lowering",
        "module not run: dynamic shape tensor<?xf32>",
    ]
    assert Verdict((), None, second_version="not examined").lines() == [
        "second version: not examined: it was not run, and is not what the converter makes of the first",
    ]
    assert Verdict((), ModuleVerdict("equal", 2, not_exercised=("scatter 1: no result depends on it",))).lines() == [
        "module: equal in 2 runs, bit for bit",
        "  not exercised: scatter 1: no result depends on it",
    ]


def test_what_was_not_examined_is_not_ok():
    """A second version that was neither run nor rebuilt is not ok, nor is a module that had to be run and was not."""
    assert Verdict((EQUAL,), NOT_RUN, second_version="rebuilt").ok
    assert not Verdict((EQUAL,), NOT_RUN, second_version="not examined").ok
    assert not Verdict((EQUAL,), NOT_RUN, second_version="rebuilt", module_required=True).ok


def test_json_is_plain_data():
    """A verdict as JSON survives json.dumps and holds places, regimes, judges and the difference."""
    plain = json.loads(json.dumps(Verdict((EQUAL, WRONG), MODULE_WRONG, 1.5).to_json()))
    assert (plain["ok"], plain["summary"], plain["seconds"]) == (
        False,
        Verdict((EQUAL, WRONG), MODULE_WRONG).summary(),
        1.5,
    )
    assert plain["scatters"][0]["places"][1] == {"number": 2, "function": "main", "location": "llama.py:89"}
    assert plain["scatters"][0]["regimes"][0]["judges"] == ["XLA", "reference"]
    assert plain["module"]["difference"]["index"] == [1, 2]


def test_time_does_not_make_verdicts_differ():
    """Two verdicts that differ in their time are equal."""
    assert Verdict((EQUAL,), None, 1.0) == Verdict((EQUAL,), None, 2.0)
