"""Library calls: what would kill the process is an error, also many times in a row."""

import os
import signal
import time

import pytest

from hlo_lower.base.contained import prober as prober_file
from hlo_lower.base.contained import status_board
from hlo_lower.base.contained.prober import Prober, probe
from hlo_lower.base.contained.status_board import is_contained
from hlo_lower.base.errors import InputError
from hlo_lower.ir import probe as server
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_bytecode

GOOD = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""
ABORTS = GOOD.replace("return %x : tensor<4xf32>", r'return %x : tensor<4xf32> loc("\FF":1:1)')
OVERFLOWS = "module { " * 50_000 + "} " * 50_000


@pytest.mark.parametrize(("text", "name"), [(ABORTS, "SIGABRT"), (OVERFLOWS, "SIGSEGV")], ids=["abort", "overflow"])
def test_what_kills_a_reader_is_an_error(text, name):
    """The message names the signal; the next module is read as if nothing had happened."""
    with pytest.raises(InputError, match=rf"^m.mlir: the process that read it died: signal {name}\n  facts: .* bytes"):
        read(text, "m.mlir")
    assert read(GOOD, contained=True).name == "<module>"


def test_an_error_is_the_one_that_reading_here_gives():
    """A child's refusal arrives as it was raised."""
    errors = []
    for contained in (True, False):
        with pytest.raises(InputError, match=r"^m\.mlir:2:10: ") as caught:
            read(GOOD.replace("%x :", "%y :"), "m.mlir", contained=contained)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("source", "probed"),
    [
        (GOOD, False),
        (GOOD.encode(), False),
        (ABORTS, True),
        (b"ML\xefR\x06", True),
        (b"\xff\x00", True),
    ],
    ids=["text", "text as bytes", "suspicious text", "bytecode", "bytes"],
)
def test_what_is_tried_in_a_child(monkeypatch, source, probed):
    """Bytes that are no text and suspicious text, unless the caller decides."""
    asked = []
    monkeypatch.setattr("hlo_lower.ir.reader.probe", lambda data, name: asked.append(name) or InputError("", "no"))
    monkeypatch.setattr("hlo_lower.ir.reader._parse_graph", lambda *_, **__: "graph")
    for contained, expected in ((None, probed), (True, True)):
        asked.clear()
        if expected:
            with pytest.raises(InputError, match="no"):
                read(source, contained=contained)
        else:
            assert read(source, contained=contained) == "graph"
        assert asked == ["<module>"] * expected


def test_a_process_that_may_die_reads_at_once(monkeypatch):
    """Within the child of the command line nothing is tried first."""
    whole = to_bytecode(read(GOOD))
    assert list(read(whole).functions) == ["main"]
    assert not is_contained()
    monkeypatch.setattr("hlo_lower.ir.reader.is_contained", lambda: True)
    monkeypatch.setattr("hlo_lower.ir.reader.probe", lambda *_: pytest.fail("tried"))
    assert list(read(whole).functions) == ["main"]


def test_a_child_that_has_gone_is_replaced():
    """One that was killed between two questions costs a new start."""
    prober = Prober()
    for _ in range(2):
        assert prober.probe(GOOD, "m") is None
        os.kill(prober._child.pid, signal.SIGKILL)
        prober._child.wait()
    prober.close()


def test_no_child_is_an_error(monkeypatch):
    """Where none can be started, the message says how to read without one."""
    monkeypatch.setattr(prober_file, "SERVER", "hlo_lower.no_such_module")
    with pytest.raises(InputError, match=r"there is no process to read it in: .*\n  next: .*contained=False"):
        Prober().probe(GOOD, "m")


def test_reading_that_takes_too_long_is_ended(monkeypatch):
    """The fork that reads is killed, and the message says how long it was given."""
    monkeypatch.setattr(status_board, "BASE_SECONDS", 0.3)
    monkeypatch.setattr(server, "_read_and_exit", lambda *_: time.sleep(600))
    start = time.monotonic()
    error = server.probe_module(GOOD, "m.mlir")
    assert str(error).startswith("m.mlir: was not read after 0 s")
    assert time.monotonic() - start < 60


def test_a_large_module_passes_through():
    """More than a pipe holds, both ways: an error line of a megabyte comes back cut by its own rules."""
    text = GOOD.replace("return", "// " + "x" * 5_000_000 + "\n  return")
    assert probe(text, "m") is None
