"""What lowers or classifies says so on the board, so that the command's limits see it."""

from contextlib import contextmanager

import pytest

import hlo_lower as hl
from hlo_lower.api.many import survey
from hlo_lower.lowering import passes, pipeline

MODULE = "func.func public @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"


@pytest.mark.parametrize("work", [hl.lower, lambda text: hl.classify(hl.read(text))])
def test_lowering_and_classifying_are_told(work, monkeypatch):
    """The planner, where all analyses run, works between the beginning and the end that are told."""
    told = []

    @contextmanager
    def lowering():
        told.append("begins")
        yield
        told.append("ends")

    class Context(passes.Context):
        @property
        def preference(self):
            told.append("plans")
            return super().preference

    for module in (pipeline, survey):
        monkeypatch.setattr(module, "lowering", lowering)
    monkeypatch.setattr(passes, "Context", Context)
    work(MODULE)
    assert told == ["begins", "plans", "ends"]
