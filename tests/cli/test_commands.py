"""The commands, from arguments to files, what is printed where, and exit codes."""

import json
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import jax.export
import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.base import whole_files as output
from hlo_lower.base.arguments import silent
from hlo_lower.base.errors import DifferenceError
from hlo_lower.cli.parser import COMMANDS
from hlo_lower.cli.streams import ProgressLines, fit, progress
from hlo_lower.ir import mlir
from hlo_lower.verify import ModuleVerdict, RegionVerdict, Verdict

MODEL = """\
from dataclasses import dataclass
import jax

@dataclass(frozen=True)
class Config:
    rows: int = 8

def args(config):
    return tuple(jax.ShapeDtypeStruct(shape, dtype)
                 for shape, dtype in (((config.rows, 4), "float32"), ((4,), "float32"), ((), "int32")))

def step(cache, row, position, *, config):
    return cache.at[position].set(row)

def free(x, i):
    return x.at[i].set(1.0)

def bell(x):
    return jax.lax.erfc(x)

EXPORTS = {"step": {"args": args, "config": Config()}}
"""
CONVERT = "convert decode.mlir -o out.mlir"


@pytest.fixture
def model(folder):
    """A model file whose step writes a row of a cache."""
    (folder / "tiny.py").write_text(MODEL)


@pytest.fixture
def other(folder):
    """A second version of plain.mlir that computes something else."""
    text = (folder / "plain.mlir").read_text()
    (folder / "other.mlir").write_text(text.replace("stablehlo.add %x, %x", "stablehlo.multiply %x, %x"))


def test_the_main_job(model, folder, command):
    """A function is exported, reported, converted and verified; no scatter is left, and the report has it all."""
    assert command("export tiny.py:step -o step.mlir").code == 0
    reported, converted = command("report step.mlir"), command("convert step.mlir -o lowered.mlir --report r.json")
    verified = command("verify step.mlir lowered.mlir")
    assert {(result.code, result.err) for result in (reported, converted, verified)} == {(0, "")}
    assert "tiny.py:13" in reported.out
    assert "1 scatter -> 0" in converted.out
    assert "stablehlo.scatter" not in (folder / "lowered.mlir").read_text()
    told = json.loads((folder / "r.json").read_text())["modules"][0]
    assert (told["file"], len(told["records"]), told["scatters_left"]) == ("step.mlir", 1, 0)
    assert told["verdict"] is not None
    assert told["convert_seconds"] > 0


def test_what_export_is_asked_for(model, folder, command):
    """--set sets a field of the config, --shapes leaves sizes open or makes an entry, -o - prints the module alone,
    --plain-stablehlo writes chlo out."""
    result = command("export tiny.py:step -o step.mlir --set rows=16")
    assert result.out.startswith("step.mlir   text of tiny.py:step, ")
    assert "tensor<16x4xf32>" in (folder / "step.mlir").read_text()
    assert command("export tiny.py:step -o step.mlir --shapes 'n, 4' 4 ''").code == 0
    assert "tensor<?x4xf32>" in (folder / "step.mlir").read_text()
    result = command("export tiny.py:step -o -")
    assert (result.code, result.err) == (0, "")
    assert hl.read(result.out.encode()).op_count > 0
    assert command("export tiny.py:free -o free.mlir --shapes f32[n] i32[]").code == 0
    assert "(%arg0: tensor<?xf32>" in (folder / "free.mlir").read_text()
    kept, plain = (
        command(f"export tiny.py:bell -o - --shapes f32[4] {flag}").out for flag in ("", "--plain-stablehlo")
    )
    assert ("chlo." in kept, "chlo." in plain) == (mlir.XLA_TAKES_CHLO, False)
    missing = command("export tiny.py:free -o free.mlir").err
    assert ("--shapes" in missing, "EXPORTS" in missing) == (True, True)


@pytest.mark.parametrize("suffix", [".mlirbc", ".vhlo", ".portable", ".txt", ".exported", ".jax_exported"])
def test_the_suffix_decides_the_form(model, folder, command, suffix):
    """The output's form follows its suffix, for export and convert, and both can be read, or called, again."""
    assert command(f"export tiny.py:step -o step{suffix}").code == 0
    assert command(f"convert step{suffix} -o out{suffix} --no-verify").code == 0
    start = {".mlirbc": b"ML\xefR", ".vhlo": b"StableHLO_v", ".portable": b"StableHLO_v", ".txt": b"module"}.get(suffix)
    for name in ("step", "out"):
        data = (folder / f"{name}{suffix}").read_bytes()
        assert start is None or start in data[:200]
        assert (suffix in (".vhlo", ".portable")) == (b"StableHLO_v" in data[:64])
    if start is None:
        given = np.zeros((8, 4), np.float32), np.ones(4, np.float32), np.int32(2)
        assert np.asarray(jax.export.deserialize(bytearray(data)).call(*given)).sum(1).tolist() == [0, 0, 4, *[0] * 5]
    else:
        assert hl.classify(hl.read(data)) == ()


