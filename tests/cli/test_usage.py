"""Mistyped command lines, help, and what is printed where: a user is told what was meant, and nothing is lost."""

import json
import subprocess
import sys

import pytest

from hlo_lower.cli.parser import COMMANDS
from hlo_lower.cli.streams import progress

FUNCTION = "def step(x, i):\n    return x.at[i].set(1.0)\n"
SIZES = ("4", "0=", "a=4", "0=0")
SECONDS = "is not a number of seconds above 0"


@pytest.mark.parametrize(
    ("line", "usage", "last"),
    [
        # a mistyped word, told with what is near and the usage of the command that it was given to
        ("reprt x", "hlo-lower", "did you mean report?"),
        ("convert x -o y --tarqet iree", "hlo-lower convert", "did you mean --target?"),
        ("rules --formt=text", "hlo-lower rules", "did you mean --format?"),
        ("report x --format htlm", "hlo-lower report", "did you mean html?"),
        # a mistyped value: the last line says what to type
        ("report decode.mlir --target irre", "", "--target iree, or a file of your own: --target ./my_npu.toml"),
        ("verify decode.mlir decode.mlir --on lite", "", "--on litert"),
        ("tile decode.mlir --max-temp 12Q --plan", "", "write it as in 128MiB"),
        ("export none.py:f -o x.mlir", "", "check the path"),
    ],
)
def test_what_is_mistyped_is_told_with_what_is_near(refused, line, usage, last):
    """Commands, options, choices, targets, consumers, amounts and files."""
    told = refused(line, f"usage: {usage} [-h]" if usage else "")
    assert told.endswith(f"  next:    {last}\n")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("prove mask --timeout -1", f"'-1' {SECONDS}"),
        ("prove mask --shapes 0", "'0' is not a number from 1"),
        ("conformance --on iree --jobs 0", "'0' is not a number from 1"),
        ("conformance --on iree --limit soon", f"'soon' {SECONDS}"),
        ("report decode.mlir --jobs 0", "'0' is not a number from 1"),
        ("report decode.mlir --jobs x", "'x' is not a number from 1"),
        ("report decode.mlir --timeout 0", f"'0' {SECONDS}"),
        ("report decode.mlir --timeout nan", f"'nan' {SECONDS}"),
        *((f"tile plain.mlir -o out.mlir --op a:1 --sizes {n}", f"'{n}' is not DIM=SIZE, as in 0=128") for n in SIZES),
    ],
)
def test_numbers_that_say_nothing_are_refused(refused, line, wrong):
    """No time at all, none of the modules, and tiles of no size are mistakes."""
    assert refused(line).endswith(f"{wrong}\n")


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_help_is_a_command_and_an_option(command, name):
    """`help CMD` prints what `CMD --help` prints."""
    assert command("help", name) == command(name, "--help")
    assert command("help", name).code == 0


def test_help_and_version(command):
    """Help lists all commands and exit codes, and is shown, on standard error, of an empty line; -V is --version."""
    done = command("help")
    assert done == command("--help")
    assert (done.code, "exit codes:" in done.out) == (0, True)
    assert all(f"    {one.name} " in done.out for one in COMMANDS)
    empty = command()
    assert (empty.code, empty.out, empty.err) == (2, "", done.out)
    assert command("-V") == command("--version")
    assert command("-V").out.startswith("hlo-lower ")
    assert "did you mean" not in command("xyzzy").err


def test_one_rule_is_told_with_its_proof(command):
    """Its classes, form, place and the whole of its description."""
    done = command("rules mask")
    assert done.code == 0
    assert done.out.startswith("mask   lowering/scatter/numbered_rows.py:")
    for told in ("takes:   ", "form:    ", "builds:  ", "\nEqual: "):
        assert told in done.out


def test_lines_are_as_wide_as_the_page(folder, command, monkeypatch):
    """What is told of one rule, of a raised module and of a verdict is wrapped between words, code is not."""
    monkeypatch.setenv("COLUMNS", "60")
    for line in ("rules dynamic_update_slice", "raise decode.mlir -o y.mlir", "verify decode.mlir decode.mlir"):
        told = command(line).out.splitlines()
        assert told
        assert all(len(one) <= 60 for one in told if not one.startswith("    %")), line
    assert command("rules dynamic_update_slice").out.count("->") == 1


