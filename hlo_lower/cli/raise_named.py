"""`hlo-lower raise`: composites in the place of named ops, or those written out again."""

import argparse
import time
from typing import TYPE_CHECKING

from hlo_lower.api.module_forms import written_bytes
from hlo_lower.base.errors import EXIT_OK, InputError
from hlo_lower.base.whole_files import STANDARD, check_writable, write_whole
from hlo_lower.cli.checks import check_not_input, check_one_standard, checked_form
from hlo_lower.cli.common_options import add_in_place, add_module_emit
from hlo_lower.cli.inputs import module_source
from hlo_lower.cli.streams import complain, show_lines, tell_written

if TYPE_CHECKING:
    from hlo_lower.named.naming import Raised


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `raise`."""
    command.add_argument("input", metavar="IN", help="module, or - for standard input")
    command.add_argument("-o", "--output", metavar="OUT", required=True, help="file, or - for standard output")
    command.add_argument("--only", metavar="NAMES", help="only these named ops: attention,rms_norm; default: all")
    command.add_argument("--target", metavar="T", help="write the composites of this target; a name or a target file")
    command.add_argument("--inline", action="store_true", help="expand named ops again: the inverse")
    add_module_emit(command)
    add_in_place(command)


def run(args: argparse.Namespace) -> int:
    """Raise, or write out, and tell of it where the module does not go."""
    import hlo_lower as hl
    from hlo_lower.named.naming import Raised
    from hlo_lower.named.record import NamedReport

    form = checked_form(args, "raised")
    check_one_standard("input", [args.input])
    check_not_input(args)
    check_writable(args.output)
    only = [name.strip() for name in args.only.split(",")] if args.only else None
    start = time.perf_counter()
    source = module_source(args.input)
    if args.inline and args.target:
        told = "--inline expands named ops, and --target writes a target's"
        raise InputError("raise", told, next_step="give one of them")
    if args.inline:
        raised = Raised(hl.inline_named(source, only=only, name=args.input), NamedReport(args.input, 0, 0, (), ()))
        told = "named ops expanded"
    else:
        raised = hl.raise_named(source, target=args.target, only=only, name=args.input)
        told = raised.summary()
    write_whole(args.output, written_bytes(raised, form))
    if not args.quiet:
        _tell(args, raised, f"{told}   {time.perf_counter() - start:.1f} s")
    return EXIT_OK


def _tell(args: argparse.Namespace, raised: "Raised", told: str) -> None:
    lines = [f"{args.input}: {told}"]
    if raised.misses:
        count = len(raised.misses)
        lines.append(
            f"  {count} almost: hlo-lower report --named {args.input} says what {'it' if count == 1 else 'they'} lacked"
        )
    if args.output == STANDARD:
        complain("\n".join(lines))
    else:
        show_lines(lines)
        tell_written(args, args.output)