def test_what_convert_is_asked_for(folder, command):
    """--emit beats the suffix, --bind makes it static, --skip leaves a scatter; without verification that is said."""
    assert command(f"{CONVERT} --emit bytecode --no-verify").code == 0
    assert (folder / "out.mlir").read_bytes()[:4] == b"ML\xefR"
    np.savez(folder / "x.npz", np.zeros((8, 4), np.float32), np.ones(4, np.float32), np.int32(3))
    assert "module 1 run" in command(f"{CONVERT} --inputs x.npz").out.splitlines()[0]
    (folder / "poly.mlir").write_text((folder / "decode.mlir").read_text().replace("8x4xf32", "?x4xf32"))
    assert " derived for all sizes; module " in command("convert poly.mlir -o out.mlir").out  # at several sizes
    assert command("convert poly.mlir -o out.mlir --bind arg0.0=6 --bind arg0.1=4").code == 0
    assert "tensor<6x4xf32>" in (folder / "out.mlir").read_text()
    assert command("verify poly.mlir out.mlir --bind arg0.0=6").code == 0
    skipped = command("convert decode.mlir -o out.mlir --skip #1 --verify regions")
    assert (skipped.code, "1 scatter -> 1" in skipped.out) == (0, True)
    written = []
    for flags in ("--no-verify", "--verify off"):
        result = command(f"{CONVERT} {flags}")
        assert (result.code, "not verified" in result.out) == (0, True)
        written.append((folder / "out.mlir").read_bytes())
    assert written[0] == written[1]
    assert command("convert plain.mlir -o out.mlir").code == 0  # which has nothing to lower
    printed = mlir.print_module(mlir.parse_module((folder / "plain.mlir").read_text()))
    assert printed == (folder / "out.mlir").read_text()


@pytest.mark.parametrize("rule", ["while", "sorted_last_writer"])
def test_a_preferred_rule_is_verified(rule, folder, command):
    """It is taken, and right also by a judge of two texts that knows no rule."""
    lines = "%r = scatter(%o, %i, %u) <window=[1], inserted=[0], to=[0], ivd=1> {assign}"
    (folder / "many.mlir").write_text(module("%o: 4x2xf32, %i: 3x1xi32, %u: 3x2xf32", lines))
    result = command(f"convert many.mlir -o out.mlir --prefer {rule} --verify regions")
    assert (result.code, result.err, rule in result.out) == (0, "", True)
    assert command("verify many.mlir out.mlir --runs 1").code == 0


def test_a_target_file(folder, command):
    """Every command that takes a target takes a file, and the report tells its name; the help says so."""
    (folder / "my_npu.toml").write_text('refused = {"stablehlo.while" = "no loops"}\n')
    converted = command(f"{CONVERT} --target my_npu.toml --verify regions")
    assert (converted.code, converted.err) == (0, "")
    assert "target my_npu, oob xla" in converted.out
    for line in ("report decode.mlir", "verify decode.mlir out.mlir"):
        assert command(f"{line} --target ./my_npu.toml").code == 0
    told = " ".join(command("rules --target my_npu.toml --format markdown").out.split())
    assert "rejected: emits stablehlo.while, which my_npu rejects: no loops" in told
    assert "npu.toml" in command("convert --help").out


