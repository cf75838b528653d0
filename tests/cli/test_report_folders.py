"""`hlo-lower report` over folders."""

import json
import os
import subprocess
import sys

import pytest

from hlo_lower.api.many.files import SNIFFED, SUFFIXES
from hlo_lower.report.overview import FEW


@pytest.fixture
def zoo(folder):
    """A tree of ten modules in two folders."""
    for group in ("a", "b"):
        (folder / "zoo" / group).mkdir(parents=True)
        for number in range(5):
            source = folder / ("decode.mlir" if number % 2 else "plain.mlir")
            (folder / "zoo" / group / f"m{number}.mlir").write_text(source.read_text())
    return folder / "zoo"


def test_a_folder_is_reported_by_module_and_folder(zoo, command):
    """One line for each of many modules, a total for each folder and for all."""
    result = command("report zoo --jobs 1")
    assert (result.code, result.err) == (0, "")
    assert "  m1.mlir    6         1  insert_slice: 1 guarded_dynamic_update_slice" in result.out.splitlines()
    assert "a   5 modules, 2 scatters" in result.out.splitlines()
    assert "total: 10 modules, 48 ops, 4 scatters" in result.out
    assert "line 4" not in result.out
    assert command("report zoo --jobs 1 --all").out.count("line 4") == 4


def test_files_and_folders_are_mixed(zoo, command):
    """Each module once, named from what was given; the same for any number of jobs."""
    results = [command(f"report plain.mlir zoo/ zoo/a --format json --jobs {n}") for n in (1, 2)]
    assert results[0] == results[1]
    data = json.loads(results[0].out)
    assert [group["group"] for group in data["groups"]] == [".", "zoo/a", "zoo/b"]
    assert [module["file"] for module in data["modules"][:2]] == ["plain.mlir", "zoo/a/m0.mlir"]
    assert data["totals"]["modules"] == 11


def test_a_bad_module_does_not_stop_the_rest(zoo, command):
    """It is a line with its reason; the report is complete, the exit code is 2, and --fail-on is still told."""
    (zoo / "a" / "bad.mlir").write_text("this is a recipe for bread\n")
    result = command("report zoo --fail-on insert_slice --jobs 1")
    assert result.code == 2
    assert "error: 1:1: " in result.out
    assert "total: 11 modules (1 failed)" in result.out
    assert result.err.splitlines() == [
        "1 of 11 modules could not be read; the report says why",
        "4 scatters of kind insert_slice (--fail-on insert_slice)",
    ]


def test_fail_on_holds_over_a_tree(zoo, command):
    """One scatter of the kind anywhere gives 3, after the report."""
    result = command("report zoo --fail-on insert_slice --jobs 1")
    assert (result.code, result.err) == (3, "4 scatters of kind insert_slice (--fail-on insert_slice)\n")
    assert "total:" in result.out
    assert command("report zoo --fail-on general --jobs 1").code == 0


def test_the_report_of_a_tree_is_written_whole(zoo, folder, command):
    """A page goes into a file, which is told."""
    result = command("report zoo --format html -o zoo.html --jobs 1")
    assert (result.code, result.out, result.err) == (0, "wrote zoo.html\n", "")
    page = (folder / "zoo.html").read_text()
    assert page.endswith("</html>\n")
    held = json.loads(page.split('id="report">')[1].split("</script>")[0])
    assert sum(len(module["records"]) for module in held["modules"]) == 4


def test_an_empty_folder_is_an_error(folder, command, refused):
    """Alone it is the message; among others it is a row."""
    (folder / "empty").mkdir()
    (folder / "empty" / "notes.txt").write_text("x")
    refused("report empty", "empty: is a directory without a module in it\n  facts:   modules end in .mlir, ")
    both = command("report empty decode.mlir --jobs 1")
    assert both.code == 2
    assert "empty   error: empty: is a directory without a module in it" in both.out
    assert "total: 2 modules (1 failed)" in both.out


@pytest.mark.sweep
def test_a_time_limit_ends_what_hangs(folder, command):
    """A pipe that nobody writes to would be read for ever; with --timeout it is an error."""
    os.mkfifo(folder / "pipe.mlir")
    result = command("report pipe.mlir decode.mlir --timeout 3 --jobs 1")
    assert result.code == 2
    assert "pipe.mlir   error: pipe.mlir: was not done after 3 s, the time for a module" in result.out
    assert "line 4" in result.out


def test_standard_input_among_files(zoo, folder):
    """`-` is a module in its place."""
    argv = [sys.executable, "-m", "hlo_lower", "report", "-", "zoo", "--format", "json", "--jobs", "1"]
    done = subprocess.run(argv, input=(folder / "decode.mlir").read_bytes(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    first = json.loads(done.stdout)["modules"][0]
    assert (first["file"], first["group"], len(first["records"])) == ("-", ".", 1)


def test_help_says_what_a_folder_gives(command):
    """The suffixes of modules, and when they are shown in full."""
    shown = " ".join(command("report --help").out.split())
    for word in (*SUFFIXES, *SNIFFED, f"Up to {FEW} modules"):
        assert word in shown
