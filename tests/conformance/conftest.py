"""examples/consumer on the import path as its pyproject.toml describes it, and a consumer that errs."""

import os
import sys
import tomllib
from pathlib import Path

import pytest

from hlo_lower.base.installed import WITHOUT
from hlo_lower.consumers import GROUP

EXAMPLE = Path(__file__).parents[2] / "examples" / "consumer"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution of a module and one entry point, for this process and those that it starts."""
    monkeypatch.delenv(WITHOUT, raising=False)
    modules = []

    def installed(name, point, *, source=None, folder=None):
        module = name.replace("-", "_")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{point}\n")
        if source is not None:
            (tmp_path / f"{module}.py").write_text(source)
        places = [str(place) for place in (tmp_path, folder) if place is not None]
        for place in places:
            monkeypatch.syspath_prepend(place)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join((*places, os.environ.get("PYTHONPATH", ""))))
        modules.append(module)

    yield installed
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def example(install):
    """The example, installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    [(name, value)] = project["entry-points"][GROUP].items()
    install(project["name"], f"{name} = {value}", folder=EXAMPLE)


@pytest.fixture
def clamping(install):
    """A consumer in NumPy that only assigns rows, clamps their positions, dies of others, and takes no other op."""
    install("clamping-consumer", "clamping = clamping_consumer:CLAMPING", source=CLAMPING)


CLAMPING = """
import os
import numpy as np
from hlo_lower.consumers import Consumer, RefusedError

CLAMPING = Consumer("clamping", "Clamping", driver=__name__, modules_per_process=9)

def load():
    pass

def compile_module(text):
    if "stablehlo.scatter" not in text or "stablehlo.maximum" in text:
        raise RefusedError("only assignments", "stablehlo.maximum")
    def run(arguments):
        operand, updates, indices = arguments
        if abs(indices.max()) > 2 * len(operand):
            os.abort()
        result = operand.copy()
        for update, index in zip(updates, indices):
            result[min(max(int(index[0]), 0), len(operand) - 1)] = update
        return [result]
    return run
"""