def test_what_a_target_refuses_is_exit_code_3(folder, command, refused):
    """The message names the type that the target refuses, and a report for the same target; it can be kept."""
    (folder / "my_npu.toml").write_text('[refused_dtypes]\nf32 = "integers only"\n')
    lines = refused(f"{CONVERT} --report r.json --target my_npu.toml", code=3).splitlines()
    assert lines[0] == "decode.mlir:4:12: stablehlo.scatter: no lowering for target my_npu"
    assert lines[1].startswith("  facts:   subset=Tile combiner=assign dtype=f32")
    assert lines[2].endswith("needs f32, which my_npu rejects: integers only")
    assert lines[-1] == "  next:    hlo-lower report --explain 1 decode.mlir --target my_npu.toml"
    told = refused(f"{CONVERT} --oob spec --target my_npu.toml", code=3)
    assert told.endswith(" decode.mlir --target my_npu.toml --oob spec\n")
    explained = command("report decode.mlir --target my_npu.toml --explain 1").out
    assert "rule:    none: no lowering for target my_npu" in explained
    assert "needs f32, which my_npu rejects: integers only" in explained
    quantized = (folder / "decode.mlir").read_text().replace("f32", "!quant.uniform<i8:f32, 2.0>")
    (folder / "quantized.mlir").write_text(quantized)
    refused("convert quantized.mlir -o out.mlir", "", "stablehlo.scatter", code=3)
    kept = command("convert quantized.mlir -o out.mlir --keep-unsupported --no-verify")
    assert (kept.code, kept.err) == (3, "1 of 1 scatter kept for want of a lowering\n")
    assert ("1 scatter -> 1" in kept.out, "part of 8x4" in kept.out) == (True, True)
    assert "stablehlo.scatter" in (folder / "out.mlir").read_text()


def of_region(status, **more):
    """A verdict on one region."""
    return RegionVerdict("main", "main", ("line 3",), (), status=status, **more)


WRONG = of_region("differs", difference="result 0 at [2, 1]: 3.0 before, 4.0 after")
VERDICTS = {  # of a conversion: the exit code and what is told
    "differs": (
        (WRONG, 1),
        "decode.mlir: the lowered module computes something else; out.mlir was not written\n"
        "  line 3 in main: differs: result 0 at [2, 1]: 3.0 before, 4.0 after\n",
    ),
    "not judged": (
        (of_region("not judged", reason="no judge"), 4),
        "decode.mlir: not everything could be verified (--accept-runs accepts runs as a proof, --no-verify "
        "does not verify); out.mlir was not written\n  line 3 in main: not judged: no judge\n",
    ),
}


@pytest.mark.parametrize("status", VERDICTS)
def test_what_is_not_verified_is_not_written(folder, refused, monkeypatch, status):
    """A difference is exit code 1, what no judge could run 4: no output, no report; an old output survives."""
    (region, code), told = VERDICTS[status]
    monkeypatch.setattr(hl, "verify", lambda *args, **kwargs: Verdict((region,)))
    assert refused(f"{CONVERT} --report r.json", code=code).startswith(told)
    (folder / "out.mlir").write_text("from before")
    refused(CONVERT, code=code)
    assert (folder / "out.mlir").read_text() == "from before"


@pytest.mark.parametrize(("flag", "code"), [("", 4), (" --accept-runs", 0)])
def test_what_was_only_run_counts_where_that_is_asked_for(folder, command, monkeypatch, flag, code):
    """Without --accept-runs what was only run gives exit code 4 and no output, with it the module is written."""

    def verify(*args, accept_runs, **kwargs):
        region = of_region("only run", reason="not reached")
        return Verdict((region,), module=ModuleVerdict("equal", 3), accepts_runs=accept_runs)

    monkeypatch.setattr(hl, "verify", verify)
    assert (command(CONVERT + flag).code, (folder / "out.mlir").exists()) == (code, code == 0)
    assert command("verify decode.mlir decode.mlir" + flag).code == code


def test_what_differs_is_saved_and_reported(other, folder, command):
    """`verify` gives exit code 1, names the result, and writes the verdict and the arguments that show it."""
    result = command("verify plain.mlir other.mlir --report r.json --save-inputs x.npz")
    assert (result.code, "result 0" in result.out) == (1, True)
    told = json.loads((folder / "r.json").read_text())
    assert (told["ok"], [region["status"] for region in told["regions"]]) == (False, ["differs"])
    assert len(np.load(folder / "x.npz").files) == 1
    assert "module differs" in command("verify plain.mlir other.mlir --inputs x.npz --runs 1").out


def raising(error):
    """A function that raises."""

    def function(*args, **kwargs):
        raise error

    return function


@pytest.mark.parametrize(
    ("line", "where", "error", "code", "told"),
    [
        (CONVERT, (hl, "verify"), DifferenceError("decode.mlir", "result 0 differs"), 1, "decode.mlir: result 0"),
        # a full disk or an interrupt while writing leaves neither output nor temporary file
        (f"{CONVERT} --no-verify", (output.os, "replace"), OSError(28, "No space left on device"), 2, ""),
        (f"{CONVERT} --no-verify", (output.os, "replace"), KeyboardInterrupt(), 130, "interrupted\n"),
        ("report decode.mlir", (survey, "survey"), KeyError("oops"), 2, "hlo-lower: internal error: KeyError: 'oops'"),
    ],
)
def test_whatever_is_raised_is_a_message(command, refused, monkeypatch, line, where, error, code, told):
    """With its exit code, and no file; an internal error asks to be reported, and --debug shows the traceback."""
    monkeypatch.setattr(*where, raising(error))
    message = refused(line, told, code=code)
    if "internal error" in message:
        assert "--debug" in message
        loud = command(f"{line} --debug")
        assert (loud.code, "Traceback" in loud.err) == (2, True)


