"""Report every scatter of modules: one table per file, and totals.

python scripts/scatter_report.py decode.mlir prefill.mlir
python scripts/scatter_report.py --all --oob spec modules/*.mlir
"""

import shutil
import sys
from collections.abc import Sequence

from absl import app, flags

import hlo_lower as hl
from hlo_lower.errors import EXIT_BAD_INPUT, EXIT_OK, HloLowerError
from hlo_lower.report import ModuleReport, render_json, render_markdown, render_text

_FORMAT = flags.DEFINE_enum("format", "text", ["text", "json", "markdown"], "What the report is written as.")
_ALL = flags.DEFINE_bool("all", False, "One line per scatter, alike ones too.")
_TARGET = flags.DEFINE_string("target", "stablehlo", "The consumer that rules are chosen for.")
_OOB = flags.DEFINE_enum("oob", "xla", ["xla", "spec"], "What happens to updates out of bounds.")


def report_of(path: str) -> ModuleReport:
    """Classify the scatters of a file; a file that cannot be read is reported with its error."""
    try:
        graph = hl.read(path)
        records = hl.classify(graph, target=_TARGET.value, oob=_OOB.value)
    except HloLowerError as error:
        return ModuleReport(path, target=_TARGET.value, oob=_OOB.value, error=str(error))
    return ModuleReport(path, graph.op_count, records, _TARGET.value, _OOB.value)


def main(argv: Sequence[str]) -> int:
    """Print the report of all files; exit code 2 if one of them cannot be read."""
    paths = argv[1:]
    if not paths:
        raise app.UsageError("name a module: scripts/scatter_report.py FILE...")
    reports = [report_of(path) for path in paths]
    if _FORMAT.value == "json":
        print(render_json(reports), end="")
    elif _FORMAT.value == "markdown":
        print(render_markdown(reports, show_all=_ALL.value), end="")
    else:
        color = sys.stdout.isatty()
        width = shutil.get_terminal_size((160, 24)).columns
        print(render_text(reports, show_all=_ALL.value, width=width, color=color), end="")
    return EXIT_BAD_INPUT if any(report.error for report in reports) else EXIT_OK


if __name__ == "__main__":
    app.run(main)
