"""Long runs: processes that die, state that is resumed, failures that are written down, and the report."""

import json
import os
import time

import numpy as np
import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.testing import case_of_seed, report_lines
from hlo_lower.testing.fuzz import campaign
from hlo_lower.testing.fuzz.campaign import STATE, SUMMARY, Campaign, kind_of, write_finding
from hlo_lower.testing.fuzz.campaign_worker import built_in, judged_in_processes
from hlo_lower.testing.fuzz.case_outcome import CaseOutcome, Tally, from_json, to_json
from hlo_lower.testing.fuzz.judging import Judged


def served(cases):
    """Dies on seed 3, hangs on seed 5 and finds the others right."""
    if any(case.name == "seed 3" for case in cases):
        os._exit(11)
    if any(case.name == "seed 5" for case in cases):
        time.sleep(60)
    return Judged([CaseOutcome(case.name, "Tile", "add", judges=("reference",)) for case in cases])


@pytest.mark.sweep
def test_a_process_that_dies_or_hangs_is_a_finding():
    """The batch is halved until the case that takes the process down stands alone; the others are judged."""
    cases = [case_of_seed(seed) for seed in range(2, 6)]
    found = judged_in_processes(served, [cases[:2], cases[2:]], jobs=2, time_limit=1.0)
    outcomes = [o for _, judged in found for o in judged.outcomes]
    assert {o.name: o.failure for o in outcomes} == {
        "seed 2": "",
        "seed 3": "the process that worked on it died: exit code 11",
        "seed 4": "",
        "seed 5": "was not done after 1 s, the time for a module",
    }


@pytest.fixture
def fake(monkeypatch):
    """A campaign that lowers nothing and in which seed 7 fails, and the names of the cases that it judges."""
    seen = []

    def found_alike(call, batches, **how):
        for batch in batches:
            seen.extend(case.name for case in batch)
            told = ("Tile", "add", "window", ("reference",))
            failures = {"seed 7": "differs"}
            yield batch, Judged([CaseOutcome(c.name, *told, failure=failures.get(c.name, "")) for c in batch])

    monkeypatch.setattr(campaign, "judged_in_processes", found_alike)
    monkeypatch.setattr(campaign, "shrink", lambda case, choices, fails, most=0: (case, choices))
    return seen


def quiet(tmp_path, runs):
    """A campaign from seed 20 on that prints nothing."""
    return Campaign(20, runs, "xla", 1, tmp_path, show=lambda _: None)


def test_a_run_that_was_cut_off_is_resumed(fake, tmp_path):
    """The seeds that are done are not judged again, a line that was cut off is, and the figures add up."""
    quiet(tmp_path, 30).run()
    assert len(fake) == 30
    lines = (tmp_path / STATE).read_text().splitlines()
    (tmp_path / STATE).write_text("\n".join([*lines[:2], lines[2][:40]]))
    fake.clear()
    again, told = quiet(tmp_path, 30), []
    again.run(resume=True, tell=lambda *given: told.append(given))
    assert fake == [f"seed {n}" for n in range(32, 50)]
    assert (again.tally.count("cases"), told[-1][0], told[-1][4]) == (30, 30, 18)
    assert json.loads((tmp_path / SUMMARY).read_text())["cells"]["Tile/add"] == 30
    fake.clear()
    quiet(tmp_path, 40).run(resume=True)
    assert fake == [f"seed {n}" for n in range(50, 60)]


def test_the_state_of_another_run_is_refused(fake, tmp_path):
    """Another seed or policy cannot be resumed, and a run that was not finished is not thrown away."""
    Campaign(20, 30, "xla", 1, tmp_path).run()
    with pytest.raises(InputError, match="is the state of another run") as caught:
        Campaign(20, 30, "spec", 1, tmp_path).run(resume=True)
    assert "it has seed 20, oob xla; asked for seed 20, oob spec" in str(caught.value)
    Campaign(1, 5, "xla", 1, tmp_path).run()  # the earlier one was finished
    lines = (tmp_path / STATE).read_text().splitlines()
    (tmp_path / STATE).write_text(lines[0] + "\n")
    with pytest.raises(InputError, match=r"a run that was not finished \(0 cases are done\)"):
        Campaign(1, 5, "xla", 1, tmp_path).run()


