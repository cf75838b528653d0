"""Mistyped command lines, help, and what is printed where: a user is told what was meant, and nothing is lost."""

import json
import subprocess
import sys

import pytest

from hlo_lower.cli.parser import COMMANDS
from hlo_lower.cli.streams import progress

FUNCTION = "def step(x, i):\n    return x.at[i].set(1.0)\n"


@pytest.mark.parametrize(
    ("line", "usage", "meant"),
    [
        (["reprt", "x"], "hlo-lower", "report"),
        (["convert", "x", "-o", "y", "--tarqet", "iree"], "hlo-lower convert", "--target"),
        (["rules", "--formt=text"], "hlo-lower rules", "--format"),
        (["report", "x", "--format", "htlm"], "hlo-lower report", "html"),
    ],
)
def test_a_mistyped_word_is_told_with_what_is_near(command, line, usage, meant):
    """The usage is that of the command that it was given to."""
    done = command(*line)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"usage: {usage} [-h]")
    assert done.err.endswith(f"  next:    did you mean {meant}?\n")


def test_what_is_near_nothing_gets_no_suggestion(command):
    """Only the choices are listed."""
    assert "did you mean" not in command("xyzzy").err


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_help_is_a_command_and_an_option(command, name):
    """`help CMD` prints what `CMD --help` prints."""
    assert command("help", name) == command(name, "--help")


def test_help_without_a_command_lists_all(command):
    """Each command stands in it with a line."""
    done = command("help")
    assert done == command("--help")
    assert all(f"    {one.name} " in done.out for one in COMMANDS)


def test_the_version_has_a_short_option(command):
    """-V is --version."""
    assert command("-V") == command("--version")


def test_one_rule_is_told_with_its_proof(command):
    """Its classes, form, place and the whole of its description."""
    done = command("rules", "mask")
    assert done.code == 0
    assert done.out.startswith("mask   lowering/scatter/numbered_rows.py:")
    for told in ("takes:   ", "form:    ", "builds:  ", "\nEqual: "):
        assert told in done.out
    missing = command("rules", "maks")
    assert (missing.code, missing.out) == (2, "")
    assert "nearest: mask" in missing.err


@pytest.mark.parametrize(
    ("line", "next_step"),
    [
        (["report", "decode.mlir", "--target", "irre"], "--target iree, or a file of your own: --target ./my_npu.toml"),
        (["verify", "decode.mlir", "decode.mlir", "--on", "lite"], "--on litert"),
        (["tile", "decode.mlir", "--max-temp", "12Q", "--plan"], "write it as in 128MiB"),
        (["export", "none.py:f", "-o", "x.mlir"], "check the path"),
    ],
)
def test_a_mistyped_value_is_told_with_what_is_near(folder, command, line, next_step):
    """Targets, consumers, amounts and files: the last line says what to type."""
    done = command(*line)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"  next:    {next_step}\n")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (["prove", "mask", "--timeout", "-1"], "'-1' is not a number of seconds above 0"),
        (["prove", "mask", "--shapes", "0"], "'0' is not a number from 1"),
        (["conformance", "--on", "iree", "--jobs", "0"], "'0' is not a number from 1"),
        (["conformance", "--on", "iree", "--limit", "soon"], "'soon' is not a number of seconds above 0"),
    ],
)
def test_numbers_that_say_nothing_are_refused(command, line, wrong):
    """No time at all, and none of the modules, are mistakes."""
    done = command(*line)
    assert done.code == 2
    assert done.err.endswith(f"{wrong}\n")


def test_an_empty_command_line_shows_the_help(command):
    """On standard error, and it is a mistake still."""
    done = command()
    assert (done.code, done.out, done.err) == (2, "", command("help").out)


def test_lines_are_as_wide_as_the_page(folder, command, monkeypatch):
    """What is told of one rule, of a raised module and of a verdict is wrapped between words, code is not."""
    monkeypatch.setenv("COLUMNS", "60")
    for line in (
        ["rules", "dynamic_update_slice"],
        ["raise", "decode.mlir", "-o", "y.mlir"],
        ["verify", *["decode.mlir"] * 2],
    ):
        told = command(*line).out.splitlines()
        assert told
        assert all(len(one) <= 60 for one in told if not one.startswith("    %")), line
    assert command("rules", "dynamic_update_slice").out.count("->") == 1


