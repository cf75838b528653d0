"""`hlo-lower convert` of several modules or folders, into a folder."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK, EXIT_ONLY_RUN, InputError
from hlo_lower.base.short_forms import listed
from hlo_lower.base.whole_files import STANDARD, check_folder, check_writable, write_whole
from hlo_lower.cli.checks import check_no_flags, options_from
from hlo_lower.cli.common_options import ARTIFACTS
from hlo_lower.cli.inputs import selected_modules
from hlo_lower.cli.streams import complain, page_of, show

if TYPE_CHECKING:
    from hlo_lower.report.module import ModuleReport

WORST_FIRST = (EXIT_DIFFERS, EXIT_BAD_INPUT, EXIT_NOT_LOWERED, EXIT_ONLY_RUN, EXIT_OK)
MEANINGS = {
    EXIT_OK: "converted",
    EXIT_NOT_LOWERED: "converted, with something that the target rejects",
    EXIT_ONLY_RUN: "not written: not everything could be verified",
    EXIT_BAD_INPUT: "could not be read or converted",
    EXIT_DIFFERS: "not written: they compute something else",
}

MOST_NAMED = 8
"""As many modules are named of those that are left with something."""


def is_many(names: Sequence[str]) -> bool:
    """Whether inputs are several, or a folder."""
    return len(names) > 1 or os.path.isdir(names[0])


def run_many(args: argparse.Namespace) -> int:
    """Convert each module into the folder, show a summary, and give the worst of their exit codes."""
    import hlo_lower as hl
    from hlo_lower.cli.streams import progress
    from hlo_lower.report.render import form_of, render

    _check(args)
    modules = selected_modules(args.input)
    how: dict[str, Any] = {"emit": args.emit or "text", "verify": args.verify, "accept_runs": args.accept_runs}
    how |= {"patience": args.patience, "timeout": args.timeout, "cache": args.cache}
    how["with_texts"] = args.report is not None
    with progress(quiet=args.quiet) as tell:
        options = options_from(args)
        reports = hl.convert_modules(modules, args.output, options=options, jobs=args.jobs, progress=tell, **how)
    if args.report:
        write_whole(args.report, render(reports, form_of(args.report, "json")).encode())
    if not args.quiet:
        show(render(reports, "text", **page_of(sys.stdout)), STANDARD)
        show("".join(f"{line}\n" for line in _outcomes(reports)), STANDARD)
    for report in reports:
        if report.error is not None:
            complain(report.error)
    return min((report.exit_code for report in reports), key=WORST_FIRST.index)


def _outcomes(reports: "Sequence[ModuleReport]") -> list[str]:
    counts = Counter(report.exit_code for report in reports)
    lines = [f"{counts[code]:,} {MEANINGS[code]}" for code in reversed(WORST_FIRST) if counts[code]]
    if left := [report.file for report in reports if report.exit_code == EXIT_NOT_LOWERED]:
        lines.append(f"  left in {listed(left, MOST_NAMED)}: hlo-lower report shows what, and why")
    resumed = sum(report.is_resumed for report in reports)
    return [*lines, f"{resumed:,} of them before, and not again"] if resumed else lines


def _check(args: argparse.Namespace) -> None:
    """Refuse options that are for one module alone, and an output that is not a folder."""
    for name, value in (("--only", args.only), ("--skip", args.skip), ("--inputs", args.inputs)):
        if value:
            raise InputError(name, "is for one module", next_step="convert that module by itself")
    check_no_flags(args.output, args.passed)
    if os.path.splitext(args.output)[1] in ARTIFACTS:
        told = "several modules are written into a folder, and this is the name of what one becomes"
        raise InputError(args.output, told, next_step="convert them one by one, or name a folder: -o lowered/")
    if args.output == STANDARD or (os.path.exists(args.output) and not os.path.isdir(args.output)):
        told = "several modules need a folder, and this is a file"
        raise InputError(args.output, told, next_step="name a folder, which is made where it is missing: -o lowered/")
    if args.report:
        check_writable(args.report)
    if args.cache is not None:
        check_folder(args.cache)
    for name in args.input:
        folder = name if os.path.isdir(name) else os.path.dirname(name) or "."
        if not args.in_place and os.path.realpath(folder) == os.path.realpath(args.output):
            told = "name another folder, or --in-place to replace the modules"
            raise InputError(args.output, f"is the folder of {name}, too", next_step=told)