def test_the_output_keeps_mode_and_link(folder, command):
    """A file keeps its mode, a new one has that of any program, a link is written through; in place if asked for."""
    (folder / "real.mlir").write_text("old")
    (folder / "real.mlir").chmod(0o644)
    (folder / "link.mlir").symlink_to("real.mlir")
    mask = os.umask(0o027)
    try:
        for name in ("link.mlir", "out.mlir", os.devnull):
            assert command(f"convert decode.mlir -o {name} --no-verify").code == 0
    finally:
        os.umask(mask)
    assert (folder / "link.mlir").is_symlink()
    assert [stat.S_IMODE((folder / name).stat().st_mode) for name in ("real.mlir", "out.mlir")] == [0o644, 0o640]
    assert "module" in (folder / "real.mlir").read_text()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert command("convert decode.mlir -o decode.mlir --in-place --no-verify").code == 0
    assert "stablehlo.scatter" not in (folder / "decode.mlir").read_text()


@pytest.mark.parametrize(
    ("suffix", "form", "start"),
    [
        (".json", "json", "{"),
        (".md", "markdown", "## decode.mlir"),
        (".html", "html", "<!DOCTYPE html>"),
        (".sarif", "sarif", "{"),
        (".txt", "text", "decode.mlir"),
    ],
)
def test_the_format_of_a_report(folder, command, suffix, form, start):
    """It goes to standard output or, the same, into a file of that suffix, which is told; --format comes first."""
    shown = command(f"report decode.mlir --format {form}")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(start)
    written = command(f"report decode.mlir -o r{suffix}")
    assert (written.code, written.out) == (0, f"wrote r{suffix}\n")
    assert shown.out == (folder / f"r{suffix}").read_text()
    if suffix != ".txt":
        command(f"convert decode.mlir -o o.mlir --no-verify --report of{suffix}")
        assert (folder / f"of{suffix}").read_text().startswith(start)
    command(f"report decode.mlir -o r{suffix} --format text")
    assert (folder / f"r{suffix}").read_text().startswith("decode.mlir")


def test_report_explains_and_fails_on_a_kind(command):
    """--explain 1 shows facts, the rule and the others; --fail-on gives exit code 3 where a scatter is of that kind."""
    result = command("report decode.mlir --explain 1")
    assert result.code == 0
    for word in ("scatter 1 of decode.mlir", "in_bounds = unknown", "rule:", "not chosen"):
        assert word in result.out
    assert command("report decode.mlir --fail-on insert_slice").code == 3
    assert command("report decode.mlir --fail-on general --fail-on reduction_add").code == 0


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_rules(command, form):
    """Every rule of the registry is printed; one that is named with its proof."""
    result = command(f"rules --format {form}")
    assert (result.code, result.err) == (0, "")
    assert [rule.name for rule in hl.rules() if rule.name.removeprefix("scatter_to_") not in result.out] == []
    one = command("rules mask").out
    assert one.startswith("mask   lowering/scatter/numbered_rows.py:")
    for told in ("for:     ", "form:    ", "builds:  ", "\nEqual: "):
        assert told in one


def test_lines_are_as_wide_as_the_page(command, monkeypatch):
    """160 columns unless COLUMNS says otherwise; what is told is wrapped between words, code is not."""
    wide = command("report decode.mlir").out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = command("report decode.mlir").out
    assert "\x1b" not in wide + narrow
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    monkeypatch.setenv("COLUMNS", "60")
    for line in ("rules dynamic_update_slice", "raise decode.mlir -o y.mlir", "verify decode.mlir decode.mlir"):
        told = command(line).out.splitlines()
        assert told
        assert all(len(one) <= 60 for one in told if not one.startswith("    %")), line
    assert command("rules dynamic_update_slice").out.count("->") == 1


def test_rules_of_one_op(command):
    """By the name of an op, or of a composite, all its rules are printed, and no others."""
    told = command("rules stablehlo.reverse").out.splitlines()
    names = [line.split()[0] for line in told if line[:1].isalpha() and ".py:" in line]
    assert sorted(names) == sorted(row.name for row in hl.rules() if row.op == "stablehlo.reverse")
    assert len(names) > 2
    assert "no rule named 'acme.nothing'" in command("rules acme.nothing").err


