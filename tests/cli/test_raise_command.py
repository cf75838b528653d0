"""`hlo-lower raise` and `report --named`: from arguments to files, messages and exit codes."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl


@pytest.fixture
def softmax(folder):
    """A module with a softmax, and what is almost one."""

    def function(x):
        e = jnp.exp(x - x.max(0, keepdims=True))
        return jax.nn.softmax(x), e / e.sum(1, keepdims=True)

    x = jax.ShapeDtypeStruct((4, 8), jnp.float32)
    (folder / "softmax.mlir").write_text(jax.jit(function).lower(x).as_text())
    return folder


def test_a_module_is_raised_and_written_out_again(softmax, command):
    """What was found is told, and what was almost; the inverse gives plain ops."""
    done = command("raise softmax.mlir -o raised.mlir")
    assert (done.code, done.err) == (0, "")
    first, second, last = done.out.splitlines()
    assert last == "wrote raised.mlir"
    assert first.startswith("softmax.mlir: 1 named op: 1 softmax ")
    assert second == "  1 almost: hlo-lower report --named softmax.mlir says what it lacked"
    assert "hl.softmax" in (softmax / "raised.mlir").read_text()
    assert command("raise raised.mlir -o plain.mlir --inline").code == 0
    assert "composite" not in (softmax / "plain.mlir").read_text()
    assert hl.read(softmax / "plain.mlir").op_count == hl.read(softmax / "softmax.mlir").op_count


def test_what_cannot_be_raised_is_an_error(softmax, refused):
    """A name that no named op has, and a form that a raised module has not, end with what there is, and no file."""
    unknown = ("'sofmax': no named op of that name", "next:    write 'softmax'")
    refused("raise softmax.mlir -o raised.mlir --only sofmax", "", *unknown)
    refused("raise softmax.mlir -o raised.exported", "", "forms are text, bytecode, portable")
    refused("report --named softmax.mlir --format sarif")


def test_the_report_tells_what_there_is_and_what_was_almost_one(softmax, command):
    """As text, as JSON and as a page; of other formats an error."""
    done = command("report --named softmax.mlir")
    assert done.code == 0
    assert "  1 softmax(x 4x8xf32) {axis=1, empty_rows=nan}" in done.out.splitlines()
    assert "almost softmax at softmax.mlir:" in done.out
    assert "the maximum and the sum go over different axes" in done.out
    [told] = json.loads(command("report --named softmax.mlir --format json").out)
    assert [one["name"] for one in told["named"]] == ["softmax"]
    assert told["near_misses"][0]["why"]["code"] == "other_axes"
    assert command("report --named softmax.mlir -o named.html").code == 0
    assert "Named ops: softmax.mlir" in (softmax / "named.html").read_text()


def test_a_module_that_cannot_be_read_is_a_row(softmax, command):
    """Of a folder the others are told, and why it cannot be read; the exit code is that of an input that is wrong."""
    (softmax / "broken.mlir").write_text("module {")
    done = command("report --named .")
    assert done.code == 2
    assert any(line.endswith("broken.mlir: unreadable") for line in done.out.splitlines())
    assert "  1 softmax(x 4x8xf32) {axis=1, empty_rows=nan}" in done.out.splitlines()
    reports = json.loads(command("report --named . --format json").out)
    told = {Path(one["file"]).name: ("error" in one, len(one["named"])) for one in reports}
    assert (told["broken.mlir"], told["softmax.mlir"]) == ((True, 0), (False, 1))
    assert command("report --named broken.mlir").code == 2
