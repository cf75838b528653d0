"""The commands, from arguments to files and exit codes."""

import json
import os
import stat
import subprocess
import sys
from types import SimpleNamespace

import jax.export
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.base import whole_files as output
from hlo_lower.base.errors import DifferenceError
from hlo_lower.cli.streams import fit
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

EXPORTS = {"step": {"args": args, "config": Config()}}
"""
CONVERT = "convert decode.mlir -o out.mlir"
PROGRAM = [sys.executable, "-m", "hlo_lower"]


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
    """A function is exported, reported, converted and verified; no scatter is left."""
    assert command("export tiny.py:step -o step.mlir").code == 0
    reported, converted = command("report step.mlir"), command("convert step.mlir -o lowered.mlir")
    verified = command("verify step.mlir lowered.mlir")
    assert {(result.code, result.err) for result in (reported, converted, verified)} == {(0, "")}
    assert "tiny.py:13" in reported.out
    assert "1 scatter -> 0" in converted.out
    assert "stablehlo.scatter" not in (folder / "lowered.mlir").read_text()


def test_what_export_is_asked_for(model, folder, command):
    """--set sets a field of the config, --shapes leaves sizes open, and -o - prints nothing but the module."""
    result = command("export tiny.py:step -o step.mlir --set rows=16")
    assert result.code == 0
    assert result.out.startswith("step.mlir   text of tiny.py:step, ")
    assert "tensor<16x4xf32>" in (folder / "step.mlir").read_text()
    assert command("export tiny.py:step -o step.mlir --shapes 'n, 4' 4 ''").code == 0
    assert "tensor<?x4xf32>" in (folder / "step.mlir").read_text()
    result = command("export tiny.py:step -o -")
    assert (result.code, result.err) == (0, "")
    assert hl.read(result.out.encode()).op_count > 0


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".mlir", b"module"), (".mlirbc", b"ML\xefR"), (".vhlo", b"ML\xefR"), (".portable", b"ML\xefR"), (".txt", b"mod")],
)
def test_the_suffix_decides_the_form(model, folder, command, suffix, start):
    """The output's form follows its suffix, for export and convert, and both can be read again."""
    assert command(f"export tiny.py:step -o step{suffix}").code == 0
    data = (folder / f"step{suffix}").read_bytes()
    assert start in data[:200]
    assert (suffix in (".vhlo", ".portable")) == (b"StableHLO_v" in data[:64])
    assert command(f"convert step{suffix} -o out{suffix} --no-verify").code == 0
    assert start in (folder / f"out{suffix}").read_bytes()[:200]
    assert len(hl.classify(hl.read(folder / f"out{suffix}"))) == 0


@pytest.mark.parametrize("suffix", [".exported", ".jax_exported"])
def test_exported_can_be_called(model, folder, command, suffix):
    """A serialized Exported goes in and comes out, and can be called."""
    assert command(f"export tiny.py:step -o step{suffix}").code == 0
    assert command(f"convert step{suffix} -o out{suffix} --no-verify").code == 0
    exported = jax.export.deserialize(bytearray((folder / f"out{suffix}").read_bytes()))
    result = exported.call(np.zeros((8, 4), np.float32), np.ones(4, np.float32), np.int32(2))
    assert np.asarray(result).sum(1).tolist() == [0, 0, 4, 0, 0, 0, 0, 0]


def test_what_convert_is_asked_for(folder, command):
    """--emit beats the suffix, --skip leaves a scatter, without verification that is said; twice is the same."""
    assert command(f"{CONVERT} --emit bytecode --no-verify").code == 0
    assert (folder / "out.mlir").read_bytes()[:4] == b"ML\xefR"
    skipped = command(f"{CONVERT} --skip #1 --no-verify")
    assert (skipped.code, "1 scatter -> 1" in skipped.out) == (0, True)
    assert "stablehlo.scatter" in (folder / "out.mlir").read_text()
    written = []
    for flags in ("--no-verify", "--verify off"):
        result = command(f"{CONVERT} {flags}")
        assert (result.code, "verification not measured" in result.out) == (0, True)
        written.append((folder / "out.mlir").read_bytes())
    assert written[0] == written[1]


