"""`convert -o m.vmfb` and `hl.build`: what a consumer's compiler makes is run, and written where it is right alone."""

import json
import os

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower import consumers
from hlo_lower.api.verified import compared_with
from hlo_lower.base.errors import InputError
from hlo_lower.base.whole_files import check_package, put_in_place, room_beside
from hlo_lower.cli import main
from hlo_lower.consumers import COREML, IREE, LITERT, Consumer
from hlo_lower.verify.run import Executable

DRIVER = """
import os, signal
from pathlib import Path
from hlo_lower.consumers import RefusedError, RunsElsewhereError

def load(): pass

def build(text, path, flags):
    Path(path).write_text(f"made with {' '.join(flags)}")
    if "--refuse" in flags:
        raise RefusedError("cannot take it", "stablehlo.add")
    if "--elsewhere" in flags:
        raise RunsElsewhereError("it is for a moon lander")
    if "--die" in flags:
        os.kill(os.getpid(), signal.SIGSEGV)
    return lambda arguments: [3 * a if "--wrong" in flags else a + a for a in arguments]
"""
DOUBLED = module("%a: 3xf32", "%r = add %a, %a")
OPEN = module("%a: ?xf32", "%r = add %a, %a")
WRITTEN = module(
    "%a: 8x4xf32, %i: 1xi32, %u: 4xf32", "%r = scatter(%a, %i, %u) <window=[0], inserted=[0], to=[0]> {assign}"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder, made current, with a module and a consumer of the default target's name that makes files of .out."""
    own = tmp_path / "driver"
    own.mkdir()
    (own / "fake_builder.py").write_text(DRIVER)
    path = os.pathsep.join(filter(None, (str(own), os.environ.get("PYTHONPATH", ""))))
    told = {"driver": "fake_builder", "environment": {"PYTHONPATH": path}, "artifact": ".out"}
    fake = Consumer("stablehlo", "Fake", **told)
    monkeypatch.setattr(consumers, "CONSUMERS", (fake, *consumers.CONSUMERS))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name, text in (("m.mlir", DOUBLED), ("open.mlir", OPEN)):
        (tmp_path / "work" / name).write_text(text)
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("m.mlir -o m.out", 0, "m.out: Fake any: right in 3 runs"),
        ("m.mlir -o m.out -- --fast", 0, "m.out: Fake any: right in 3 runs"),
        ("m.mlir -o m.out -- --elsewhere", 0, "it does not run here: nothing was compared (it is for a moon lander)"),
        ("m.mlir -o m.out --no-verify -- --wrong", 0, "not run: no verification was asked for"),
        ("m.mlir -o m.out --verify regions -- --wrong", 0, "not run: the verification of regions alone was asked for"),
        ("open.mlir -o m.out", 0, "not run: dynamic shape tensor<?xf32>"),
        ("m.mlir -o m.out -- --wrong", 1, "Fake any: wrong: run 1 (in range): result 0 at [0]"),
        ("m.mlir -o m.out -- --refuse", 3, "Fake any: refused: cannot take it; m.out was not written"),
        ("m.mlir -o m.out -- --die", 3, "Fake any: crashed: ended by SIGSEGV; m.out was not written"),
    ],
)
def test_it_is_written_where_it_is_right_or_not_run(folder, capfd, line, code, told):
    """With the compiler's flags and what became of it; of what is wrong, refused or dead no part stays, and what was
    there before does."""
    (folder / "m.out").write_text("former")
    assert main(["convert", *line.split()]) == code
    shown = capfd.readouterr()
    assert told in (shown.err if code else shown.out)
    flags = line.partition(" -- ")[2]
    assert (folder / "m.out").read_text() == ("former" if code else f"made with {flags}")
    assert sorted(os.listdir(folder)) == ["m.mlir", "m.out", "open.mlir"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("m.mlir -o m.vmfb", ".vmfb is what iree runs, and the target is stablehlo\n  facts:   of stablehlo: .out,"),
        ("m.mlir -o m.vmfb --target linalg", "of linalg: a module: .mlir, .mlirbc"),
        ("m.mlir -o m.out -- fast", "fast: it is not a flag of Fake"),
        ("m.mlir -o m.mlir.txt -- --fast", "--fast is for a consumer's compiler, but the output is"),
        ("m.mlir -o m.out --emit text -- --fast", "--fast is for a consumer's compiler, but the output is"),
        ("m.mlir -o there.out", "there.out: is a directory"),
        ("m.mlir -o none/m.out", "none/m.out: the folder none does not exist"),
        ("m.mlir open.mlir -o lowered -- --fast", "--fast is for a consumer's compiler"),
        ("m.mlir open.mlir -o lowered.vmfb", "several modules are written into a folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_told_before_the_work(folder, capfd, line, told):
    """A suffix of another consumer, with those of the target; flags where no compiler runs, or that are none."""
    (folder / "there.out").mkdir()
    before = sorted(os.listdir(folder))
    assert main(["convert", *line.split()]) == 2
    assert told in capfd.readouterr().err
    assert sorted(os.listdir(folder)) == before


def test_the_report_holds_what_became_of_it(folder, capfd):
    """As data in JSON, in words among the notes; --quiet prints neither."""
    assert main(["convert", "m.mlir", "-o", "m.out", "--report", "r.json", "-q"]) == 0
    assert capfd.readouterr().out == ""
    [told] = json.loads((folder / "r.json").read_text())["modules"]
    made = told["artifact"]
    assert (made["path"], made["consumer"], made["ok"], made["outcome"]["runs"]) == ("m.out", "stablehlo", True, 3)
    assert told["notes"][-2] == "m.out: Fake any: right in 3 runs"


def test_from_python(folder):
    """Both verdicts come back; what is not right is an error, and a name without such a suffix, too."""
    built = hl.build("m.mlir", folder / "m.out", flags=["--fast"])
    assert (built.verdict.ok, built.on.summary()) == (True, "Fake any: right in 3 runs")
    assert repr(built) == f"<Built {folder / 'm.out'}: Fake any: right in 3 runs>"
    assert hl.build(DOUBLED, "n.out", verify=None).verdict is None
    assert hl.build(DOUBLED, "n.out", runs=2).verdict.module.runs == 2
    with pytest.raises(hl.InputError, match="there is no option 'level'"):
        hl.build(DOUBLED, "wrong.out", level="full")
    for flag, error in (("--wrong", hl.DifferenceError), ("--refuse", hl.NotLoweredError)):
        with pytest.raises(error, match=r"wrong\.out was not written"):
            hl.build(DOUBLED, "wrong.out", flags=[flag])
    with pytest.raises(hl.InputError, match="its suffix is that of a module") as told:
        hl.build(DOUBLED, "m.mlir")
    assert "consumers run .out, .vmfb, .tflite, .mlpackage" in told.value.facts
    assert sorted(os.listdir(folder)) == ["m.mlir", "m.out", "n.out", "open.mlir"]


def test_numbers_are_those_of_what_was_asked_for(folder):
    """Where floats are made others, runs are compared with the module of those, not with that which was given."""
    wide = DOUBLED.replace("f32", "f64")
    assert (
        hl.build(wide, "m.out", demote_f64=True, inputs=[[1.0, 2.0, 1e-9]]).on.summary() == "Fake any: right in 1 run"
    )


def test_single_elements_out_of_bounds_are_those_that_were_asked_for():
    """What is built under --oob spec is compared with that meaning, which XLA's scatter has not."""
    text = module("%a: 4xf32, %i: 1xi32, %u: 2xf32", "%r = scatter(%a, %i, %u) <window=[0], to=[0]> {assign}")
    given = np.zeros(4, np.float32), np.int32([3]), np.ones(2, np.float32)
    for oob, expected in (("xla", [0, 0, 0, 0]), ("spec", [0, 0, 0, 1])):
        before, _ = compared_with(text, hl.lower(text, oob=oob), None)
        assert Executable(before, "exact").run(given)[0].tolist() == expected


def test_a_setting_is_one_that_the_converter_has():
    """NAME=VALUE of those that there are; else the error names them."""
    COREML._check_flags(["compute_precision=FLOAT16"])
    LITERT._check_flags(["enable_x64=false", "model_origin_framework=JAX"])
    for consumer, flag in ((COREML, "compute_precision=FLOAT8"), (LITERT, "--fast"), (LITERT, "enable_x64")):
        with pytest.raises(InputError, match="takes no such setting") as told:
            consumer._check_flags([flag])
        assert next(iter(consumer.settings)) in told.value.facts


def test_a_folder_is_replaced_where_it_is_a_package(tmp_path, monkeypatch):
    """One that is something else stays; where the new one cannot be put there, the former one is back."""
    there = tmp_path / "m.mlpackage"
    there.mkdir()
    with pytest.raises(InputError, match="is a directory"):
        check_package(str(there), ".mlpackage")
    (there / "Manifest.json").write_text("former")
    check_package(str(there), ".mlpackage")

    def put(text):
        with room_beside(str(there)) as made:
            os.mkdir(made)
            (there.parent / made / "Manifest.json").write_text(text)
            put_in_place(made, str(there))

    put("new")
    assert (there / "Manifest.json").read_text() == "new"
    plain = os.replace

    def full(one, other):
        if os.path.basename(os.path.dirname(one)) != tmp_path.name and not str(one).endswith(".former"):
            raise OSError(28, "No space left on device")
        plain(one, other)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        put("newer")
    assert (there / "Manifest.json").read_text() == "new"
    assert os.listdir(tmp_path) == ["m.mlpackage"]


@pytest.mark.skipif(not IREE.version(), reason="the extra iree is not installed")
def test_iree(tmp_path, monkeypatch, capfd):
    """By itself for this machine, on which it runs; flags are its compiler's; for another machine it is not run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text(WRITTEN)
    convert = ["convert", "m.mlir", "-o", "m.vmfb", "--target", "iree"]
    assert main([*convert, "--", "--iree-llvmcpu-target-cpu=generic"]) == 0
    assert f"m.vmfb: IREE (llvm-cpu, local-task) {IREE.version()}: right in 3 runs" in capfd.readouterr().out
    assert main([*convert, "--no-verify", "--", "--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu"]) == 0
    assert "not run: no verification was asked for (HAL device" in capfd.readouterr().out
    assert main([*convert, "--no-verify", "--", "--of-my-own"]) == 3
    assert "Unknown command line argument '--of-my-own'" in capfd.readouterr().err


def test_a_consumer_that_is_not_there_is_told_with_its_packages(tmp_path, monkeypatch, capfd):
    """Before the work."""
    monkeypatch.setattr(
        consumers, "CONSUMERS", (Consumer("iree", "IREE", "", ("no_iree",), extra="iree", artifact=".vmfb"),)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.mlir").write_text("module {}")
    assert main(["convert", "m.mlir", "-o", "m.vmfb", "--target", "iree"]) == 2
    assert "IREE is not installed" in (told := capfd.readouterr().err)
    assert "pip install iree-base-compiler==" in told
