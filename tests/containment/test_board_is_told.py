"""What reads, lowers or classifies says so on the board, with its size, so that the command's limits see it."""

from contextlib import contextmanager

import pytest

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.ir import reader
from hlo_lower.lowering import passes, pipeline

MODULE = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"


@pytest.fixture
def told():
    """What was told, in its order."""
    return []


def telling(told, module, name, begins):
    """Tell on a list where a context of a module begins and ends."""

    @contextmanager
    def context(*arguments):
        told.append(begins(*arguments))
        yield
        told.append("ends")

    return module, name, context


@pytest.mark.parametrize("work", [hl.lower, lambda text: hl.classify(hl.read(text))])
def test_lowering_and_classifying_are_told(work, told, monkeypatch):
    """The planner, where all analyses run, works between the beginning and the end that are told."""

    class Context(passes.Context):
        @property
        def preference(self):
            told.append("plans")
            return super().preference

    for module in (pipeline, survey):
        monkeypatch.setattr(*telling(told, module, "lowering", lambda: "begins"))
    monkeypatch.setattr(passes, "Context", Context)
    work(MODULE)
    assert told == ["begins", "plans", "ends"]


@pytest.mark.parametrize("is_file", [True, False])
def test_the_size_is_told_before_anything_is_copied(is_file, told, monkeypatch, tmp_path):
    """A file of gigabytes takes as much for its bytes alone, and as much again as text."""
    steps = ("_as_text", "could_kill", "_parse_graph")
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    for name in steps:
        original = getattr(reader, name)
        monkeypatch.setattr(
            reader, name, lambda *args, of=name, do=original, **how: told.append(of) or do(*args, **how)
        )
    monkeypatch.setattr(*telling(told, reader, "reading", lambda _, size: size))
    hl.read(path if is_file else MODULE)
    of_file = [len(MODULE), "ends"] if is_file else []
    assert told == [*of_file, len(MODULE), *steps, "ends"]
