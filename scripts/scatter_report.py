"""Report every scatter of modules, also of whole folders: a table or a line per module, and totals.

python scripts/scatter_report.py decode.mlir prefill.mlir
python scripts/scatter_report.py --jobs 8 --format html --output zoo.html zoo/ other.mlir
python scripts/scatter_report.py --all --oob spec modules/*.mlir
"""

import sys
from collections.abc import Sequence

from absl import app, flags

from hlo_lower.api.many.files import select
from hlo_lower.api.many.modules import classify_modules, default_jobs
from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_OK, HloLowerError
from hlo_lower.base.whole_files import STANDARD, check_writable
from hlo_lower.cli.streams import page_of, progress, show
from hlo_lower.report.render import FORMATS, render

_FORMAT = flags.DEFINE_enum("format", "text", FORMATS, "What the report is written as.")
_OUTPUT = flags.DEFINE_string("output", STANDARD, "The file that it is written to; - is standard output.")
_ALL = flags.DEFINE_bool("all", False, "Every module in full, one line per scatter, alike ones too.")
_TARGET = flags.DEFINE_string("target", "stablehlo", "The consumer that rules are chosen for, or the file of one.")
_OOB = flags.DEFINE_enum("oob", "xla", ["xla", "spec"], "What happens to updates out of bounds.")
_JOBS = flags.DEFINE_integer("jobs", None, "Processes that share the modules; by default as many as pay.", 1)
_TIMEOUT = flags.DEFINE_float("timeout", None, "Seconds after which a module is given up.", 0.001)


def report(paths: Sequence[str]) -> int:
    """Write the report of all modules; exit code 2 if one of them cannot be read."""
    check_writable(_OUTPUT.value)
    modules = select(paths)
    jobs = _JOBS.value or default_jobs(len(modules))
    with progress() as tell:
        reports = classify_modules(
            modules, target=_TARGET.value, oob=_OOB.value, jobs=jobs, timeout=_TIMEOUT.value, progress=tell
        )
    page = page_of(sys.stdout) if _OUTPUT.value == STANDARD else {}
    show(render(reports, _FORMAT.value, show_all=_ALL.value, **page), _OUTPUT.value)
    return EXIT_BAD_INPUT if any(report.error is not None for report in reports) else EXIT_OK


def main(argv: Sequence[str]) -> int:
    """Report the modules that the arguments name; a mistake of the user is a message and exit code 2."""
    if not argv[1:]:
        raise app.UsageError("name a module: scripts/scatter_report.py FILE...")
    try:
        return report(argv[1:])
    except HloLowerError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    app.run(main)
