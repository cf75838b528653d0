"""`hlo-lower report`: the scatters of modules, classified; with --explain also why."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_NOT_LOWERED, EXIT_OK, InputError
from hlo_lower.base.whole_files import STANDARD, check_writable
from hlo_lower.cli.checks import check_explained, check_one_standard, options_from
from hlo_lower.cli.common_options import (
    add_bind,
    add_exactness,
    add_plain,
    add_policy,
    add_verbose,
    positive,
    seconds,
)
from hlo_lower.cli.inputs import module_source, selected_modules
from hlo_lower.cli.streams import complain, page_of, show, tell_written

if TYPE_CHECKING:
    from hlo_lower.lowering.options import Options
    from hlo_lower.report.module import ModuleReport

KINDS = ("insert_slice", "reduction_add", "general")
FAIL_ON = (*KINDS, "loop", "guard", "refused", "unreadable")
EXPLORER = "model-explorer"
FORMATS = ("text", "json", "markdown", "html", "github", "sarif", EXPLORER)
NAMED_FORMATS = ("text", "json", "html")
NOTES = """A folder is searched with its subfolders for files that end in .mlir, .mlirbc, .stablehlo, .vhlo, .portable,
.exported, .jax_exported or .jax, and for MLIR bytecode in .bc or .bin; hidden files are skipped. A module that
cannot be read, or that crashes its process, becomes a row with the reason, and the exit code is 2. Up to 8 modules
are shown in full; of more, each is a line unless --all is given. HTML and JSON always hold everything."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `report`."""
    command.epilog = NOTES
    command.add_argument("files", metavar="FILE", nargs="+", help="module, folder of modules, or - for standard input")
    told = f"{', '.join(FORMATS)}; default: by the suffix of OUT (.json, .md, .html, .sarif), else text"
    command.add_argument("--format", metavar="FORMAT", choices=FORMATS, help=told)
    command.add_argument("-o", "--output", metavar="OUT", default=STANDARD, help="file; default: standard output")
    command.add_argument(
        "--explain",
        metavar="N",
        action="append",
        default=[],
        type=int,
        help="show the evidence of scatter N; repeatable",
    )
    command.add_argument("--all", action="store_true", help="show every module in full, with a line for each scatter")
    told = "show the named ops (softmax, attention, ...) and near misses of each module instead, as text, JSON or HTML"
    command.add_argument("--named", action="store_true", help=told)
    command.add_argument(
        "--fail-on",
        metavar="WHAT",
        action="append",
        default=[],
        choices=FAIL_ON,
        help=f"exit 3 if there is one of these; repeatable: {', '.join(FAIL_ON)}",
    )
    command.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        help="processes that share the modules; default: one per CPU; 1 uses this process",
    )
    command.add_argument(
        "--timeout", metavar="S", type=seconds, help="give up on a module after S seconds; default: never"
    )
    add_policy(command)
    add_exactness(command)
    add_plain(command)
    add_bind(command)
    add_verbose(command)


def run(args: argparse.Namespace) -> int:
    """Classify each module, show the report, and say in the exit code whether all was well."""
    if args.named:
        return _show_named(args)
    options = options_from(args)
    check_one_standard("input", args.files)
    check_writable(args.output)
    reports = _reports(args, options)
    most = max((len(report.records) for report in reports), default=0)
    check_explained(args.explain, most, args.files)
    errors = [report.error for report in reports if report.error is not None]
    if len(errors) == len(reports):
        complain("\n".join(errors))
        return EXIT_BAD_INPUT
    _give(_node_data(reports, args) if args.format == EXPLORER else _render(reports, args), args)
    if errors:
        complain(f"{len(errors)} of {len(reports)} modules could not be read; the report says why")
    failing = [told for what in args.fail_on if (told := _failing(what, reports))]
    for told in failing:
        complain(told)
    is_error = errors and "unreadable" not in args.fail_on
    return EXIT_BAD_INPUT if is_error else EXIT_NOT_LOWERED if failing else EXIT_OK


def _give(text: str, args: argparse.Namespace) -> None:
    show(text, args.output)
    tell_written(args, args.output)