def test_a_failure_is_written_down(fake, tmp_path):
    """The module, its lowered form, the arguments, the message and the command stand in files, and it is counted."""
    shown = []
    run = Campaign(6, 3, "spec", 1, tmp_path, show=shown.append)
    run.run()
    kinds = (".mlir", ".lowered.mlir", ".npz", ".txt")
    assert {p.name for p in tmp_path.iterdir()} >= {f"seed7{small}{kind}" for small in ("", ".small") for kind in kinds}
    assert (tmp_path / "seed7.mlir").read_text().startswith("// oob=spec: differs\nfunc.func public @main(")
    assert "stablehlo.scatter" not in (tmp_path / "seed7.lowered.mlir").read_text()
    assert "repeat:  python scripts/difftest.py --seed 7 --runs 1 --oob spec" in (tmp_path / "seed7.txt").read_text()
    assert "set3_argument0" in np.load(tmp_path / "seed7.npz").files
    assert shown[0].startswith("seed 7: differs\nlooking for a smaller module")
    assert shown[1].startswith("seed 7: the smallest that was found to fail alike:\nfunc.func public @main(")
    lines = list(report_lines(run.summary()))
    assert "FAILED seed 7: differs" in lines
    assert lines[-1].startswith("3 scatters, seeds 6 to 8, oob spec, ")
    assert lines[-1].endswith(": 1 failed")


def test_a_case_that_does_not_lower_is_written_down_too(tmp_path):
    """The lowered file then says why; where lowering takes the process down it is not tried again."""

    def lower(text):
        raise KeyError("no rule")

    case = case_of_seed(0)
    write_finding(tmp_path, "a", case, "xla", "not lowered: KeyError", "repeat it", lower)
    assert (tmp_path / "a.lowered.mlir").read_text() == "// not lowered: KeyError: 'no rule'\n"
    write_finding(tmp_path, "b", case, "xla", "the process that worked on it died", "repeat it", None)
    assert (tmp_path / "b.lowered.mlir").read_text() == ""
    write_finding(tmp_path, "c", case, "xla", "differs", "repeat it", built_in("xla"))
    assert "func.func public @main" in (tmp_path / "c.lowered.mlir").read_text()
    lost = ("the process that worked on it died: exit code 1", "was not done after 6 s")
    kinds = [kind_of(f) for f in ("not lowered: x", *lost, "argument set")]
    assert kinds == ["not lowered", "the process that worked on it died", "was not done", "differs"]


def test_the_report_counts_everything():
    """Each count is in the table or in a list, with its share; an outcome survives its line."""
    tally, both = Tally(), ("reference", "XLA")
    one = CaseOutcome("seed 1", "Tile", "add", "window", both, ran_on="XLA", bites=("drop",), second_look=True)
    other = CaseOutcome("seed 2", "Rows", "mixed", "rows", ("reference",), "captures", "interpreter", "XLA: no map")
    assert [from_json(json.loads(json.dumps(to_json(outcome)))) for outcome in (one, other)] == [one, other]
    tally.extend([one, other], {"lowering": 1.5})
    run = Campaign(1, 2, "xla", 2, None, tally=tally, wall=3.0)
    lines = list(report_lines(run.summary()))
    assert lines[0].split()[:3] == ["assign", "add", "assign_constant"]
    assert next(line for line in lines if line.startswith("Tile")).split()[:3] == ["Tile", "0", "1"]
    assert next(line for line in lines if line.startswith("Rows")).split()[-1] == "1"
    assert any(line.startswith("- Point/no_op, Tile/no_op") for line in lines)
    for told in ("reference and XLA", "reference", "captures", "interpreter", "XLA: no map", "drop", "any", "window"):
        assert f"        1   50.0 %  {told}" in lines
    assert lines[-1] == "2 scatters, seeds 1 to 2, oob xla, 3 s: 0 failed"
