"""Modules of frameworks with counts that were made by reading (counted_modules.toml)."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from recall.case import Finding, finds

COUNTED = Path(__file__).with_name("counted_modules.toml")
CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "modules"
"""Where the modules are, if they are there."""


@dataclass(frozen=True)
class CountedModule:
    """A module and what it holds.

    Attributes:
      path: below the corpus.
      why: how the counts come about.
      expected: how often each op is in it.
    """

    path: str
    why: str
    expected: tuple[Finding, ...]


def counted_modules() -> list[CountedModule]:
    """All that were counted."""
    return [
        CountedModule(
            path=module["path"],
            why=module["why"],
            expected=tuple(finds(op, times) for op, times in module["counts"].items()),
        )
        for module in tomllib.loads(COUNTED.read_text())["module"]
    ]