def test_a_module_is_not_written_over_itself(folder, command):
    """Unless that is asked for; a folder of modules likewise."""
    before = (folder / "decode.mlir").read_text()
    for files in ("decode.mlir -o ./decode.mlir", ". -o .", "plain.mlir decode.mlir -o ."):
        done = command(f"convert {files}")
        assert (done.code, "--in-place" in done.err) == (2, True)
    assert command("tile decode.mlir -o decode.mlir --max-temp 1MiB").code == 2
    assert command("raise decode.mlir -o decode.mlir").code == 2
    assert (folder / "decode.mlir").read_text() == before
    assert command("convert decode.mlir -o decode.mlir --in-place --no-verify").code == 0
    assert "stablehlo.scatter" not in (folder / "decode.mlir").read_text()


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("convert decode.mlir -o out.mlir --no-verify", "out.mlir"),
        ("convert decode.mlir plain.mlir -o out --no-verify", "out"),
        ("report decode.mlir -o out.json", "out.json"),
        ("verify plain.mlir plain.mlir", "plain.mlir"),
        ("raise decode.mlir -o raised.mlir", "raised.mlir"),
        ("export f.py:step --shapes f32[8] i32[] -o step.mlir", "step.mlir"),
    ],
)
def test_quiet_prints_errors_alone(folder, command, line, written):
    """What was written is written all the same."""
    (folder / "f.py").write_text(FUNCTION)
    loud, quiet = command(line), command(f"{line} --quiet")
    assert loud.out
    assert (quiet.code, quiet.out, quiet.err) == (loud.code, "", "")
    assert (folder / written).exists()
    assert "no such file" in command("convert missing.mlir -o out.mlir -q").err


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".json", "{"), (".md", "#"), (".html", "<!doctype html>"), (".sarif", "{"), (".txt", "decode")],
)
def test_the_format_of_a_report_follows_its_suffix(folder, command, suffix, start):
    """--format comes first; what was written is told."""
    assert command(f"report decode.mlir -o out{suffix}").out == f"wrote out{suffix}\n"
    assert (folder / f"out{suffix}").read_text().lower().startswith(start)
    if suffix != ".txt":
        command(f"convert decode.mlir -o o.mlir --no-verify --report of{suffix}")
        assert (folder / f"of{suffix}").read_text().lower().startswith(start)
    command(f"report decode.mlir -o out{suffix} --format text")
    assert (folder / f"out{suffix}").read_text().startswith("decode.mlir")


def test_named_ops_are_told_in_the_format_of_the_suffix(folder, command, refused):
    """As JSON, as a page or as text; another format is an error, and nothing is written."""
    assert command("report --named plain.mlir -o named.json").out == "wrote named.json\n"
    assert json.loads((folder / "named.json").read_text())[0]["file"] == "plain.mlir"
    assert command("report --named plain.mlir -o named.html").out == "wrote named.html\n"
    assert (folder / "named.html").read_text().startswith("<!DOCTYPE html>")
    refused("report --named plain.mlir -o named.sarif")


def test_a_function_without_an_entry_is_exported_by_its_shapes(folder, command):
    """Element types stand before the brackets; without --shapes the message names both ways."""
    (folder / "f.py").write_text(FUNCTION)
    assert command("export f.py:step --shapes f32[n] i32[] -o step.mlir").code == 0
    text = (folder / "step.mlir").read_text()
    assert "tensor<?xf32>" in text
    assert "tensor<i32>" in text
    missing = command("export f.py:step -o step.mlir").err
    assert "--shapes" in missing
    assert "EXPORTS" in missing


def test_colors_are_forced_and_forbidden_by_the_environment(command, monkeypatch):
    """FORCE_COLOR=1 into a pipe; NO_COLOR beats it, and 0 and nothing are none."""
    assert "\x1b[" not in command("rules").out
    for name, value, colored in (("FORCE", "0", False), ("FORCE", "", False), ("FORCE", "1", True), ("NO", "1", False)):
        monkeypatch.setenv(f"{name}_COLOR", value)
        assert ("\x1b[" in command("rules").out) == colored


def test_a_full_disk_is_no_mistake_of_the_tool():
    """What cannot be printed is an error with its reason."""
    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "hlo_lower", "rules"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0] == "standard output: cannot be written: No space left on device"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_completes_commands_and_options(command, shell):
    """The script has every command, and the options of each."""
    pytest.importorskip("shtab")
    script = command("completion", shell).out
    assert all(one.name in script for one in COMMANDS)
    assert "demote-i64" in script


def test_progress_is_told_on_a_terminal_alone(capfd):
    """Elsewhere nothing is printed."""
    with progress() as tell:
        tell("regions", 1, 2)
    assert capfd.readouterr() == ("", "")
