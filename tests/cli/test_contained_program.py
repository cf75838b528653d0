"""The program survives what its parser does not: a message, exit code 2, and no output."""

import os
import subprocess
import sys

import pytest

from hlo_lower.cli import main

LOCATION_OF_BYTES = r"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32> loc("\FF":1:1)
}
"""
DEEP = "module { " * 50_000 + "} " * 50_000


def program(line, **how):
    """Run the program as a process of its own."""
    command = [sys.executable, "-m", "hlo_lower", *line.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)


@pytest.mark.parametrize(("text", "name"), [(LOCATION_OF_BYTES, "SIGABRT"), (DEEP, "SIGSEGV")], ids=["abort", "deep"])
def test_a_module_that_kills_the_parser(folder, text, name):
    """The module and the signal are named; neither the output nor a temporary file appears; an old output stays."""
    (folder / "bad.mlir").write_text(text)
    (folder / "out.mlir").write_text("kept")
    before = sorted(os.listdir(folder))
    done = program("convert bad.mlir -o out.mlir --report r.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"bad.mlir: the process that read it died: signal {name}\n" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("  next:    ")
    assert "Traceback" not in done.stderr
    assert (before, (folder / "out.mlir").read_text()) == (sorted(os.listdir(folder)), "kept")


def test_standard_input_that_kills_the_parser(folder):
    """From a pipe it is named "-"; nothing comes out of the other one."""
    done = program("report -", input=LOCATION_OF_BYTES)
    assert (done.returncode, done.stdout) == (2, "")
    assert "-: the process that read it died: signal SIGABRT" in done.stderr


def test_one_of_many_costs_itself(folder):
    """It is a row with its reason in a report; of a conversion the other module is written, and that one is missing."""
    (folder / "bad.mlir").write_text(LOCATION_OF_BYTES)
    done = program("report --jobs 2 bad.mlir decode.mlir")
    assert done.returncode == 2
    assert "bad.mlir: the process that worked on it died: signal SIGABRT" in done.stdout
    assert "1 scatter" in done.stdout
    done = program("convert --jobs 2 --no-verify bad.mlir decode.mlir -o out")
    assert done.returncode == 2
    assert done.stdout.endswith("1 converted\n1 could not be read or converted\n")
    assert [path.name for path in (folder / "out").glob("*.mlir")] == ["decode.mlir"]


def test_help_and_usage_need_no_child(monkeypatch):
    """What is answered by the parser is answered at once."""
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    monkeypatch.setattr(sys, "argv", ["hlo-lower", "--version"])
    assert main() == 0
