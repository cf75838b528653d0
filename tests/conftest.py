"""XLA compiles what tests run as verification does for a single run: twice as fast, and rounded as the code says.

`XLA_FLAGS= python -m pytest` runs them as XLA compiles by default, which the sweep does as well.
"""

import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_use_fusion_emitters=false",
)

os.environ.setdefault("XLA_FLAGS", " ".join(QUICK))

# What is compiled of tests and package is kept: else each process that a test starts compiles the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if version("jax").startswith("0.7."):  # it has another name there
    import jax
    import jax.experimental

    jax.enable_x64 = jax.experimental.enable_x64

gc.set_threshold(50_000, 20, 50)  # the collector walks what was imported less often: an eighth of the time


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text().splitlines())
"""What `pytest -m slow` runs: each takes long, and other tests run each line of the package that it runs."""


def pytest_itemcollected(item):
    if item.nodeid in SLOW:
        item.add_marker(pytest.mark.slow)


def is_left_out(config):
    """Whether the sweep is left out."""
    return config.option.markexpr.startswith("not sweep")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, obj):
    """Make nothing of the sweep's tests where it is left out: together they are more than half of all."""
    marks = getattr(obj, "pytestmark", ()) if is_left_out(collector.config) else ()
    return [] if any(mark.name == "sweep" for mark in marks) else None


class Few:
    """Leave to the sweep what `few` leaves out of the cases of a test."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(collector):
        cases = yield
        if not isinstance(cases, list):
            return cases
        own = [case for case in cases if case.get_closest_marker("few") and not case.get_closest_marker("sweep")]
        if own:
            (count,) = own[0].get_closest_marker("few").args
            kept = {round(k * (len(own) - 1) / max(count - 1, 1)) for k in range(count)}
            for k in set(range(len(own))) - kept:
                own[k].add_marker(pytest.mark.sweep)
        if is_left_out(collector.config):
            return [case for case in cases if not case.get_closest_marker("sweep")]
        return cases


def pytest_configure(config):
    config.pluginmanager.register(Few())


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    """Each test derives and judges what it asks for: some break laws, and some count attempts."""
    yield
    if "hlo_lower.verify.region_proofs" in sys.modules:
        sys.modules["hlo_lower.verify.region_proofs"].forget_derivations()
        sys.modules["hlo_lower.verify.judges.kept"].forget_judgements()


SOON = {
    "region_proofs": {"SECONDS": 0.4, "TOTAL_SECONDS": 0.75, "PROVE_SECONDS": 2.5},
    "regions": {"TOTAL_SECONDS": 0.75, "PROVE_SECONDS": 2.5},
}
"""A quarter of the time in which users have a region derived, by module: what is not derived takes all of it."""


@pytest.fixture(autouse=True)
def _given_up_soon(request, monkeypatch):
    """What is not derived is given up soon, but in the sweep; `in_full_time` is for what takes longer to derive."""
    if request.node.get_closest_marker("sweep") or "in_full_time" in request.fixturenames:
        return
    for module, limits in SOON.items():
        if found := sys.modules.get(f"hlo_lower.verify.{module}"):
            for name, seconds in limits.items():
                monkeypatch.setattr(found, name, seconds)


@pytest.fixture
def in_full_time():
    """Regions are derived within the time that users give them."""


@pytest.fixture
def install_example(tmp_path_factory, monkeypatch):
    """Installs a package of examples/ by its name, for the test; its modules are imported anew by the next one."""
    from example_plugins import forget, put_on_path

    installed = []

    def install(name):
        installed.append(name)
        put_on_path(name, tmp_path_factory.mktemp(name), monkeypatch)

    yield install
    for name in installed:
        forget(name)


@pytest.fixture
def judged_by_runs(monkeypatch):
    """Regions are judged by runs alone: for tests of what runs show, and of who judges them."""
    from hlo_lower.verify.region_proofs import RegionProofs

    monkeypatch.setattr(RegionProofs, "may_derive", False)
