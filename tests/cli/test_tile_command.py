"""`hlo-lower tile`: from arguments to files, messages and exit codes."""

import json

import pytest

import hlo_lower as hl
from hlo_lower.cli import tile as tile_command
from hlo_lower.tile.find.labels import FUSES
from hlo_lower.tile.tiled_module import TiledLoopRecord

SOFTMAX = """\
func.func public @main(%x: tensor<16x4xf32>, %w: tensor<4x64xf32>) -> tensor<16x4xf32> {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<16x4xf32>, tensor<4x64xf32>) -> tensor<16x64xf32>
  %b = stablehlo.exponential %a : tensor<16x64xf32>
  %c = stablehlo.dot_general %b, %w, contracting_dims = [1] x [1]
    : (tensor<16x64xf32>, tensor<4x64xf32>) -> tensor<16x4xf32>
  return %c : tensor<16x4xf32>
}
"""


@pytest.fixture
def softmax(folder):
    """A module with one large tensor."""
    (folder / "softmax.mlir").write_text(SOFTMAX)
    return folder


def names(folder):
    """The names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_the_main_job(softmax, command):
    """A module is tiled to a bound, verified and written, and what was done is told and reported."""
    done = command("tile softmax.mlir -o out.mlir --max-temp 2KiB --report r.json")
    assert (done.code, done.err) == (0, "")
    first, loop, last = done.out.splitlines()
    assert last == "wrote out.mlir, r.json"
    assert first.startswith("softmax.mlir: 1 loop, temporaries ")
    assert "asked 2.0 KiB   verified: 1 region" in first
    assert loop.startswith("  loop softmax.mlir:")
    report = json.loads((softmax / "r.json").read_text())
    assert (report["reached"], report["verdict"]["ok"]) == (True, True)
    assert hl.read(softmax / "out.mlir").op_count > hl.read(SOFTMAX).op_count


def test_a_plan_is_shown_and_nothing_written(softmax, command, monkeypatch):
    """A bound that is not reached is exit code 3, and what is left is told; the page alone is written."""
    before = names(softmax)
    found = hl.Tiled(hl.read(SOFTMAX), (), 4096, 4096, 1, ("4.0 KiB 16x64xf32 of stablehlo.exponential",))
    monkeypatch.setattr(hl, "tile", lambda *_, **__: found)
    done = command("tile softmax.mlir --max-temp 1B --plan --report plan.html")
    page = softmax / "plan.html"
    assert page.read_text().startswith("<!DOCTYPE html>")
    page.unlink()
    assert (done.code, names(softmax)) == (3, before)
    assert "asked 1 B" in done.out.splitlines()[0]
    assert any(line.startswith("  left ") for line in done.out.splitlines())


def test_what_differs_is_not_written(softmax, command, monkeypatch):
    """A tiled module that computes something else ends in exit code 1, with its verdict and without a file."""
    before = names(softmax)
    loop = TiledLoopRecord("softmax.mlir:3", "[i:+4, :] of 16x64", 16, 4, 3, ("16x4xf32",), (), (), False)
    wrong = hl.Tiled(hl.read(SOFTMAX.replace("exponential", "tanh")), (loop,), 4096, 512, 2048)
    monkeypatch.setattr(hl, "tile", lambda *_, **__: wrong)
    done = command("tile softmax.mlir -o out.mlir --max-temp 2KiB --verify regions")
    assert (done.code, names(softmax)) == (1, before)
    assert "out.mlir was not written" in done.err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("--max-temp 1MiB", "no output is named"),
        ("--max-temp 1MiB --plan -o out.mlir", "a plan is shown, not written"),
        ("--op softmax.mlir:3 -o out.mlir", "--op and --sizes go together"),
        ("--max-temp 1MiB --sizes 0=4 -o out.mlir", "--op and --sizes go together"),
        ("--max-temp 1XiB -o out.mlir", "is not an amount of memory"),
        ("--max-temp 1MiB -o no/out.mlir", "the folder no does not exist"),
        ("--max-temp 1MiB -o out.exported", "is not written as an Exported"),
        ("--max-temp 1MiB -o out.mlir --report out.mlir", "is also the output"),
    ],
)
def test_bad_usage(options, what, softmax, refused):
    """It is told in a few lines with the next step; nothing is compiled or written."""
    assert what in refused(f"tile softmax.mlir {options}", "", "  next:    ").splitlines()[0]


def test_bad_modules_are_refused(folder, refused):
    """What is no module, and what has symbolic sizes, is refused as by the other commands."""
    opened = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    for text, what in (("bread\n", "unknown"), (opened, "symbolic sizes")):
        (folder / "bad.mlir").write_text(text)
        assert what in refused("tile bad.mlir -o out.mlir --max-temp 1MiB").splitlines()[0]


def test_the_choices_are_those_of_the_package():
    """The command line knows what can be fused without importing what tiles."""
    assert FUSES == tile_command.FUSES
