"""`scripts/consumer_matrix.py`: the journal that it resumes from, the table, and each error."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from untyped_mlir import module

from hlo_lower.base.errors import InputError
from hlo_lower.consumers import COREML, IREE, ConsumerOutcome

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from matrix import made_by
from matrix.entry import Entry
from matrix.journal import Journal
from matrix.table import table_json, table_lines

needs_iree = pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")
SCRIPT = Path(__file__).parents[2] / "scripts" / "consumer_matrix.py"
SETTINGS = {"consumer": "iree", "seed": 0}
ADD = module("%a: 3xf32", "%r = add %a, %a")
CUSTOM = module("%a: 3xf32", "%r = custom_call @lost(%a) -> 3xf32")


def outcome(result, message="", cause="", runs=0):
    """What became of a version."""
    return ConsumerOutcome("iree", result, message, cause, "compile", runs)


RIGHT = outcome("right", runs=3)
ENTRIES = [
    Entry("a/right", "1", 1, native=RIGHT, converted=RIGHT),
    Entry("a/gained", "2", 2, native=outcome("crashed", "SIGABRT", runs=2), converted=RIGHT),
    Entry("a/lost", "3", 1, native=RIGHT, converted=outcome("refused", "a | b", "stablehlo.sort")),
    Entry("b/left", "4", 1, native=outcome("refused", "x", "iree_linalg_ext.scatter"),
          converted=outcome("refused", "not lowered", "stablehlo.scatter"), scatters_left=1),
    Entry("b/dynamic", "5", 1, not_judged="dynamic shape"),
]  # fmt: skip


def test_the_table_counts_and_lists():
    """Results side by side, what was gained and lost, refusals by the op that is named, and runs that are others."""
    notes = (
        "run 1 (in range): arguments beyond the narrower integers become their ends",
        "run 3 (mixed): left out, because its values do not fit the narrower integers",
        "result 0: rounding alone moves 40% of it by more than half of itself",
    )
    noted = [replace(ENTRIES[0], notes=notes), replace(ENTRIES[1], notes=notes[:1]), *ENTRIES[2:]]
    lines = table_lines(IREE, "3.13.0", noted, left=7)
    for line in (
        "IREE (llvm-cpu, local-task) 3.13.0, 5 modules, 4 judged",
        "| right | 2 | 2 |",
        "| refused | 1 | 2 |",
        "| crashed | 1 | 0 |",
        "| of the failures, with positions out of bounds only | 1 | 0 |",
        "Gained: 1. Lost: 1. Failures left that are due to a scatter: 1.",
        "- a/lost: refused: a \\| b",
        "| stablehlo.sort | 0 | 1 | a/lost |",
        "| iree_linalg_ext.scatter | 1 | 0 | b/left |",
        "- 1: dynamic shape (b/dynamic)",
        "7 modules are still to be done.",
    ):
        assert line in lines
    assert any(line.startswith("- 1 runs left out") and line.endswith("in 1 modules (a/right)") for line in lines)
    assert any(line.startswith("- 2 runs on the ends") and "a/right, a/gained" in line for line in lines)
    assert any(line.startswith("- 1 notes of results that rounding alone") for line in lines)
    told = table_json(IREE, SETTINGS, ENTRIES, 7)
    assert (told["lost"], told["gained"], told["due_to_scatter"]) == (["a/lost"], ["a/gained"], ["b/left"])
    assert told["native"] == {"right": 2, "crashed": 1, "refused": 1}


@pytest.mark.parametrize(
    ("cause", "left", "due"),
    [
        ("iree_linalg_ext.scatter", 0, True),
        ("stablehlo.select_and_scatter", 0, False),
        ("stablehlo.sort", 1, False),
        ("", 1, True),
        ("", 0, False),
    ],
)
def test_a_failure_is_due_to_a_scatter_where_it_is_named_or_nothing_is(cause, left, due):
    """Another op that is named is the cause, though a scatter was kept; select_and_scatter is another op."""
    entry = Entry("m", "1", 1, native=RIGHT, converted=outcome("refused", "no", cause), scatters_left=left)
    assert entry.is_due_to_scatter == due


def test_a_journal_is_read_back(tmp_path):
    """Entries come back, a line that was cut short does not; one of other settings is refused unless begun anew."""
    path = tmp_path / "m.jsonl"
    journal = Journal(path, SETTINGS)
    for entry in ENTRIES:
        journal.add(entry)
    text = path.read_text()
    path.write_text(text[: len(text) - 30])
    again = Journal(path, SETTINGS)
    assert list(again.entries.values()) == ENTRIES[:-1]
    again.add(replace(ENTRIES[-1], module="new"))
    assert list(Journal(path, SETTINGS).entries) == [e.module for e in ENTRIES[:-1]] + ["new"]
    with pytest.raises(InputError) as caught:
        Journal(path, {**SETTINGS, "seed": 1})
    assert "seed was 0, is 1" in str(caught.value)
    assert Journal(path, {**SETTINGS, "seed": 1}, fresh=True).entries == {}
    path.write_text("no journal\n")
    with pytest.raises(InputError, match="its first line holds no settings"):
        Journal(path, SETTINGS)


def test_what_made_an_entry_is_told_by_content(tmp_path, monkeypatch):
    """Another line in a target's file, or in any file of the package, is another target or another tool."""
    file, package = tmp_path / "t.toml", tmp_path / "package"
    (package / "verify").mkdir(parents=True)
    monkeypatch.setattr(made_by, "PACKAGE", package)

    def made(target="a", lowering="1", verify="1"):
        file.write_text(f"description = '{target}'")
        (package / "lowering.py").write_text(lowering)
        (package / "verify" / "a.py").write_text(verify)
        return [made_by.target_digest(str(file)), made_by.tool(), made_by.judge()]

    first = made()
    changed = [[one == other for one, other in zip(first, made(*what), strict=True)] for what in ("b", "a2", "a12")]
    assert changed == [[False, True, True], [True, False, True], [True, False, False]]
    assert made_by.target_digest("iree") == ""


