"""Modules as text, legalized and run."""

import numpy as np
import pytest

from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.engine import run_stage
from hlo_lower.lowering.engine.kind import Context, Stage
from hlo_lower.lowering.kinds import default_registry, kinds_of
from hlo_lower.lowering.options import Options
from hlo_lower.ops.targets.target import Target
from hlo_lower.verify.run import Executable

PLAIN = Target("plain", legalize=True)


@pytest.fixture(scope="session")
def registry():
    """The built-in rules."""
    return default_registry()


@pytest.fixture
def legalize(registry):
    """Legalize a graph in place: the changes."""

    def run(graph, target):
        return run_stage(Context(graph, Options(target), registry), kinds_of(Stage.LEGALIZED))

    return run


@pytest.fixture
def legalized(legalize):
    """Legalize text: the new text and the changes."""

    def run(text, target=PLAIN):
        graph = read(text, "module.mlir", contained=False)
        changes = legalize(graph, target)
        return to_text(graph), changes

    return run


@pytest.fixture
def results():
    """Run a module under XLA on arrays."""

    def run(text, *arguments):
        return Executable(text, "exact").run([np.asarray(a) for a in arguments])

    return run
