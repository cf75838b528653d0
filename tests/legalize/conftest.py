"""Modules as text, legalized and run."""

import numpy as np
import pytest

from hlo_lower.graph import read, to_text
from hlo_lower.legalize import legalize
from hlo_lower.lowerings.composite import COMPOSITE, COMPOSITE_DOMAINS, rules
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.targets import Target
from hlo_lower.verify.run import Executable

PLAIN = Target("plain", legalize=True)


@pytest.fixture(scope="session")
def registry():
    """The rules of composites alone."""
    found = CompositeLoweringRegistry({COMPOSITE: COMPOSITE_DOMAINS})
    found.extend(rules)
    found.check([PLAIN])
    return found


@pytest.fixture
def legalized(registry):
    """Legalize text: the new text and the changes."""

    def run(text, target=PLAIN):
        graph = read(text, "module.mlir", contained=False)
        changes = legalize(graph, target, registry)
        return to_text(graph), changes

    return run


@pytest.fixture
def results():
    """Run a module under XLA on arrays."""

    def run(text, *arguments):
        return Executable(text, "exact").run([np.asarray(a) for a in arguments])

    return run
