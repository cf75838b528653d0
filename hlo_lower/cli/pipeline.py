"""`hlo-lower pipeline`: the passes of a conversion in order, which of them a target wants, and what each does."""

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from hlo_lower.base.errors import EXIT_OK, NotLoweredError
from hlo_lower.cli.checks import options_from
from hlo_lower.cli.common_options import add_bind, add_exactness, add_linalg, add_plain, add_policy, policy_given
from hlo_lower.cli.inputs import module_source
from hlo_lower.cli.streams import page_of, show

if TYPE_CHECKING:
    from hlo_lower.lowering.options import Options
    from hlo_lower.lowering.passes import Pass, Run
    from hlo_lower.report.pipeline_table import PassRow

FORMATS = ("text", "json")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `pipeline`."""
    told = "module, or - for standard input: also print what each pass did to it"
    command.add_argument("input", metavar="MODULE", nargs="?", help=told)
    add_policy(command)
    add_exactness(command)
    add_plain(command)
    add_linalg(command)
    add_bind(command)
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the passes; with a module let them run on a copy of it, in which what has no lowering stays."""
    from hlo_lower.lowering.pipeline import PIPELINE
    from hlo_lower.report.pipeline_table import pipeline_json, render_pipeline_text

    options = replace(options_from(args), keep_unsupported=True)
    done = None if args.input is None else _run_to_the_end(args, options)
    rows = [_row(one, options, done) for one in PIPELINE]
    if args.format == "json":
        show(json.dumps(pipeline_json(rows, options.target.name, args.input), indent=1) + "\n")
    else:
        show(render_pipeline_text(rows, with_work=done is not None, **page_of(sys.stdout)))
    return EXIT_OK


def _run_to_the_end(args: argparse.Namespace, options: "Options") -> "Run":
    from hlo_lower.base.contained.status_board import lowering
    from hlo_lower.lowering.pipeline import start_run

    source = module_source(args.input)
    try:
        with lowering():
            return start_run(source, options, args.input, is_counted=True).to_the_end()
    except NotLoweredError as error:
        if error.next_step.startswith("hlo-lower report"):
            error.next_step += policy_given(args)
        raise


def _row(one: "Pass", options: "Options", run: "Run | None") -> "PassRow":
    from hlo_lower.report.pipeline_table import PassRow, PassWork

    done = None if run is None else run.done.get(one.name)
    work = None
    if run is not None and done is not None:
        work = PassWork(done.seconds, done.gone, done.built, run.changes.get(one.name, ()))
    told = one.why_not(options), one.where.text, one.after
    return PassRow(one.name, one.sentence, one.may_change.value, *told, work)
