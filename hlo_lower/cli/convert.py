"""`hlo-lower convert`: the scatters of a module replaced by plain ops, verified before anything is written.

By the suffix of its output it writes the module, or what a consumer's compiler makes of that.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_lower.api.module_forms import form_for
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.base.whole_files import STANDARD, check_folder, check_writable, write_whole
from hlo_lower.cli.checks import (
    check_distinct,
    check_inputs,
    check_no_flags,
    check_not_input,
    check_one_standard,
    judge_pair,
    options_from,
)
from hlo_lower.cli.common_options import (
    ARTIFACTS,
    END,
    add_bind,
    add_emit,
    add_exactness,
    add_in_place,
    add_level,
    add_linalg,
    add_plain,
    add_policy,
    add_verbose,
    policy_given,
)
from hlo_lower.cli.convert_many import is_many, run_many
from hlo_lower.cli.inputs import arrays_of, module_source
from hlo_lower.cli.streams import complain, fit, page_of, tell_written

if TYPE_CHECKING:
    from hlo_lower.api.many.converted import Converted
    from hlo_lower.consumers.consumer import Consumer
    from hlo_lower.consumers.verification import ConsumerVerdict
    from hlo_lower.lowering.lowered import Lowered
    from hlo_lower.lowering.options import Options
    from hlo_lower.report.module import ModuleReport
    from hlo_lower.verify import Inputs, Verdict

PATTERN = "a place (llama.py:88), scope, function, number (#3) or class (kind=insert_slice), with * and ?"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `convert`."""
    told = "modules, folders of modules, or - for standard input"
    command.add_argument("input", metavar="IN", nargs="+", help=told)
    told = "file, or - for standard output; for several modules a folder, in which an interrupted command goes on; "
    told += f"with the suffix {', '.join(ARTIFACTS)} a file that the target runs; flags of its compiler follow --"
    command.add_argument("-o", "--output", metavar="OUT", required=True, help=told)
    add_policy(command)
    add_exactness(command)
    add_plain(command)
    add_linalg(command)
    add_bind(command)
    command.add_argument(
        "--only",
        metavar="LOCATION",
        action="append",
        default=[],
        help=f"lower only these scatters: {PATTERN}; repeatable",
    )
    command.add_argument(
        "--skip",
        metavar="LOCATION",
        action="append",
        default=[],
        help=f"lower all scatters except these: {PATTERN}; repeatable",
    )
    command.add_argument(
        "--keep-unsupported",
        action="store_true",
        help="write the module even if a scatter or a variant of a composite has no rule, and exit 3",
    )
    told = "assume that scatters write inside and omit guards; not verified, and the report names each scatter"
    command.add_argument("--assume-in-bounds", action="store_true", help=told)
    add_level(command)
    command.add_argument("--inputs", metavar="X.npz", help="verify the module with these arguments")
    add_emit(command)
    add_in_place(command)
    add_verbose(command)
    command.add_argument(
        "--report", metavar="R.json", help="also write the records and the verdict: R.json, R.html or R.md"
    )


def run(args: argparse.Namespace) -> int:
    """Convert, verify, write, and report; where the verdict is not good nothing is written."""
    if is_many(args.input):
        return run_many(args)
    [args.input] = args.input
    options = options_from(args)
    consumer = _check(args, options)
    inputs = arrays_of(args.inputs) if args.inputs else None
    source = module_source(args.input)
    from hlo_lower.api.many.converted import convert_source  # which imports JAX, before its clock runs

    judge = None if args.verify == "off" else partial(judge_pair, args, source, inputs=inputs)
    try:
        form, told = args.emit or form_for(args.output), args.report is not None
        found = convert_source(source, args.input, options, form, judge, with_texts=told)
    except NotLoweredError as error:
        if error.next_step.startswith("hlo-lower report"):
            error.next_step = _try(args, options, source) or error.next_step + policy_given(args)
        raise
    if found.verdict is not None and not found.verdict.ok:
        complain(f"{args.input}: {_in_words(found.verdict)}; {args.output} was not written")
        complain("\n".join(f"  {line}" for line in found.verdict.lines()))
        return found.report.exit_code
    report, data = found.report, found.data
    if consumer is not None:
        built, data = _build(args, consumer, source, found, inputs), None
        if not built.ok:
            complain(f"{args.input}: {built.summary()}; {args.output} was not written")
            for line in built.lines()[1:]:
                complain(line)
            if found.lowered.refused:
                complain(f"  next:    {_next(args, options, source)}")
            return built.exit_code
        [first, *more] = built.lines()
        told = {"path": args.output, "consumer": consumer.name, **built.to_json()}
        report = replace(report, notes=(*report.notes, f"{args.output}: {first}", *more), artifact=told)
    _write(args, data, report)
    _tell_what_is_left(args, found.lowered, source)
    return report.exit_code