@pytest.fixture
def matrix(tmp_path):
    """Run the script over a folder of two modules."""
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "add.mlir").write_text(ADD)
    (tmp_path / "zoo" / "custom.mlir").write_text(CUSTOM)

    def run(*argv):
        command = [sys.executable, str(SCRIPT), *argv]
        return subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)

    return run


@pytest.mark.sweep
@needs_iree
def test_what_another_tool_made_is_never_reported(matrix, tmp_path):
    """Its modules are done again; with --changed they are converted, and judged where the text is another."""
    matrix("--out", "m.json", "--only", "add", "zoo")
    journal = tmp_path / "m.jsonl"
    head, line = journal.read_text().splitlines()
    stale = {**json.loads(line), "tool": "another", "native": {**json.loads(line)["native"], "result": "crashed"}}
    journal.write_text(f"{head}\n{json.dumps(stale)}\n")
    changed = matrix("--out", "m.json", "--only", "add", "--changed", "zoo")
    assert "| crashed | 1 | 0 |" in changed.stdout  # judged by the same judge: what is not converted anew is kept
    journal.write_text(f"{head}\n{json.dumps(stale)}\n")
    again = matrix("--out", "m.json", "--only", "add", "zoo")
    assert "1 of 1" in again.stderr
    assert "| right | 1 | 1 |" in again.stdout
    settings = json.loads(head)["settings"]
    journal.write_text(json.dumps({"settings": {**settings, "judge": "another"}}, sort_keys=True) + "\n")
    refused = matrix("--out", "m.json", "--only", "add", "zoo")
    assert refused.returncode == 2
    assert "judge was another" in refused.stderr


@pytest.mark.sweep
@needs_iree
def test_a_run_goes_on_where_it_was_stopped(matrix, tmp_path):
    """What is done is not done again; a module that changed is; the table and the JSON are of all."""
    first = matrix("--out", "m.json", "--only", "add", "zoo")
    assert (first.returncode, "1 of 1" in first.stderr) == (0, True), first.stderr
    assert "| right | 1 | 1 |" in first.stdout
    second = matrix("--out", "m.json", "zoo")
    assert "1 of 1" in second.stderr
    assert "custom: not judged" in second.stderr  # XLA does not know it either
    told = json.loads((tmp_path / "m.json").read_text())
    assert (told["modules"], told["judged"], told["native"]) == (2, 1, {"right": 1})
    assert (tmp_path / "m.md").read_text() == second.stdout
    third = matrix("--out", "m.json", "zoo")
    assert "of 1" not in third.stderr
    assert third.stdout == second.stdout
    (tmp_path / "zoo" / "add.mlir").write_text(ADD.replace("add", "multiply"))
    assert "add: right -> right" in matrix("--out", "m.json", "zoo").stderr


@needs_iree
@pytest.mark.parametrize(
    ("line", "message"),
    [  # each starts the script anew: one of them in the default run
        ("--option float_mode zoo", "--option float_mode: not KEY=VALUE"),
        *(pytest.param(*case, marks=pytest.mark.sweep) for case in (
            ("", "name a folder of modules"),
            ("--on coreml zoo", "pip install stablehlo-coreml=="),
            ("--only nothing zoo", "no module fits --only and --skip"),
            ("--target no_such zoo", "no target named 'no_such'"),
        )),
    ],
)  # fmt: skip
def test_a_mistake_is_a_message(matrix, tmp_path, line, message):
    """What cannot be done is said before anything is, without a traceback, and nothing is written."""
    if "coreml" in line and COREML.version():
        pytest.skip("the extra coreml is installed")
    done = matrix(*line.split())
    assert done.returncode in (1, 2)
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.json*"))