def _show_named(args: argparse.Namespace) -> int:
    import json

    from hlo_lower.named.naming import named_report, named_report_or_error
    from hlo_lower.report.named_ops import named_text, render_named_html

    form = _form(args)
    if form not in NAMED_FORMATS:
        raise InputError(
            *("report", f"--named has no format {form}"),
            facts=f"formats of --named are {', '.join(NAMED_FORMATS)}",
            next_step="--format json, or -o OUT.html",
        )
    check_writable(args.output)
    groups: list[str] = []
    if len(args.files) == 1 and not os.path.isdir(args.files[0]):
        reports = [named_report(module_source(args.files[0]), name=args.files[0])]
    else:
        selected = selected_modules(args.files)
        groups = [one.group for one in selected]
        reports = [named_report_or_error(one.source, one.file) for one in selected]
    if form == "html":
        told = render_named_html(reports, groups)
    elif form == "json":
        told = json.dumps([one.to_json() for one in reports], indent=1) + "\n"
    else:
        told = named_text(reports, **(page_of(sys.stdout) if args.output == STANDARD else {}))
    _give(told, args)
    return EXIT_BAD_INPUT if any(one.error for one in reports) else EXIT_OK


def _failing(what: str, reports: "Sequence[ModuleReport]") -> str:
    """How many there are of what is to fail on, in words; "" where there is none."""
    from hlo_lower.report.module import totals

    total = totals(reports)
    counts = {
        **{kind: (total.kinds.get(kind, 0), "scatter", f"of kind {kind}") for kind in KINDS},
        "loop": (total.looped, "scatter", "in a loop"),
        "guard": (total.guards_needed, "scatter", "with a guard"),
        "refused": (sum(one.count for one in total.refused), "op", f"that {reports[0].target} rejects"),
        "unreadable": (total.unreadable, "module", "that could not be read"),
    }
    count, noun, which = counts[what]
    return f"{count:,} {noun}{'s' * (count != 1)} {which} (--fail-on {what})" if count else ""


def _reports(args: argparse.Namespace, options: "Options") -> "Sequence[ModuleReport]":
    """A report for each module; of one that was named alone and cannot be read the error is raised."""
    from hlo_lower.api.many.modules import classify_modules, default_jobs
    from hlo_lower.cli.streams import progress

    if len(args.files) == 1 and not os.path.isdir(args.files[0]) and args.timeout is None:
        return [_classify(args, options)]
    modules = selected_modules(args.files)
    jobs = args.jobs or default_jobs(len(modules))
    how: dict[str, Any] = {"jobs": jobs, "timeout": args.timeout, "with_texts": _form(args) == "html"}
    with progress(quiet=args.quiet) as tell:
        return classify_modules(modules, options=options, progress=tell, **how)


def _classify(args: argparse.Namespace, options: "Options") -> "ModuleReport":
    import hlo_lower as hl
    from hlo_lower.api.many.survey import surveyed_report

    [file] = args.files
    return surveyed_report(hl.read(module_source(file), name=file), file, options, with_texts=_form(args) == "html")


def _render(reports: "Sequence[ModuleReport]", args: argparse.Namespace) -> str:
    from hlo_lower.report.render import render

    how: dict[str, Any] = page_of(sys.stdout) if args.output == STANDARD else {}
    how["verbose"] = args.verbose
    return render(reports, _form(args), show_all=args.all, explain=args.explain, **how)


def _form(args: argparse.Namespace) -> str:
    """The format: as it is asked for, else by the suffix of the output."""
    from hlo_lower.report.render import form_of

    return args.format or form_of(args.output, "text")


def _node_data(reports: "Sequence[ModuleReport]", args: argparse.Namespace) -> str:
    """The node data of the only module."""
    import hlo_lower as hl
    from hlo_lower.cli.model_explorer import node_data

    if len(reports) != 1 or args.bind or STANDARD in args.files:
        told = "node data are for one module, as it stands in its file"
        raise InputError(f"--format {EXPLORER}", told, next_step="name one file, without --bind")
    [report] = reports
    return node_data(hl.read(module_source(report.file), name=report.file), report)