def _build(
    args: argparse.Namespace, consumer: "Consumer", source: Path | bytes, found: "Converted", inputs: "Inputs"
) -> "ConsumerVerdict":
    """Have the consumer's compiler write the output, and say what became of it there."""
    from hlo_lower.cli.streams import progress
    from hlo_lower.consumers.artifacts import build_lowered, not_run

    why = not_run(args.verify, found.verdict)
    with progress() as tell:
        return build_lowered(source, found.lowered, consumer, args.output, args.passed, why, inputs, tell)


def _try(args: argparse.Namespace, options: "Options", source: Path | bytes) -> str:
    """The command line under which the target takes most of the module; "" where no option helps."""
    from hlo_lower.api.many.survey import remedy_of
    from hlo_lower.ir.reader import read

    found = remedy_of(read(source, args.input), options)
    if found is None:
        return ""
    passed = [END, *args.passed] if args.passed else []
    own = args.typed[: len(args.typed) - len(passed)]
    line = " ".join(filter(None, ("hlo-lower", shlex.join(own), *found.options, shlex.join(passed))))
    return line + (found.left_told and f"; {found.left_told}")


def _next(args: argparse.Namespace, options: "Options", source: Path | bytes) -> str:
    """What to type where a target refuses something of a module."""
    return _try(args, options, source) or f"hlo-lower report {args.input}{policy_given(args)}"


def _tell_what_is_left(args: argparse.Namespace, lowered: "Lowered", source: Path | bytes) -> None:
    """Say how many scatters were kept for want of a lowering, and what else the target refuses of the module."""
    from hlo_lower.base.change import SCATTER
    from hlo_lower.report.headline import refused_lines

    if lowered.unsupported:
        noun = "scatter" if len(lowered.records) == 1 else "scatters"
        complain(f"{lowered.unsupported:,} of {len(lowered.records):,} {noun} kept for want of a lowering")
    if others := [one for one in lowered.refused if one.op != SCATTER]:
        told = [f"{args.output} holds ops that {lowered.options.target.name} rejects", *refused_lines(others)]
        complain("\n  ".join(told) + f"\n  next:    {_next(args, lowered.options, source)}")


def _check(args: argparse.Namespace, options: "Options") -> "Consumer | None":
    """Check what is named and given; the consumer whose compiler writes the output, None where it is the module."""
    from hlo_lower.consumers import builder_of

    check_inputs(args.inputs, args.verify)
    check_one_standard("output", [args.output, args.report or ""])
    consumer = None if args.emit else builder_of(args.output, options.target.name)
    if consumer is not None:
        consumer.check_build(args.output, args.passed)
    else:
        check_no_flags(args.output, args.passed)
        check_writable(args.output)
    check_not_input(args)
    if args.report:
        check_writable(args.report)
        check_distinct(args.output, args.report)
    if args.cache is not None:
        check_folder(args.cache)
    return consumer


def _in_words(verdict: "Verdict") -> str:
    if verdict.differs:
        return "the lowered module computes something else"
    return "not everything could be verified (--accept-runs accepts runs as a proof, --no-verify does not verify)"


def _write(args: argparse.Namespace, data: bytes | None, report: "ModuleReport") -> None:
    """Write the report and the module, where there is one, and show the text report where the module does not go."""
    from hlo_lower.report.render import form_of, render
    from hlo_lower.report.text import render_text

    if args.report:
        write_whole(args.report, render([report], form_of(args.report, "json")).encode())
    if data is not None:
        write_whole(args.output, data)
    if args.quiet:
        return
    page = sys.stderr if STANDARD in (args.output, args.report) else sys.stdout
    print(fit(render_text([report], verbose=args.verbose, **page_of(page)), page), end="", file=page)
    tell_written(args, args.output, args.report)
