"""`hlo-lower report`: the scatters of modules, classified; with --explain also why."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlo_lower.cli.checks import check_explained, check_one_standard, check_target
from hlo_lower.cli.inputs import module_source
from hlo_lower.cli.options import add_policy
from hlo_lower.cli.output import STANDARD, check_writable
from hlo_lower.cli.streams import complain, page_of, show, unexpected
from hlo_lower.errors import EXIT_BAD_INPUT, EXIT_NOT_LOWERED, EXIT_OK, HloLowerError

if TYPE_CHECKING:
    from hlo_lower.report import ModuleReport

KINDS = ("insert_slice", "reduction_add", "general")
FORMATS = ("text", "json", "markdown", "html")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    command.add_argument("files", metavar="FILE", nargs="+", help="module, or - for standard input")
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    command.add_argument("-o", "--output", metavar="OUT", default=STANDARD, help="file; default: standard output")
    command.add_argument(
        "--explain", metavar="N", action="append", default=[], type=int, help="evidence of scatter N; repeatable"
    )
    command.add_argument("--all", action="store_true", help="a line for each scatter, alike ones too")
    command.add_argument(
        "--fail-on", metavar="KIND", action="append", default=[], choices=KINDS, help="exit 3 where there is such a one"
    )
    add_policy(command)


def run(args: argparse.Namespace) -> int:
    """Classify each file, show the report, and say in the exit code whether all was well."""
    check_target(args.target)
    check_one_standard("input", args.files)
    check_writable(args.output)
    reports, errors = _classify_each(args)
    most = max((len(report.records) for report in reports), default=0)
    check_explained(args.explain, most, args.files)
    if len(errors) == len(reports):
        complain("\n".join(errors))
        return EXIT_BAD_INPUT
    show(_rendered(reports, args), args.output)
    if errors:
        complain(f"{len(errors)} of {len(reports)} modules could not be read; the report says why")
        return EXIT_BAD_INPUT
    if failing := sum(record.kind in args.fail_on for report in reports for record in report.records):
        noun = "scatter" if failing == 1 else "scatters"
        complain(f"{failing:,} {noun} of a kind to fail on: {', '.join(args.fail_on)}")
        return EXIT_NOT_LOWERED
    return EXIT_OK


def _classify_each(args: argparse.Namespace) -> "tuple[list[ModuleReport], list[str]]":
    """A report per file, and the messages of those that could not be read; a single file's error is raised."""
    from hlo_lower.report import ModuleReport
    from hlo_lower.report.progress import progress

    reports: list[ModuleReport] = []
    errors: list[str] = []
    with progress() as tell:
        for number, file in enumerate(args.files):
            tell("classify", number, len(args.files))
            try:
                reports.append(_classified(file, args))
            except Exception as error:
                if len(args.files) == 1:
                    raise
                errors.append(str(error) if isinstance(error, HloLowerError) else f"{file}: {unexpected(error)}")
                reports.append(ModuleReport(file, target=args.target, oob=args.oob, error=errors[-1]))
    return reports, errors


def _classified(file: str, args: argparse.Namespace) -> "ModuleReport":
    import hlo_lower as hl
    from hlo_lower.report import ModuleReport

    graph = hl.read(module_source(file), name=file)
    records = hl.classify(graph, target=args.target, oob=args.oob)
    return ModuleReport(file, graph.op_count, records, args.target, args.oob)


def _rendered(reports: "Sequence[ModuleReport]", args: argparse.Namespace) -> str:
    from hlo_lower.report import render_html, render_json, render_markdown, render_text

    if args.format == "json":
        return render_json(reports)
    how: dict[str, Any] = {"show_all": args.all, "explain": args.explain}
    if args.format == "markdown":
        return render_markdown(reports, **how)
    if args.format == "html":
        return render_html(reports, **how)
    return render_text(reports, **how, **(page_of(sys.stdout) if args.output == STANDARD else {}))
