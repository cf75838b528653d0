"""Scatters that are assumed to write inside: what is spared, what is right then, and what is said of it."""

from dataclasses import replace

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.cli.main_program import main
from hlo_lower.verify.run import Executable

TILE = "%r = scatter(%o, %i, %u) <window=[0, 1], to=[0, 1], ivd=0> {assign}"
ROWS = "%r = scatter(%o, %i, %u) <window=[1], inserted=[0], to=[0], ivd=1> {add}"
POINTS = "%r = scatter(%o, %i, %u) <window=[], inserted=[0, 1], to=[0, 1], ivd=1> {add}"
FORMS = {  # operand, indices and updates, the scatter, and indices whose windows lie at the ends of the operand
    "components": ("6x9xf32", "2xi32", "2x3xf32", TILE, [4, 6]),
    "component": ("130x4xf32", "1xui8", "3x4xf32", TILE.replace("[0, 1], ivd", "[0], ivd"), [127]),
    "unsigned": ("6x9xf32", "2xui32", "2x3xf32", TILE, [4, 6]),
    "many": ("6x4xf32", "3x1xi64", "3x4xf32", ROWS, [[5], [0], [5]]),
    "implicit": ("6x4xf32", "3xi32", "3x4xf32", ROWS, [5, 0, 5]),
    "points": ("6x4xf32", "3x2xi32", "3xf32", POINTS, [[5, 3], [0, 0], [2, 3]]),
}


def form(name):
    operand, indices, updates, scatter, at = FORMS[name]
    return module(f"%o: {operand}, %i: {indices}, %u: {updates}", scatter), np.asarray(at)


def arguments_of(text, at):
    """Arguments with these indices; updates differ from the operand and from one another."""
    operand, indices, updates = Executable(text, "exact").arguments
    values = np.arange(np.prod(updates.shape), dtype=updates.dtype).reshape(updates.shape) + 1
    return [np.zeros(operand.shape, operand.dtype), at.astype(indices.dtype), values]


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("name", FORMS)
def test_windows_inside_are_written_as_before(name, oob):
    """No clamp is left, no rule guards, and at the ends of the operand the module does what it did."""
    text, at = form(name)
    lowered = hl.lower(text, oob=oob, assume_in_bounds=True)
    [record] = lowered.records
    assert (record.in_bounds, record.bounds) == ("always", Code.ASSUMED_INSIDE())
    assert hl.lower(text, oob=oob).records[0].in_bounds == "unknown"
    in_linalg = hl.lower(text, target="linalg", oob=oob, assume_in_bounds=True)
    assert in_linalg.linalg.is_complete
    assert "hlo_lower." not in lowered.text + in_linalg.text
    arguments = arguments_of(text, at)
    [expected], [found] = (Executable(t, "exact").run(arguments) for t in (text, lowered.text))
    np.testing.assert_array_equal(found, expected)
    assert (expected != arguments[0]).any()


def test_no_limit_is_greater_than_an_index_can_be():
    """Of 200 rows an i8 tells the first 128; XLA, given such a scatter, writes beyond its memory."""
    text = module("%o: 200x4xf32, %i: 1xi8, %u: 3x4xf32", TILE.replace("to=[0, 1]", "to=[0]"))
    updates = np.ones((3, 4), np.float32)
    arguments = [np.zeros((200, 4), np.float32), np.asarray([127], np.int8), updates]
    [found] = Executable(hl.lower(text, assume_in_bounds=True).text, "exact").run(arguments)
    assert (np.flatnonzero(found[:, 0]) == [127, 128, 129]).all()


def test_what_is_assumed_is_said_and_the_rest_verified(tmp_path, capsys):
    """The verdict and the notes name it; a clamp to another place is a difference; a text alone cannot be verified."""
    text, _ = form("components")
    lowered = hl.lower(text, name="tile.mlir", assume_in_bounds=True)
    told = "1 scatter is assumed to write inside, which is not verified"
    verdict = hl.verify(text, lowered)
    assert verdict.ok
    assert verdict.summary().endswith(told)
    assert lowered.notes == ("assumed, not verified: scatter #1 at tile.mlir:2 writes inside",)
    with pytest.raises(hl.InputError, match="only a Lowered knows"):
        hl.verify(text, lowered.text, assume_in_bounds=True)
    assert hl.verify(text, lowered.text).differs
    wrong = replace(lowered.assumed, text=lowered.assumed.text.replace("dense<[4, 6]>", "dense<[4, 5]>"))
    assert hl.verify(text, replace(lowered, assumed=wrong)).differs
    (tmp_path / "tile.mlir").write_text(text)
    assert main(["convert", str(tmp_path / "tile.mlir"), "-o", str(tmp_path / "out.mlir"), "--assume-in-bounds"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert told in out
    assert "assumed, not verified: scatter #1" in out


def test_what_is_not_asked_for_or_cannot_be_is_not_assumed():
    """A scatter that `skip` names stays; one that always misses its operand writes nothing, assumed or not."""
    text, _ = form("many")
    assert hl.lower(text, assume_in_bounds=True, skip="#1").notes == ()
    missing = module("%o: 4x4xf32, %u: 1x4xf32", f"%i = constant 9 : 1x1xi32; {ROWS}")
    for oob in ("xla", "spec"):
        assert hl.lower(missing, oob=oob, assume_in_bounds=True).text == hl.lower(missing, oob=oob).text
