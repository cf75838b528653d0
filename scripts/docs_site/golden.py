"""The golden modules as examples of the rules: each before and after, and what its scatter writes."""

import sys
from dataclasses import dataclass
from pathlib import Path

from hlo_lower.report.picture import svg_of

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from rule_examples import examples_of

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


def example(rule: str) -> Example | None:
    """The rule of a name on its example; None where it has none, since it changes nothing."""
    for found in examples_of(rule):
        told = found.told
        told.pop("target", None)
        preferred = [f"--prefer {name}" for name in told.pop("prefer", "").split(";") if name]
        trusted = ["--trust-flags"] if told.pop("trust_flags", "") == "True" else []
        asked = [f"--{name.replace('_', '-')} {value}" for name, value in told.items()]
        text = found.path.read_text().partition("\n")[2]
        before = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
        pictures = [svg_of(record, alone=True) for record in found.lowered.records[:1]]
        after = found.lowered.text if found.told.get("target") == "linalg" else found.lowered.stablehlo
        return Example(shown(before), shown(after), " ".join([*asked, *trusted, *preferred]), "".join(pictures))
    return None


def shown(text: str) -> str:
    """The beginning of a module, without the envelope that every module has."""
    lines = text.strip("\n").splitlines()
    if lines[0].startswith("module") and lines[-1] == "}":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"// ... {more:,} lines more"] if more > 0 else [])])
