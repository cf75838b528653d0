"""Hold what a report predicts of modules against what the consumer said: precision and recall.

    hlo-lower report ../modules --target iree --format json -o report.json
    python scripts/consumer_matrix.py --on iree --out iree.json ../modules
    python scripts/predictions.py report.json iree.json

A report predicts that a module is refused where something is left in it that the target refuses once all is lowered
that can be. That came if the consumer refused the converted module or crashed, or if the module was not lowered, so
that it was not asked. What is wrong is no refusal: a report says nothing of it. What timed out is undecided.

Both are to be of one version of the tool and of the same options. Exit code 1 where a prediction is wrong, 2 for bad
usage, else 0.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from absl import app
from matrix.entry import Entry

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK, HloLowerError, InputError

CAME = ("refused", "crashed")
UNDECIDED = ("timed out", "ran")


@dataclass(frozen=True)
class Prediction:
    """One module.

    Attributes:
      module: its name in the matrix.
      predicted: the ops and element types that the report says are left, each with its remedy if it has one.
      came: what the consumer said as it refused the module, "" where it did not.
      names: the op that the consumer named, "" for none.
    """

    module: str
    predicted: tuple[str, ...]
    came: str
    names: str = ""

    @property
    def is_right(self) -> bool:
        """Whether a refusal came just where one was predicted."""
        return bool(self.predicted) == bool(self.came)

    @property
    def is_named(self) -> bool:
        """Whether the op that the consumer named is among those that are predicted."""
        return any(what.split(" (", 1)[0] == self.names for what in self.predicted)


def predictions(report: Mapping[str, Any], entries: Sequence[Entry]) -> tuple[list[Prediction], list[str]]:
    """A prediction for each judged module, and the names of those that are undecided or that the report could not read.

    Args:
      report: as `report --format json` writes it.
      entries: of the matrix; modules are matched by the ends of their paths.
    """
    read = [module for module in report["modules"] if not module["error"]]
    refused = {Path(module["file"]).with_suffix("").as_posix(): module["refused"] for module in read}
    found: list[Prediction] = []
    undecided: list[str] = []
    for entry in entries:
        [left] = [ops for file, ops in refused.items() if f"/{file}".endswith(f"/{entry.module}")] or [None]
        if entry.converted is None or left is None or entry.converted.result in UNDECIDED:
            undecided.append(entry.module)
            continue
        said = entry.not_lowered or entry.converted.message or entry.converted.result
        came = said if entry.converted.result in CAME else ""
        found.append(Prediction(entry.module, tuple(map(_told, left)), came, entry.converted.cause))
    return found, undecided


def _told(refused: Mapping[str, Any]) -> str:
    what = refused["op"] or "an element type"
    return f"{what} ({refused['remedy']})" if refused["remedy"] else what


def lines_of(found: Sequence[Prediction], undecided: Sequence[str]) -> list[str]:
    """The table and every wrong prediction, in Markdown."""
    both = [one for one in found if one.predicted and one.came]
    none_came = [one for one in found if one.predicted and not one.came]
    unforeseen = [one for one in found if one.came and not one.predicted]
    count = len(both)
    return [
        "| | refused | taken |",
        "| --- | ---: | ---: |",
        f"| predicted | {count} | {len(none_came)} |",
        f"| not predicted | {len(unforeseen)} | {len(found) - count - len(none_came) - len(unforeseen)} |",
        "",
        f"Precision {_share(count, count + len(none_came))}, recall {_share(count, count + len(unforeseen))}, "
        f"{len(found)} modules; the op that the consumer named is among those predicted in "
        f"{sum(one.is_named for one in both)} of {sum(bool(one.names) for one in both)}.",
        *(f"- right: {one.module}: {', '.join(one.predicted)}" for one in both),
        *(f"- did not come: {one.module}: {', '.join(one.predicted)}" for one in none_came),
        *(f"- not predicted: {one.module}: {one.names or one.came[:160]}" for one in unforeseen),
        *(f"- undecided: {module}" for module in undecided),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else "not measured (none)"


def _read(path: str) -> dict[str, Any]:
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read as JSON: {error}") from None


def run(report_path: str, matrix_path: str) -> int:
    """Print the table.

    Raises:
      InputError: a file is not what it is to be.
    """
    report, matrix = _read(report_path), _read(matrix_path)
    if "modules" not in report or "entries" not in matrix:
        raise InputError(report_path, "is no report in JSON, or the second file no matrix")
    found, undecided = predictions(report, [Entry.from_json(one) for one in matrix["entries"]])
    print("\n".join(lines_of(found, undecided)))
    return EXIT_OK if all(one.is_right for one in found) else EXIT_DIFFERS


def main(argv: Sequence[str]) -> int:
    """Run, with messages in the place of tracebacks."""
    if len(argv) != 3:
        raise app.UsageError("scripts/predictions.py REPORT.json MATRIX.json")
    try:
        return run(*argv[1:])
    except HloLowerError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT


if __name__ == "__main__":
    app.run(main)