def test_a_module_is_not_written_over_itself(folder, command):
    """Unless that is asked for; a folder of modules likewise."""
    before = (folder / "decode.mlir").read_text()
    for line in (["decode.mlir", "-o", "./decode.mlir"], [".", "-o", "."], ["plain.mlir", "decode.mlir", "-o", "."]):
        done = command("convert", *line)
        assert done.code == 2
        assert "--in-place" in done.err
    assert command("tile", "decode.mlir", "-o", "decode.mlir", "--max-temp", "1MiB").code == 2
    assert command("raise", "decode.mlir", "-o", "decode.mlir").code == 2
    assert (folder / "decode.mlir").read_text() == before
    assert command("convert", "decode.mlir", "-o", "decode.mlir", "--in-place", "--no-verify").code == 0
    assert "stablehlo.scatter" not in (folder / "decode.mlir").read_text()


def test_quiet_prints_errors_alone(folder, command):
    """What was written is written all the same."""
    (folder / "f.py").write_text(FUNCTION)
    lines = (
        ["convert", "decode.mlir", "-o", "out.mlir", "--no-verify"],
        ["convert", "decode.mlir", "plain.mlir", "-o", "out", "--no-verify"],
        ["report", "decode.mlir", "-o", "out.json"],
        ["verify", "plain.mlir", "plain.mlir"],
        ["export", "f.py:step", "--shapes", "f32[8]", "i32[]", "-o", "step.mlir"],
    )
    for line in lines:
        loud, quiet = command(*line), command(*line, "--quiet")
        assert loud.out
        assert (quiet.code, quiet.out, quiet.err) == (loud.code, "", "")
    assert {"out.mlir", "out", "out.json", "step.mlir"} <= {path.name for path in folder.iterdir()}
    assert "no such file" in command("convert", "missing.mlir", "-o", "out.mlir", "-q").err


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".json", "{"), (".md", "#"), (".html", "<!DOCTYPE html>"), (".sarif", "{"), (".txt", "decode")],
)
def test_the_format_of_a_report_follows_its_suffix(folder, command, suffix, start):
    """--format comes first; what was written is told."""
    done = command("report", "decode.mlir", "-o", f"out{suffix}")
    assert done.out == f"wrote out{suffix}\n"
    assert (folder / f"out{suffix}").read_text().lower().startswith(start.lower())
    if suffix != ".txt":
        command("convert", "decode.mlir", "-o", "o.mlir", "--no-verify", "--report", f"of{suffix}")
        assert (folder / f"of{suffix}").read_text().lower().startswith(start.lower())
    command("report", "decode.mlir", "-o", f"out{suffix}", "--format", "text")
    assert (folder / f"out{suffix}").read_text().startswith("decode.mlir")


def test_named_ops_are_told_in_the_format_of_the_suffix(folder, command):
    """As JSON, as a page or as text; another format is an error, and nothing is written."""
    assert command("report", "--named", "plain.mlir", "-o", "named.json").out == "wrote named.json\n"
    assert json.loads((folder / "named.json").read_text())[0]["file"] == "plain.mlir"
    assert command("report", "--named", "plain.mlir", "-o", "named.html").out == "wrote named.html\n"
    assert (folder / "named.html").read_text().startswith("<!DOCTYPE html>")
    refused = command("report", "--named", "plain.mlir", "-o", "named.sarif")
    assert (refused.code, refused.out) == (2, "")
    assert not (folder / "named.sarif").exists()


def test_a_function_without_an_entry_is_exported_by_its_shapes(folder, command):
    """Element types stand before the brackets; without --shapes the message names both ways."""
    (folder / "f.py").write_text(FUNCTION)
    assert command("export", "f.py:step", "--shapes", "f32[n]", "i32[]", "-o", "step.mlir").code == 0
    text = (folder / "step.mlir").read_text()
    assert "tensor<?xf32>" in text
    assert "tensor<i32>" in text
    missing = command("export", "f.py:step", "-o", "step.mlir").err
    assert "--shapes" in missing
    assert "EXPORTS" in missing


def test_colors_are_forced_and_forbidden_by_the_environment(command, monkeypatch):
    """FORCE_COLOR=1 into a pipe; NO_COLOR beats it, and 0 and nothing are none."""
    assert "\x1b[" not in command("rules").out
    for none in ("0", ""):
        monkeypatch.setenv("FORCE_COLOR", none)
        assert "\x1b[" not in command("rules").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in command("rules").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in command("rules").out


def test_a_full_disk_is_no_mistake_of_the_tool():
    """What cannot be printed is an error with its reason."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hlo_lower", "rules"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[0] == "standard output: cannot be written: No space left on device"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_completes_commands_and_options(command, shell):
    """The script has every command, and the options of each."""
    pytest.importorskip("shtab")
    script = command("completion", shell).out
    assert all(one.name in script for one in COMMANDS)
    assert "demote-i64" in script


def test_progress_is_told_on_a_terminal_alone():
    """Elsewhere nothing is printed."""
    with progress() as tell:
        tell("regions", 1, 2)
