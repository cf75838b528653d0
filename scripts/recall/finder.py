"""The one place that knows how this project's recognisers are asked."""

from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from recall.case import Finding


def find(module: str) -> list[Finding]:
    """The named ops of a module, each call of a function counted; their attributes with Python's numbers.

    Raises:
      ImportError: this version of the project has no recognisers.
    """
    from hlo_lower.named import find as find_named

    return [
        Finding(match.name, {key: _plain(value) for key, value in match.attributes.items()})
        for match in find_named(module)
    ]


def fits(found: Finding, wanted: Finding) -> bool:
    """Whether it is the op that is wanted, with all attributes that are asked of it."""
    return found.op == wanted.op and all(
        _same(found.attributes.get(name), value) for name, value in wanted.attributes.items()
    )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def _same(found: Any, wanted: Any) -> bool:
    """Floats are compared as f32 rounds them: an epsilon is read from a constant of the module."""
    if isinstance(wanted, float) and isinstance(found, (int, float)):
        return bool(np.isclose(found, wanted, rtol=2e-2 if abs(wanted) < 1e-2 else 1e-3, atol=0))
    if isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
        return list(found) == list(wanted)
    return found == wanted


def raised(module: str) -> str:
    """A module with composites in the place of its named ops."""
    from hlo_lower.named.match.matches import matchers
    from hlo_lower.named.take_out.raising import find_named, raise_graph

    graph = read(module)
    with mlir.active(graph.context):
        raise_graph(graph, find_named(graph, matchers))
        return to_text(graph)
