"""`hlo-lower diff`: what changed between two modules by meaning, aligned and not by line."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_OK, InputError
from hlo_lower.base.short_forms import plural, printable
from hlo_lower.cli.checks import check_one_standard
from hlo_lower.cli.inputs import module_source
from hlo_lower.cli.streams import show, show_lines

if TYPE_CHECKING:
    from hlo_lower.verify.changes import Change, Changes

FORMATS = ("text", "json")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `diff`."""
    command.add_argument("before", metavar="BEFORE", help="module, or - for standard input")
    command.add_argument("after", metavar="AFTER", help="its other version")
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Align the two, and show what they do not have in common; the exit code is 1 where that is something."""
    check_one_standard("input", [args.before, args.after])
    from hlo_lower.ir.reader import text_of
    from hlo_lower.verify.changes import changes_between
    from hlo_lower.verify.read.program import TooLargeError

    texts = [text_of(module_source(name), name) for name in (args.before, args.after)]
    try:
        found = changes_between(*texts)
    except TooLargeError as error:
        told = f"too large to be aligned: {error}"
        raise InputError(args.before, told, next_step="cut the modules smaller, or compare them as text") from None
    if args.format == "json":
        show(json.dumps({"before": args.before, "after": args.after, **asdict(found)}, indent=1) + "\n")
    else:
        show_lines([*_lines(args.before, args.after, found)])
    return EXIT_DIFFERS if found else EXIT_OK


def _lines(before: str, after: str, found: "Changes") -> Iterator[str]:
    total = sum(change.count for change in found.changes)
    told = plural(total, "change") if total or found.interface else "no change"
    yield f"{before}, {after}: {told}; {found.same:,} of {plural(found.ops[0], 'op')} are the same, constants aside"
    yield from (f"interface: {line}" for line in found.interface)
    for number, change in enumerate(found.changes, start=1):
        yield ""
        yield from map(printable, _lines_of(number, change))


def _lines_of(number: int, change: "Change") -> Iterator[str]:
    more = f", and {change.count - 1:,} more alike" if change.count > 1 else ""
    gives = ", ".join(change.results) or ("only in the first" if change.before else "only in the second")
    yield f"{number}. {change.where}: {gives}{more}"
    yield from (f"     %arg{place} is {what}" for place, what in enumerate(change.inputs))
    for sign, places, lines in (("-", change.first, change.before), ("+", change.second, change.after)):
        if lines:
            yield f"  {sign} at {', '.join(places)}" if places else f"  {sign}"
        yield from (f"  {sign}   {line}" for line in lines)
