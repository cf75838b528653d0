"""Each script's main path, small."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_chart import memory_chart

ROOT = Path(__file__).parents[2]


def test_scatter_report_goes_on_after_a_bad_file(script, tmp_path):
    """Modules and trees are in the page that is written; a bad file is exit code 2."""
    (tmp_path / "zoo" / "deep").mkdir(parents=True)
    for name in ("a.mlir", "deep/b.mlir"):
        (tmp_path / "zoo" / name).write_bytes((tmp_path / "decode.mlir").read_bytes())
    done = script("scatter_report.py", "--jobs", "1", "--format", "html", "--output", "zoo.html", "zoo", "missing.mlir")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    page = (tmp_path / "zoo.html").read_text()
    assert "total: 3 modules (1 failed), 12 ops, 2 scatters" in page
    assert "missing.mlir: no such file" in page


@pytest.mark.sweep
def test_scatter_report_says_what_it_cannot_do(script, tmp_path):
    """An empty folder is a message and exit code 2; without a file it says how it is called; a table fits the page."""
    (tmp_path / "empty").mkdir()
    done = script("scatter_report.py", "empty")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("empty: is a directory without a module in it")
    done = script("scatter_report.py")
    assert done.returncode != 0
    assert "name a module: scripts/scatter_report.py FILE..." in done.stdout + done.stderr
    done = script("scatter_report.py", "decode.mlir", "missing.mlir")
    assert done.stdout.startswith("decode.mlir   6 ops, 1 scatter   target stablehlo, oob xla   ")
    assert "line 4  insert_slice" in done.stdout


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


def test_what_changed_of_frozen_texts_is_named(script, tmp_path):
    """A module that is another one, one that is new, one that is gone, each by its name; a refusal is a text, too."""
    refused = (ROOT / "tests" / "golden" / "refused_quantized.mlir").read_text()
    for name in ("refused", "kept"):
        (tmp_path / f"{name}.mlir").write_text(refused)
    options = ("--corpus", ".", "--only", "raised,lowered", "--jobs", "1")
    first = script("frozen_texts.py", *options, "--write", "texts.json")
    assert (first.returncode, first.stdout) == (0, "21 texts\n"), first.stderr
    texts = json.loads((tmp_path / "texts.json").read_text())
    assert len({told for name, told in texts.items() if name.startswith("lowered refused")}) == 1
    decode = tmp_path / "decode.mlir"
    (tmp_path / "new.mlir").write_text(decode.read_text())
    decode.write_text(decode.read_text().replace("f32", "f16"))
    (tmp_path / "refused.mlir").unlink()
    second = script("frozen_texts.py", *options, "--compare", "texts.json", "--keep", "changed")
    assert second.returncode == 1
    told = ["changed: lowered decode iree", "new: lowered new iree", "gone: lowered refused iree"]
    assert set(told) <= set(second.stdout.splitlines())
    assert "kept" not in second.stdout
    assert "f16" in (tmp_path / "changed" / "lowered-decode-iree.mlir").read_text()


def test_the_memory_chart_is_that_of_its_figures():
    """The document's is what its JSON gives; less is a shorter bar, a time that is not there is told."""
    figures = ROOT / "docs" / "figures"
    entries = json.loads((figures / "tiling_workloads.json").read_text())["workloads"]
    assert memory_chart(entries) == (figures / "tiling_workloads.svg").read_text()
    sizes = {"workload": "a_block", "before": 64 << 20, "after": 4 << 20}
    timed, untimed = (memory_chart([{**sizes, **more}]) for more in ({"time_ratio": 0.5}, {}))
    assert ">4.0 MiB, 16x less<" in timed
    assert (">0.50x<" in timed, "not measured" in timed, "not measured" in untimed) == (True, False, True)
    before, after = (float(width) for width in re.findall(r'<rect x="170"[^>]* width="([\d.]+)"', timed))
    assert before > after


@pytest.mark.sweep
def test_bench_many_converts_twice_and_bench_sharded_agrees(script, tmp_path):
    """The second run reads all verdicts; a train step has one loss on one device and on two."""
    (tmp_path / "zoo").mkdir()
    for name in ("a.mlir", "b.mlir"):
        (tmp_path / "zoo" / name).write_bytes((tmp_path / "decode.mlir").read_bytes())
    done = script("bench_many.py", "--target", "xla", "zoo")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["run 1", "run 2"], done.stderr
    done = script("bench_sharded.py", "--hidden", "8", "--vocab", "16", "--rounds", "1")
    assert (done.returncode, done.stdout.count("hl.jit, target xla")) == (0, 2), done.stderr
