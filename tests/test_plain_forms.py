"""Portable input through the whole tool: legalized, narrowed, written in another dialect, and verified each time."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from untyped_mlir import module as module_of

import hlo_lower as hl
from hlo_lower.api import verified
from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK
from hlo_lower.cli import main

MODULE = module_of(
    "%x: 4xf32, %p: i64, %c: 8x4xf32",
    """%e = chlo.erf %x : 4xf32 -> 4xf32; %i = reshape %p -> 1xi64
    %r = scatter(%c, %i, %x) <window=[0], inserted=[0], to=[0]> {assign}; return %e, %r""",
)


runs_chlo = pytest.mark.skipif(
    jax.__version_info__ < (0, 10), reason="jax 0.9 does not run chlo.erf: plain form not run"
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The module as a file of the current folder."""
    (tmp_path / "m.mlir").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return Path("m.mlir")


def run(line):
    """The exit code of a command."""
    return main(line.split())


@runs_chlo
def test_what_was_made_plain_is_told_and_verified(module, capsys):
    """The report names what was legalized, narrowed and assumed, and the plain form was run; unasked all stays."""
    lowered = hl.lower(module)
    assert ("chlo.erf" in lowered.text, "tensor<i64>" in lowered.text) == (True, True)
    assert (lowered.changes, lowered.demotion, lowered.notes) == ((), None, ())
    assert run("convert m.mlir -o o.mlir --legalize --demote-i64 --report o.json") == EXIT_OK
    printed = capsys.readouterr().out
    for words in ("legalized: chlo.erf", "assumed, not checked: argument 1 of @main", "plain form 3 runs"):
        assert words in printed
    text = Path("o.mlir").read_text()
    assert "chlo." not in text
    assert "i64>" not in text.replace("array<i64", "")
    notes = json.loads(Path("o.json").read_text())["modules"][0]["notes"]
    assert [note.split(":")[0] for note in notes] == ["legalized", "narrowed", "assumed, not checked"]
    assert run("verify m.mlir o.mlir --legalize --demote-i64") == EXIT_OK
    assert run("verify m.mlir o.mlir") == EXIT_DIFFERS  # the signature is another one
    np.savez("x.npz", np.zeros(4, np.float32), np.int64(2**40), np.zeros((8, 4), np.float32))
    assert run("convert m.mlir -o x.mlir --demote-i64 --inputs x.npz") == EXIT_BAD_INPUT
    assert f"holds {2**40}, which does not fit in i32" in capsys.readouterr().err
    assert not Path("x.mlir").exists()


def test_what_a_target_accepts_as_it_is_has_no_plain_form():
    """A chlo op that stays is told, and the module as it was given is not run against itself."""
    body = "%e = chlo.square %u : 2xf32 -> 2xf32; %r = scatter(%c, %i, %e) <inserted=[0], to=[0], ivd=1> {assign}"
    text = module_of("%c: 8xf32, %i: 2x1xi32, %u: 2xf32", body, "%r")
    lowered = hl.lower(text, target="iree")
    assert [change.outcome.name for change in lowered.changes] == ["KEPT"]
    verdict = hl.verify(text, lowered, level="regions")
    assert (verdict.ok, verdict.plain) == (True, None), verdict.lines()


@runs_chlo
def test_a_wrong_plain_form_is_found(module, monkeypatch):
    """Verification compares the plain form with the module as it was given, and says so where it differs."""
    right, lowered = verified.plain_form, hl.lower(module, legalize=True)

    def wrong(*args):
        plain = right(*args)
        return replace(plain, text=plain.text.replace("stablehlo.multiply", "stablehlo.add", 1))

    assert hl.verify(module, lowered).ok
    monkeypatch.setattr(verified, "plain_form", wrong)
    verdict = hl.verify(module, lowered)
    assert (verdict.ok, verdict.plain.status) == (False, "differs")
    assert any(line.startswith("plain form: differs: result 0") for line in verdict.lines())


def test_linalg_is_verified_before_it_leaves(module, capsys):
    """A module for linalg is verified as StableHLO and written as linalg, of which JAX has no other form."""
    assert run("convert m.mlir -o o.mlir --target linalg") == EXIT_OK
    assert "linalg in named ops, complete" in capsys.readouterr().out
    text = Path("o.mlir").read_text()
    assert ("tensor.insert_slice" in text, "stablehlo" in text) == (True, False)
    generic = hl.lower(module, target="linalg", linalg_ops="generic")
    assert ("linalg.generic" in generic.text, "linalg.map" in generic.text) == (True, False)
    assert "stablehlo.dynamic_update_slice" in generic.stablehlo
    for form in (generic.portable, lambda: generic.exported):
        with pytest.raises(hl.InputError, match="not what the target linalg reads"):
            form()
    with pytest.raises(hl.InputError, match="leaves in linalg"):
        hl.jit(lambda x: x, target="linalg")


@pytest.mark.parametrize("target", [pytest.param("stablehlo", marks=pytest.mark.sweep), "iree", "linalg"])
def test_iree_runs_what_leaves(module, capsys, target):
    """On IREE each of these computes what XLA makes of the original; another value written is a difference."""
    pytest.importorskip("iree.compiler")
    pytest.importorskip("iree.runtime")
    text = hl.lower(module, target=target).text
    Path("o.mlir").write_text(text)
    assert run("verify --on iree m.mlir o.mlir") == EXIT_OK
    assert "right in 3 runs" in capsys.readouterr().out
    if target == "stablehlo":
        wrong = text.replace("compare  EQ", "compare  NE").replace("compare EQ", "compare NE")
        assert wrong != text
        Path("o.mlir").write_text(wrong)
        assert run("verify --on iree m.mlir o.mlir") == EXIT_DIFFERS
