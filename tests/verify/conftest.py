import pytest


@pytest.fixture(autouse=True)
def _by_runs(request):
    """What is tested here is what runs show; a module with `DERIVES = True` has derivations, too."""
    if not getattr(request.module, "DERIVES", False):
        request.getfixturevalue("judged_by_runs")
