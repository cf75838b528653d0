"""Each script's main path, small."""

import json

import pytest


@pytest.mark.sweep
def test_scatter_report_goes_on_after_a_bad_file(script):
    """The good module has its table, the bad one its reason; exit code 2."""
    done = script("scatter_report.py", "decode.mlir", "missing.mlir")
    assert done.returncode == 2
    assert done.stdout.startswith("decode.mlir   6 ops, 1 scatter   target stablehlo, oob xla   ")
    assert "line 4  insert_slice" in done.stdout
    assert "missing.mlir   error: missing.mlir: no such file" in done.stdout


def test_scatter_report_takes_folders_and_writes_a_page(script, tmp_path):
    """A tree is classified in processes of its own, and the page is written into a file."""
    (tmp_path / "zoo" / "deep").mkdir(parents=True)
    for name in ("a.mlir", "deep/b.mlir"):
        (tmp_path / "zoo" / name).write_bytes((tmp_path / "decode.mlir").read_bytes())
    done = script("scatter_report.py", "--jobs", "2", "--format", "html", "--output", "zoo.html", "zoo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "total: 2 modules, 12 ops, 2 scatters" in (tmp_path / "zoo.html").read_text()


def test_scatter_report_says_what_it_cannot_do(script, tmp_path):
    """An empty folder is a message and exit code 2."""
    (tmp_path / "empty").mkdir()
    done = script("scatter_report.py", "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("empty: is a directory without a module in it")


def test_scatter_report_needs_a_file(script):
    """Without one it says how it is called."""
    done = script("scatter_report.py")
    assert done.returncode != 0
    assert "name a module: scripts/scatter_report.py FILE..." in done.stdout + done.stderr


def test_convert_llm_writes_a_module_without_scatters(script, tmp_path):
    """The output is verified, and the headline says so."""
    done = script("convert_llm.py", "decode.mlir", "-o", "plain.mlir")
    assert done.returncode == 0, done.stderr
    assert "1 scatter -> 0" in done.stdout.splitlines()[0]
    assert "verified: 1 region derived" in done.stdout.splitlines()[0]
    assert "stablehlo.scatter" not in (tmp_path / "plain.mlir").read_text()


@pytest.mark.sweep
def test_convert_llm_says_what_it_cannot_read(script, tmp_path):
    """A missing file is a message and exit code 2, and nothing is written."""
    done = script("convert_llm.py", "missing.mlir", "-o", "plain.mlir")
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing.mlir: no such file" in done.stderr
    assert not (tmp_path / "plain.mlir").exists()


def test_difftest_finds_nothing_wrong(script, tmp_path):
    """Scatters are lowered and compared; the folder holds the state and the summary, and no failure."""
    done = script("difftest.py", "--runs", "2", "--seed", "2", "--jobs", "1", "--out", "fuzzed")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].split()[:3] == ["assign", "add", "assign_constant"]
    assert lines[-1].startswith("2 scatters, seeds 2 to 3, oob xla, ")
    assert lines[-1].endswith(" s: 0 failed")
    assert {path.name for path in (tmp_path / "fuzzed").iterdir()} == {"state.jsonl", "summary.json"}
    summary = json.loads((tmp_path / "fuzzed" / "summary.json").read_text())
    assert (summary["cases"], summary["failed"], sum(summary["cells"].values())) == (2, [], 2)
    assert "compared with:" in lines


@pytest.mark.sweep
def test_difftest_refuses_the_state_of_another_run(script, tmp_path):
    """The message names both runs and what to do; exit code 2, and the state is left as it was."""
    (tmp_path / "fuzzed").mkdir()
    state = tmp_path / "fuzzed" / "state.jsonl"
    state.write_text('{"first_seed": 5, "oob": "spec", "runs": 9}\n')
    done = script("difftest.py", "--runs", "1", "--seed", "2", "--out", "fuzzed", "--resume")
    assert (done.returncode, done.stdout) == (2, "")
    assert "fuzzed/state.jsonl: is the state of another run" in done.stderr
    assert "it has seed 5, oob spec; asked for seed 2, oob xla" in done.stderr
    done = script("difftest.py", "--runs", "1", "--seed", "5", "--oob", "spec", "--out", "fuzzed")
    assert done.returncode == 2
    assert "--resume goes on with it" in done.stderr
    assert state.read_text().count("\n") == 1


@pytest.mark.sweep
def test_bench_measures_conversion(script, tmp_path):
    """The figures are printed and, if asked for, written."""
    done = script("bench.py", "--only", "convert", "--layers", "1", "--rounds", "7", "--json", "bench.json")
    assert done.returncode == 0, done.stderr
    assert "conversion without verification" in done.stdout
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert figures["rounds"] == 7
    assert [row["ratio"] > 0 for row in figures["convert"]] == [True]
