"""The golden modules as examples of the rules: each before and after, and what its scatter writes."""

import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hlo_lower as hl
from hlo_lower.report.picture import svg_of

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
MOST_LINES = 60
"""Lines of a module that are shown; of a longer one its beginning."""


@dataclass(frozen=True)
class Example:
    """A rule at work.

    Attributes:
      before, after: the module as it is given, and what the rule makes of it, as text.
      asked: the options, as on a command line; "" where none is needed.
      picture: an SVG of what a scatter writes; "" where there is nothing to draw.
    """

    before: str
    after: str
    asked: str
    picture: str


@cache
def _paths() -> dict[str, Path]:
    """The golden module of each rule: the plain one where there are several ("mask" before "mask-in_parts")."""
    kinds = list(GOLDEN.glob("kinds/*.mlir"))
    scatters = [path for path in GOLDEN.glob("*.mlir") if not path.name.startswith("refused_")]
    return {path.stem.partition("-")[0]: path for path in sorted([*kinds, *scatters], reverse=True)}


@cache
def _targets() -> dict[str, hl.Target]:
    """The targets that golden modules of other ops name, each of which refuses what is lowered."""
    return runpy.run_path(str(ROOT / "tests" / "rewrite" / "conftest.py"))["TARGETS"]


def example(rule: str) -> Example | None:
    """The rule of a name on its golden module; None where it has none, since it changes nothing."""
    path = _paths().get(rule)
    if path is None:
        return None
    head, _, text = path.read_text().partition("\n")
    options: dict[str, Any] = dict(pair.split("=", 1) for pair in head.partition("options:")[2].split())
    asked = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items() if name != "target")
    target = options.pop("target", "stablehlo")
    if "prefer" in options:
        options["prefer"] = options["prefer"].split(";")
        asked = re.sub(r"--prefer \S+", " ".join(f"--prefer {name}" for name in options["prefer"]), asked)
    if "trust_flags" in options:
        options["trust_flags"] = options["trust_flags"] == "True"
        asked = asked.replace("--trust-flags True", "--trust-flags").replace("--trust-flags False", "")
    lowered = hl.lower(path, target=_targets().get(target, target), **options)
    before = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    pictures = [svg_of(record, alone=True) for record in lowered.records[:1]]
    after = lowered.text if target == "linalg" else lowered.stablehlo
    return Example(shown(before), shown(after), asked.strip(), "".join(pictures))


def shown(text: str) -> str:
    """The beginning of a module, without the envelope that every module has."""
    lines = text.strip("\n").splitlines()
    if lines[0].startswith("module") and lines[-1] == "}":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"// ... {more:,} lines more"] if more > 0 else [])])
