"""Searches that ask an estimate in the place of XLA, which is a process of its own for each."""

import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile import plan_search
from hlo_lower.tile.prepare.normalize import prepare


@pytest.fixture
def estimated(monkeypatch):
    """A search measures by the estimate of what is live."""

    def measured(texts, seconds=0.0):
        for number, text in enumerate(texts):
            graph = hl.read(text)
            prepare(graph)
            yield number, liveness(Dataflow(graph, default_subset_rules())).most

    monkeypatch.setattr(plan_search, "measured", measured)