def test_colors_are_forced_and_forbidden_by_the_environment(command, monkeypatch):
    """FORCE_COLOR=1 into a pipe; NO_COLOR beats it, and 0 and nothing are none."""
    assert "\x1b[" not in command("rules").out
    for name, value, colored in (("FORCE", "0", False), ("FORCE", "", False), ("FORCE", "1", True), ("NO", "1", False)):
        monkeypatch.setenv(f"{name}_COLOR", value)
        assert ("\x1b[" in command("rules").out) == colored


def test_help_and_version(command):
    """Help lists all commands and exit codes, and is shown, on standard error, of an empty line; -V is --version."""
    done = command("help")
    assert done == command("--help")
    assert (done.code, "exit codes:" in done.out) == (0, True)
    for one in COMMANDS:
        assert f"    {one.name} " in done.out
        assert command("help", one.name) == command(one.name, "--help")
        assert command("help", one.name).code == 0
    empty = command()
    assert (empty.code, empty.out, empty.err) == (2, "", done.out)
    assert command("-V") == command("--version")
    assert command("-V").out.startswith("hlo-lower ")


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("convert decode.mlir -o out.mlir --no-verify", "out.mlir"),
        ("convert decode.mlir plain.mlir -o out --no-verify --jobs 1", "out"),
        ("report decode.mlir -o out.json", "out.json"),
        ("verify plain.mlir plain.mlir", "plain.mlir"),
        ("raise decode.mlir -o raised.mlir", "raised.mlir"),
        ("export tiny.py:step -o step.mlir", "step.mlir"),
    ],
)
def test_quiet_prints_errors_alone(model, folder, command, line, written):
    """What was written is written all the same."""
    loud, quiet = command(line), command(f"{line} --quiet")
    assert loud.out
    assert (quiet.code, quiet.out, quiet.err) == (loud.code, "", "")
    assert (folder / written).exists()


def test_streams_of_a_process(folder):
    """`convert - -o -` is a filter with the report on standard error; a closed pipe is quiet, a full disk an error."""
    program, how = [sys.executable, "-m", "hlo_lower"], {"capture_output": True, "check": False}
    text = (folder / "decode.mlir").read_bytes()
    done = subprocess.run([*program, "convert", "-", "-o", "-", "--no-verify"], input=text, **how)
    assert done.returncode == 0
    assert hl.classify(hl.read(done.stdout)) == ()
    assert (b"1 scatter -> 0" in done.stderr, b"\x1b" in done.stderr) == (True, False)
    done = subprocess.run(["sh", "-c", " ".join([*program, "report decode.mlir --format html | head -c 1"])], **how)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"<", b"")
    told = b"standard output: cannot be written: No space left on device"
    for command in ("settings", "--version"):
        done = subprocess.run(["sh", "-c", " ".join([*program, command, "> /dev/full"])], **how)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, told)


def test_signs_that_an_encoding_lacks_are_replaced(capfd):
    """A terminal without Unicode gets plain signs; of what is done soon nothing is told in a log."""
    assert fit("── 1 ×2 ü", SimpleNamespace(encoding="ascii")) == "-- 1 x2 \\xfc"
    with progress() as tell:
        tell("regions", 1, 2)
    assert capfd.readouterr() == ("", "")


def test_a_log_gets_a_line_of_progress_now_and_then(capfd):
    """At most one in half a minute, with what is left at this rate; none with --quiet."""
    now = [0.0]
    lines = ProgressLines(lambda: now[0])
    for seconds, done in ((1, 10), (20, 15), (41, 20), (50, 21), (2401, 60), (2431, 61)):
        now[0] = float(seconds)
        lines.tell("modules", done, 210)
    assert capfd.readouterr().err.splitlines() == [
        "modules: 20 of 210 after 41 s, about 13 min left",
        "modules: 60 of 210 after 40 min, about 2.0 h left",
        "modules: 61 of 210 after 41 min, about 2.0 h left",
    ]
    lines.tell("regions", 1, 5)
    now[0] = 3000.0
    lines.tell("regions", 1, 5)
    assert capfd.readouterr().err == "regions: 1 of 5 after 50 min\n"
    with progress(quiet=True) as tell:
        assert tell is silent


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_completes_commands_and_options(command, shell):
    """The script has every command, and the options of each."""
    pytest.importorskip("shtab")
    script = command("completion", shell).out
    assert all(one.name in script for one in COMMANDS)
    assert "demote-i64" in script
