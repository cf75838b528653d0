import pytest

from hlo_lower.verify.judges import devices, judge


@pytest.fixture(autouse=True)
def _by_runs(request):
    """What is tested here is what runs show; a module with `DERIVES = True` has derivations, too."""
    if not getattr(request.module, "DERIVES", False):
        request.getfixturevalue("judged_by_runs")


@pytest.fixture
def one_second(monkeypatch):
    """A limit of a second for each run, of which the first that is late is the last."""
    monkeypatch.setattr(devices, "LOOP_LIMIT", 1.0)
    monkeypatch.setattr(judge, "LATE_RUNS", 0)
