"""`hlo-lower ops`, `pipeline`, `diff` and `tile`."""

import json

import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.cli import tile as tile_command
from hlo_lower.lowering.pipeline import PIPELINE
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.tile import entry
from hlo_lower.tile.find.labels import FUSES
from hlo_lower.tile.tiled_module import TiledLoopRecord


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("round_nearest_afz", ["stablehlo.round_nearest_afz", "round_afz_to_floor", "litert lowered", "iree accepts"]),
        ("triangular_solve", ["triangular_solve_to_rows"]),
        ("chlo.erf", ["chlo_to_stablehlo"]),
        ("while", ["while_to_trips"]),
        ("scatter", ["compare_reduce"]),
        ("stablehlo.add", []),  # rules for scatters that add do not replace it
    ],
)
def test_an_op_is_shown_with_its_rules_and_targets(name, told, command):
    """Whether a rule's kind is named after its op, or its facts name the op; what a rule replaces is lowered."""
    shown = command(f"ops {name}")
    assert shown.code == 0
    assert [word for word in told if word not in shown.out] == []
    assert told or "rules:" not in shown.out


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_forms_are_shown_with_who_refuses_them(form, command, monkeypatch):
    """Each of the list, with what becomes of it and each reason; of one op its own."""
    monkeypatch.setenv("COLUMNS", "400")
    shown = command(f"ops --forms --format {form}").out
    for quirk in QUIRKS:
        told = (quirk.word, quirk.becomes, *quirk.consumers, *quirk.consumers.values())
        assert all(part in shown or part.replace("`", "") in shown for part in told), quirk.word
    shown = command(f"ops pad --forms --format {form}").out
    of_pads = [quirk.word for quirk in QUIRKS if quirk.word in shown]
    assert of_pads == [
        "pad between elements",
        "pad between wide elements",
        "pad with a computed value",
        "pad of large integers",
        "pad of complex numbers",
    ]


def test_every_pass_has_a_line(command):
    """The passes stand in order, each with what it does and whether the target or an option wants it."""
    done = command("pipeline --target litert")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.out.splitlines()[2:] if not line.startswith(" ")]
    assert [line.split()[0] for line in lines] == [one.name for one in PIPELINE]
    assert all(one.sentence in done.out for one in PIPELINE)
    assert "no: --legalize is not given" in done.out
    passes = json.loads(command("pipeline --demote-i64 --format json").out)["passes"]
    [narrow] = [one for one in passes if one["name"] == "narrow"]
    assert (narrow["wanted"], narrow["why_not"], narrow["may_change"]) == (True, "", "arguments and results")
    assert "ran" not in narrow


def test_diff_shows_what_changed_and_says_so_in_its_exit_code(command, folder):
    """By meaning: 1 and both pieces where the scatter was lowered, 0 and a line of the same module; as JSON, too."""
    assert command("convert decode.mlir -o lowered.mlir --no-verify").code == 0
    done = command("diff decode.mlir lowered.mlir")
    assert (done.code, done.err) == (1, "")
    first, _, *rest = done.out.splitlines()
    assert first.startswith("decode.mlir, lowered.mlir: 1 change; ")
    assert rest[0].startswith("1. main: result 0")
    signs = {line.split()[0] for line in rest if line.startswith(("  -", "  +"))}
    assert signs == {"-", "+"}
    assert any("stablehlo.scatter" in line for line in rest)
    same = command("diff decode.mlir decode.mlir")
    assert (same.code, len(same.out.splitlines())) == (0, 1)
    told = json.loads(command("diff decode.mlir lowered.mlir --format json").out)
    assert [one["count"] for one in told["changes"]] == [1]


def test_with_a_module_each_pass_tells_what_it_did(command):
    """The pass of scatters takes the one scatter away and builds other ops; nothing is written."""
    done = command("pipeline decode.mlir --format json")
    told = json.loads(done.out)
    passes = {one["name"]: one for one in told["passes"]}
    assert (done.code, told["module"], told["target"]) == (0, "decode.mlir", "stablehlo")
    assert passes["scatters"]["gone"]["stablehlo.scatter"] == 1
    assert passes["scatters"]["built"]["stablehlo.dynamic_update_slice"] == 1
    assert passes["scatters"]["seconds"] > 0
    assert passes["ranks"]["ran"] is False
    text = command("pipeline decode.mlir").out
    assert "-1 scatter" in text
    assert "not run: only where complex met ops" in text or "not wanted" in text


SOFTMAX = module(
    "%x: 16x4xf32, %w: 4x64xf32",
    """%a = dot_general %x, %w, contracting_dims = [1] x [0]; %b = exponential %a
    %r = dot_general %b, %w, contracting_dims = [1] x [1]""",
)


@pytest.fixture
def softmax(folder):
    """A module with one large tensor."""
    (folder / "softmax.mlir").write_text(SOFTMAX)
    return folder


def test_a_module_is_tiled(softmax, command):
    """It is tiled to a bound, verified and written, and what was done is told and reported."""
    done = command("tile softmax.mlir -o out.mlir --max-temp 2KiB --report r.json")
    assert (done.code, done.err.split(",")[0]) == (0, "plan 1 of 48")
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
    before = {*softmax.iterdir()}
    found = hl.Tiled(hl.read(SOFTMAX), (), 4096, 4096, 1, ("4.0 KiB 16x64xf32 of stablehlo.exponential",))
    asked = []
    monkeypatch.setattr(entry, "tile", lambda *_, **how: asked.append(how["by_hand"]) or found)
    command("tile softmax.mlir --op softmax.mlir:3 --sizes 0=4 --fuse none --plan")
    done = command("tile softmax.mlir --max-temp 1B --plan --report plan.html")
    assert asked == [hl.ByHand("softmax.mlir:3", {0: 4}, "none"), None]
    assert (done.code, {*softmax.iterdir()} - before) == (3, {softmax / "plan.html"})
    assert (softmax / "plan.html").read_text().startswith("<!DOCTYPE html>")
    assert "asked 1 B" in done.out.splitlines()[0]
    assert any(line.startswith("  left ") for line in done.out.splitlines())


def test_what_differs_is_not_written(softmax, command, monkeypatch):
    """A tiled module that computes something else ends in exit code 1, with its verdict and without a file."""
    before = {*softmax.iterdir()}
    loop = TiledLoopRecord("softmax.mlir:3", "[i:+4, :] of 16x64", 16, 4, 3, ("16x4xf32",), (), (), False)
    wrong = hl.Tiled(hl.read(SOFTMAX.replace("exponential", "tanh")), (loop,), 4096, 512, 2048)
    monkeypatch.setattr(entry, "tile", lambda *_, **__: wrong)
    done = command("tile softmax.mlir -o out.mlir --max-temp 2KiB --verify regions")
    assert (done.code, {*softmax.iterdir()}) == (1, before)
    assert "out.mlir was not written" in done.err


def test_the_choices_are_those_of_the_package():
    """The command line knows what can be fused without importing what tiles."""
    assert FUSES == tile_command.FUSES


def test_export_of_a_function_that_returns_nothing_says_so(command, folder):
    """The module is written, and a line says that it has no result."""
    code = 'import jax\nEXPORTS = {"f": {"args": (jax.ShapeDtypeStruct((4,), "float32"),)}}\n\n\ndef f(x):\n    x + 1\n'
    (folder / "none.py").write_text(code)
    done = command("export none.py:f -o none.mlir")
    assert (done.code, "none.py:f returns nothing" in done.err) == (0, True)
    (folder / "none.py").write_text(code.replace("    x + 1", "    return x + 1"))
    assert command("export none.py:f -o none.mlir").err == ""
