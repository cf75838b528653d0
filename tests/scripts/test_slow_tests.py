"""Which tests the default run leaves to `pytest -m slow`."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from slow_tests import slow_tests, times_of

ROOT = Path(__file__).parents[2]
TIMES = {"t/test_a.py::test_one": 3.0, "t/test_a.py::test_cases[x]": 2.0, "t/test_a.py::test_cases[y]": 1.0}
SHARED = {("a.py", 1), ("a.py", 2)}


@pytest.mark.parametrize(
    ("own", "case", "alone", "left"),
    [
        ({}, 0.5, 0.5, ["t/test_a.py::test_cases[x]", "t/test_a.py::test_one"]),  # of the cases one stays
        ({}, 0.5, 3.5, ["t/test_a.py::test_cases[x]"]),
        ({}, 2.5, 2.5, ["t/test_a.py::test_one"]),
        ({}, 3.5, 3.5, []),
        ({"t/test_a.py::test_one": 2}, 0.5, 0.5, ["t/test_a.py::test_cases[x]", "t/test_a.py::test_one"]),
        ({"t/test_a.py::test_one": 3}, 0.5, 0.5, ["t/test_a.py::test_cases[x]"]),  # a line of its own for each second
    ],
)
def test_what_takes_long_and_runs_what_others_run_is_slow(own, case, alone, left):
    lines = {test: SHARED | {(test, k) for k in range(own.get(test, 0))} for test in TIMES}
    assert slow_tests(TIMES, lines, case, alone) == left


def test_lines_that_two_slow_tests_run_alone_keep_one_of_them():
    times = {f"t/test_a.py::test_{k}": 2.0 for k in "ab"}
    lines = {test: {("a.py", k) for k in range(2)} for test in times}
    assert slow_tests(times, lines, 1, 1) == ["t/test_a.py::test_a"]


def test_traps_stay():
    assert slow_tests({"t/test_traps.py::test_trap_1": 9.0}, {"t/test_traps.py::test_trap_1": SHARED}, 1, 1) == []


def test_times_are_read_by_name(tmp_path):
    report = tmp_path / "times.xml"
    one = '<testcase classname="tests.pull.test_laws" name="test_it[a-1]" time="0.25"/>'
    report.write_text(f"<testsuites><testsuite>{one}</testsuite></testsuites>")
    assert times_of(report) == {"tests/pull/test_laws.py::test_it[a-1]": 0.25}


def test_each_slow_test_is_one():
    """Its function is where the list says: a name that is no test's any more would be run by default."""
    names = (ROOT / "tests" / "slow.txt").read_text().splitlines()
    assert names == sorted(set(names))
    for file, function in {(file, rest.partition("[")[0]) for file, rest in (name.split("::", 1) for name in names)}:
        assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.MULTILINE), (file, function)
