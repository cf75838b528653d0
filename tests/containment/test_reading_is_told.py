"""What is read has its size told from the beginning: the limit of memory is for modules of that size."""

from contextlib import contextmanager

import pytest

import hlo_lower as hl
from hlo_lower.ir import reader

MODULE = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"


@pytest.mark.parametrize("is_file", [True, False])
def test_the_size_is_told_before_anything_is_copied(is_file, monkeypatch, tmp_path):
    """A file of gigabytes takes as much for its bytes alone, and as much again as text."""
    path, told = tmp_path / "m.mlir", []
    path.write_text(MODULE)

    @contextmanager
    def reading(_, size):
        told.append(size)
        yield
        told.append("ends")

    def note(name, original):
        def noted(*args):
            told.append(name)
            return original(*args)

        monkeypatch.setattr(reader, name, noted)

    for name in ("_as_text", "could_kill", "_parsed"):
        note(name, getattr(reader, name))
    monkeypatch.setattr(reader, "reading", reading)
    hl.read(path if is_file else MODULE)
    of_file = [len(MODULE), "ends"] if is_file else []
    assert told == [*of_file, len(MODULE), "_as_text", "could_kill", "_parsed", "ends"]
