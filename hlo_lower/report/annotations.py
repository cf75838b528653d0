"""What is wrong with modules, each thing at its place: workflow commands for GitHub, and SARIF 2.1.0 for code scanning.

Told are modules that could not be read and what their target refuses (errors), and scatters that end in the loop over
their windows (warnings). Sources: GitHub's "Workflow commands", OASIS' "Static Analysis Results Interchange Format".
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePath

from hlo_lower.report.headline import refused_lines
from hlo_lower.report.module import LOOP, ModuleReport
from hlo_lower.report.place import split_place

RULES = {
    "unreadable": "The module could not be read.",
    "refused": "The target rejects an operation or an element type of the module after lowering.",
    "loop": "A scatter is lowered to a loop over its windows.",
}
LEVELS = {"unreadable": "error", "refused": "error", "loop": "warning"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Annotation:
    """One thing that is wrong."""

    rule: str  # one of RULES
    text: str  # what, in a line
    # file, line: where; 0 where no line is known
    file: str
    line: int = 0


def annotations(reports: Sequence[ModuleReport]) -> Iterator[Annotation]:
    """What is wrong with modules, module by module."""
    for report in reports:
        if report.error is not None:
            yield Annotation("unreadable", " ".join(report.error.split()), report.file)
        for one, text in zip(report.refused, refused_lines(report.refused), strict=True):
            for place in one.places or ("",):
                yield Annotation("refused", f"{report.target}: {text}", *_place(place, report.file))
        for record in report.records:
            if record.rule == LOOP:
                told = f"scatter {record.number} ({record.kind}) is a loop over its windows"
                yield Annotation("loop", told, *_place(record.location, report.file))


def render_github(reports: Sequence[ModuleReport]) -> str:
    """Workflow commands, a line for each annotation: GitHub shows them beside the lines that they name."""
    lines: list[str] = []
    for found in annotations(reports):
        where = f"file={_escape(found.file, of_property=True)}" + (f",line={found.line}" if found.line else "")
        lines.append(f"::{LEVELS[found.rule]} {where},title=hlo-lower {found.rule}::{_escape(found.text)}\n")
    return "".join(lines)


def render_sarif(reports: Sequence[ModuleReport]) -> str:
    """A SARIF log of one run; a place without a known line is its file."""
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    driver = {"name": "hlo-lower", "version": version("hlo-lower"), "rules": rules}
    results = [
        {
            "ruleId": found.rule,
            "level": LEVELS[found.rule],
            "message": {"text": found.text},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": PurePath(found.file).as_posix()},
                        **({"region": {"startLine": found.line}} if found.line else {}),
                    }
                }
            ],
        }
        for found in annotations(reports)
    ]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def _place(place: str, module: str) -> tuple[str, int]:
    """File and line of a place ("llama.py:88"); the module's own lines have its name alone ("m.mlir:13")."""
    file, line = split_place(place)
    if not line:
        return module, 0
    return module if file == PurePath(module).name else file, int(line)


def _escape(text: str, *, of_property: bool = False) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if of_property else text
