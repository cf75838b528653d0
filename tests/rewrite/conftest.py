"""What several tests of rewrites set up."""

import pytest

from hlo_lower.facts.sort.sort_facts import sort_strategies
from hlo_lower.lowering import sort as lowering


@pytest.fixture
def only(monkeypatch):
    """Takes a strategy that is to be the only one."""

    def choose(strategy):
        def chosen(*args, **kwargs):
            return [facts for facts in sort_strategies(*args, **kwargs) if facts.strategy is strategy]

        monkeypatch.setattr(lowering, "sort_strategies", chosen)

    return choose