def test_convert_through_standard_streams(folder):
    """`convert - -o -` is a filter: the module on standard output, the report on standard error."""
    argv = [*PROGRAM, "convert", "-", "-o", "-", "--no-verify"]
    done = subprocess.run(argv, input=(folder / "decode.mlir").read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0
    assert hl.classify(hl.read(done.stdout)) == ()
    assert b"1 scatter -> 0" in done.stderr
    assert b"\x1b" not in done.stderr


def test_convert_writes_a_json_report(folder, command):
    """--report holds the records, the verdict and the times."""
    assert command(f"{CONVERT} --report r.json").code == 0
    module = json.loads((folder / "r.json").read_text())["modules"][0]
    assert (module["file"], len(module["records"]), module["scatters_left"]) == ("decode.mlir", 1, 0)
    assert module["verdict"] is not None
    assert module["convert_seconds"] > 0


def test_a_module_without_scatters_leaves_as_it_came(folder, command):
    """What has nothing to lower is printed as jaxlib prints it."""
    assert command("convert plain.mlir -o out.mlir").code == 0
    printed = mlir.print_module(mlir.parse_module((folder / "plain.mlir").read_text()))
    assert printed == (folder / "out.mlir").read_text()


def test_a_scatter_without_lowering(folder, command, refused):
    """It is an error (exit code 3) without output; with --keep-unsupported it is kept and counted, still with 3."""
    text = (folder / "decode.mlir").read_text()
    (folder / "quantized.mlir").write_text(text.replace("f32", "!quant.uniform<i8:f32, 2.0>"))
    refused("convert quantized.mlir -o out.mlir", "", "stablehlo.scatter", code=3)
    kept = command("convert quantized.mlir -o out.mlir --keep-unsupported --no-verify")
    assert (kept.code, kept.err) == (3, "1 of 1 scatter kept for want of a lowering\n")
    assert "1 scatter -> 1" in kept.out
    assert "stablehlo.scatter" in (folder / "out.mlir").read_text()


def of_region(status, **more):
    """A verdict on one region."""
    return RegionVerdict("main", "main", ("line 3",), (), status=status, **more)


WRONG = Verdict((of_region("differs", difference="result 0 at [2, 1]: 3.0 before, 4.0 after"),))


def test_a_mismatch_writes_nothing(folder, refused, monkeypatch):
    """Exit code 1, the difference and where it is, no report; an old output survives."""
    monkeypatch.setattr(hl, "verify", lambda *args, **kwargs: WRONG)
    expected = (
        "decode.mlir: the lowered module computes something else; out.mlir was not written\n"
        "  line 3 in main: differs: result 0 at [2, 1]: 3.0 before, 4.0 after\n"
    )
    assert refused(f"{CONVERT} --report r.json", code=1) == expected
    (folder / "out.mlir").write_text("from before")
    refused(CONVERT, code=1)
    assert (folder / "out.mlir").read_text() == "from before"


def test_what_could_not_be_verified_is_not_written(refused, monkeypatch):
    """A region that no judge could run is no difference, but no proof either: exit code 4 and no output."""
    unjudged = Verdict((of_region("not judged", reason="no judge"),))
    monkeypatch.setattr(hl, "verify", lambda *args, **kwargs: unjudged)
    first = "decode.mlir: not everything could be verified (--accept-runs takes runs for a proof, "
    refused(CONVERT, first, "line 3 in main: not judged: no judge", code=4)


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


def test_verify_takes_inputs(folder, command):
    """Positional arrays of an .npz file are the module's arguments."""
    np.savez(folder / "x.npz", np.arange(4, dtype=np.float32))
    assert command("verify plain.mlir plain.mlir --inputs x.npz").code == 0


def raising(error):
    """A function that raises."""

    def function(*args, **kwargs):
        raise error

    return function


def test_a_difference_error_gives_exit_code_1(refused, monkeypatch):
    """However a difference is told, its exit code is 1."""
    monkeypatch.setattr(hl, "verify", raising(DifferenceError("decode.mlir", "result 0 differs")))
    assert refused(CONVERT, code=1) == "decode.mlir: result 0 differs\n"


@pytest.mark.parametrize(("error", "code"), [(OSError(28, "No space left on device"), 2), (KeyboardInterrupt(), 130)])
def test_the_temporary_file_never_stays(refused, monkeypatch, error, code):
    """A full disk or an interrupt while writing leaves neither output nor temporary file."""
    monkeypatch.setattr(output.os, "replace", raising(error))
    refused(f"{CONVERT} --no-verify", code=code)


def test_the_output_keeps_mode_and_link(folder, command):
    """A file is replaced with its mode, a link is written through, and /dev/null stays what it is."""
    (folder / "real.mlir").write_text("old")
    (folder / "real.mlir").chmod(0o640)
    (folder / "link.mlir").symlink_to("real.mlir")
    assert command("convert decode.mlir -o link.mlir --no-verify").code == 0
    assert (folder / "link.mlir").is_symlink()
    assert stat.S_IMODE((folder / "real.mlir").stat().st_mode) == 0o640
    assert "module" in (folder / "real.mlir").read_text()
    assert command(f"convert decode.mlir -o {os.devnull} --no-verify").code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_new_output_follows_the_umask(folder, command):
    """A new file has the mode that any program would give it."""
    mask = os.umask(0o027)
    try:
        assert command(f"{CONVERT} --no-verify").code == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE((folder / "out.mlir").stat().st_mode) == 0o640


def test_report_of_several_files_goes_on_after_a_bad_one(folder, command):
    """An unreadable module is a row with its reason; the others are told; the exit code is 2."""
    (folder / "models").mkdir()
    result = command("report decode.mlir missing.mlir models plain.mlir")
    assert result.code == 2
    assert "missing.mlir   error: missing.mlir: no such file" in result.out
    assert "models   error: models: is a directory" in result.out
    assert "total: 4 modules (2 failed)" in result.out
    assert result.err == "2 of 4 modules could not be read; the report says why\n"


@pytest.mark.parametrize(
    ("form", "start"),
    [("text", "decode.mlir"), ("json", "{"), ("markdown", "## decode.mlir"), ("html", "<!DOCTYPE html>")],
)
def test_report_formats(folder, command, form, start):
    """Each format goes to standard output or, the same, into a file."""
    shown = command(f"report decode.mlir --format {form}")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(start)
    written = command(f"report decode.mlir --format {form} -o r.out")
    assert (written.code, written.out) == (0, "wrote r.out\n")
    assert shown.out == (folder / "r.out").read_text()


def test_report_has_no_color_in_a_pipe_and_obeys_columns(command, monkeypatch):
    """The width is 160 unless COLUMNS says otherwise, and there are no escape codes."""
    wide = command("report decode.mlir").out
    monkeypatch.setenv("COLUMNS", "80")
    narrow = command("report decode.mlir").out
    assert "\x1b" not in wide + narrow
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))


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
    """Every rule of the registry is printed."""
    result = command(f"rules --format {form}")
    assert (result.code, result.err) == (0, "")
    for rule in hl.rules():
        assert rule.name.removeprefix("scatter_to_") in result.out


def test_an_internal_error_asks_to_be_reported(command, refused, monkeypatch):
    """Without --debug it is two lines, with it there is the traceback; the exit code is 2. Control-C is a word."""
    monkeypatch.setattr(survey, "survey", raising(KeyError("oops")))
    refused("report decode.mlir", "hlo-lower: internal error: KeyError: 'oops'\n", "--debug")
    loud = command("report decode.mlir --debug")
    assert (loud.code, "Traceback" in loud.err) == (2, True)
    monkeypatch.setattr(survey, "survey", raising(KeyboardInterrupt()))
    assert refused("report decode.mlir", code=130) == "interrupted\n"


def test_a_closed_pipe_is_quiet(folder):
    """`hlo-lower report ... | head -1` prints no complaint."""
    script = f"{sys.executable} -m hlo_lower report decode.mlir --format html | head -c 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "<", "")


def test_signs_that_an_encoding_lacks_are_replaced():
    """A terminal without Unicode gets plain signs."""
    assert fit("── 1 ×2 ü", SimpleNamespace(encoding="ascii")) == "-- 1 x2 \\xfc"
