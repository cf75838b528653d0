"""`hlo-lower tile`: what is large computed in loops over tiles, until XLA needs no more than a bound; verified."""

import argparse
import json
import time
from typing import TYPE_CHECKING, Any

from hlo_lower.api.module_forms import written_bytes
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK, InputError
from hlo_lower.base.whole_files import STANDARD, check_writable, write_whole
from hlo_lower.cli.checks import check_distinct, check_not_input, check_one_standard, checked_form, judge_pair
from hlo_lower.cli.common_options import add_bind, add_in_place, add_level, add_module_emit, add_oob
from hlo_lower.cli.inputs import module_source
from hlo_lower.cli.streams import complain, show_lines, tell_written

if TYPE_CHECKING:
    from hlo_lower.consumers.verification import ConsumerVerdict
    from hlo_lower.tile.by_hand import ByHand
    from hlo_lower.tile.into_loop import IntoLoop
    from hlo_lower.tile.tiled_module import Tiled
    from hlo_lower.verify import Verdict

FUSES = ("none", "producers", "all")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `tile`."""
    command.add_argument("input", metavar="IN", help="module, or - for standard input")
    command.add_argument("-o", "--output", metavar="OUT", help="file, or - for standard output")
    what = command.add_mutually_exclusive_group(required=True)
    told = "bound on the temporaries that XLA plans for its CPU (128MiB), without arguments and results"
    what.add_argument("--max-temp", metavar="BYTES", help=told)
    what.add_argument("--op", metavar="FILE:LINE", help="tile one op by hand, the largest at this place")
    told = "tile sizes of --op: 0=4,1=4; dims of its result first, then those that it sums; repeatable"
    command.add_argument("--sizes", metavar="DIM=SIZE", type=tile_sizes, action="extend", default=[], help=told)
    fused = command.add_mutually_exclusive_group()
    fused.add_argument(
        "--fuse", choices=FUSES, default="all", help="what else goes into the loop of --op; default: all"
    )
    told = "only fuse the op that makes operand N of --op; repeatable"
    fused.add_argument("--fuse-operand", metavar="N", type=operand_number, action="append", default=[], help=told)
    told = "fuse --op into this loop of the module; each iteration computes the subset that it reads"
    command.add_argument("--into", metavar="FILE:LINE", help=told)
    told = "the StableHLO that a module in linalg came from: run the result on IREE and compare with this"
    command.add_argument("--against", metavar="ORIGINAL", help=told)
    told = "print the loops of the result in the form of the structured dialects"
    command.add_argument("--print-loops", action="store_true", help=told)
    add_oob(command)
    command.add_argument("--plan", action="store_true", help="show the loops and write nothing")
    add_level(command)
    add_bind(command)
    add_in_place(command)
    add_module_emit(command)
    command.add_argument(
        "--report", metavar="R", help="also write the loops and the verdict: R.json, or R.html with drawings"
    )


def tile_sizes(text: str) -> list[tuple[int, int]]:
    """DIM=SIZE, several with commas between them."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        dim, equals, size = part.partition("=")
        if not (equals and _is_number(dim) and _is_number(size) and int(size)):
            raise argparse.ArgumentTypeError(f"{part!r} is not DIM=SIZE, as in 0=128")
        found.append((int(dim), int(size)))
    return found


def operand_number(text: str) -> int:
    """The number of an operand, from 0."""
    if not _is_number(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an operand, from 0")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def run(args: argparse.Namespace) -> int:
    """Tile, verify, write, and report; where the verdict is not good nothing is written."""
    import hlo_lower as hl
    from hlo_lower.base.memory import memory_lines
    from hlo_lower.cli.streams import progress
    from hlo_lower.tile.entry import tile
    from hlo_lower.tile.plan_search import SearchLimits, say_nothing

    _check(args)
    graph = hl.read(module_source(args.input), args.input, is_structured=bool(args.into))
    if graph.is_structured:
        _check_structured(args)
    graph = hl.bind(graph, args.bind) if args.bind else graph
    start = time.perf_counter()
    with progress(quiet=args.quiet) as tell:
        effort = None if args.timeout is None else SearchLimits(seconds=args.timeout)
        say = say_nothing if args.quiet else complain
        tiled = tile(graph, max_temp=args.max_temp, by_hand=_by_hand(args), progress=tell, effort=effort, say=say)
    if args.plan:
        lines = [*tiled.lines()[1:], *_loops(args, tiled), *tiled.drawing_lines(), *memory_lines(tiled.memory)]
        show_lines([f"{args.input}: {tiled.summary()}", *lines])
        _report(args, tiled, None)
        tell_written(args, args.report)
        return EXIT_OK if tiled.reached else EXIT_NOT_LOWERED
    seconds = time.perf_counter() - start
    is_judged = args.verify != "off" and tiled.is_changed
    how: dict[str, Any] = {"float_mode": tiled.float_mode, "oob": args.oob}
    verdict: Verdict | ConsumerVerdict | None = None
    if is_judged:
        verdict = _on_iree(args, tiled) if graph.is_structured else judge_pair(args, graph, tiled.text, **how)
    if verdict is not None and not verdict.ok:
        complain(f"{args.input}: {verdict.summary()}; {args.output} was not written")
        complain("\n".join(f"  {line}" for line in verdict.lines()))
        return verdict.exit_code
    _write(args, tiled, verdict, seconds)
    return EXIT_OK if tiled.reached else EXIT_NOT_LOWERED


def _on_iree(args: argparse.Namespace, tiled: "Tiled") -> "ConsumerVerdict":
    """The verdict on a module in linalg, run on IREE, against what it was made of."""
    import hlo_lower as hl
    from hlo_lower.cli.streams import progress
    from hlo_lower.consumers import IREE
    from hlo_lower.consumers.verification import verify_on
    from hlo_lower.ir.writer import to_text

    with progress(quiet=args.quiet) as tell:
        return verify_on(IREE, to_text(hl.read(module_source(args.against))), tiled.text, progress=tell)


def _check_structured(args: argparse.Namespace) -> None:
    """Check what only a module in linalg asks for: no judge reads one, so what it was made of is named."""
    if args.verify != "off" and not args.plan and args.against is None:
        told = "a module in linalg is verified by running it on a consumer, against the StableHLO that it came from"
        raise InputError(args.input, told, next_step="--against ORIGINAL.mlir, with IREE; or --no-verify")
    if args.output and args.emit != "text":
        raise InputError(args.output, "a module in linalg is written as text", next_step="-o OUT.mlir")


def _check(args: argparse.Namespace) -> None:
    """Check what does not need the module: outputs, the bound, and that --op and --sizes go together."""
    if args.plan == bool(args.output):
        what = "a plan is shown, not written" if args.plan else "no output is named"
        raise InputError("tile", what, next_step="-o OUT writes the module; --plan, without it, shows the loops")
    if args.output:
        args.emit = checked_form(args, "tiled")
    if args.max_temp is not None:
        from hlo_lower.tile.byte_sizes import parsed_bytes

        args.max_temp = parsed_bytes("--max-temp", args.max_temp)
    if args.into and (args.sizes or args.fuse_operand or args.fuse != "all" or not args.op):
        told = "--into fuses --op into an existing loop, and makes none"
        raise InputError("tile", told, next_step="--op llama.py:88 --into llama.py:95")
    if bool(args.op) != bool(args.sizes or args.into):
        raise InputError("tile", "--op and --sizes go together", next_step="--op llama.py:88 --sizes 0=128")
    if args.against is not None and not args.into:
        raise InputError("tile", "--against is of --into, and of a module in linalg", next_step="leave it out")
    if args.fuse_operand and not args.op:
        raise InputError("tile", "--fuse-operand is of --op", next_step="--op llama.py:88 --sizes 0=128")
    dims = [dim for dim, _ in args.sizes]
    for dim in dims:
        if dims.count(dim) > 1:
            sizes = " and ".join(str(size) for own, size in args.sizes if own == dim)
            raise InputError("tile", f"--sizes names dim {dim} twice, of {sizes}", next_step="write each dim once")
    check_one_standard("output", [args.output or "", args.report or ""])
    check_not_input(args)
    for path in (args.output, args.report):
        if path:
            check_writable(path)
    if args.output and args.report:
        check_distinct(args.output, args.report)


def _by_hand(args: argparse.Namespace) -> "ByHand | IntoLoop | None":
    import hlo_lower as hl

    if args.into:
        return hl.IntoLoop(args.op, into=args.into)
    return hl.ByHand(args.op, dict(args.sizes), args.fuse, operands=tuple(args.fuse_operand)) if args.op else None


def _loops(args: argparse.Namespace, tiled: "Tiled") -> list[str]:
    """The lines of `--print-loops`."""
    from hlo_lower.tile.loop_form import print_loops
    from hlo_lower.tile.read_loops import read_loops

    return print_loops(read_loops(tiled.graph)).splitlines() if args.print_loops else []


def _report(args: argparse.Namespace, tiled: "Tiled", verdict: "Verdict | ConsumerVerdict | None") -> None:
    from hlo_lower.cli.plan_page import plan_page

    if not args.report:
        return
    text = plan_page(tiled, args.input)
    if not args.report.endswith(".html"):
        told = {**tiled.to_json(), "verdict": verdict.to_json() if verdict else None}
        text = f"{json.dumps(told, indent=1)}\n"
    write_whole(args.report, text.encode())


def told_of_starts(verdict: "Verdict | ConsumerVerdict | None") -> list[str]:
    """How the starts of reductions were compared, where one is not an identity."""
    from hlo_lower.verify import Verdict
    from hlo_lower.verify.module_runs import STARTS

    module = verdict.module if isinstance(verdict, Verdict) else None
    return [f"  module: {module.how}"] if module is not None and STARTS in module.how else []


def _write(
    args: argparse.Namespace, tiled: "Tiled", verdict: "Verdict | ConsumerVerdict | None", seconds: float
) -> None:
    """Write the module and the report, and tell of the loops where the module does not go."""
    _report(args, tiled, verdict)
    write_whole(args.output, written_bytes(tiled, args.emit))
    checked = (
        f"verified: {verdict.summary()}" if verdict else "not verified" if tiled.is_changed else "nothing to verify"
    )
    lines = [f"{args.input}: {tiled.summary()}   {checked}   {seconds:.1f} s", *tiled.lines()[1:]]
    lines += [*told_of_starts(verdict), *_loops(args, tiled)]
    if args.quiet:
        return
    if STANDARD in (args.output, args.report):
        complain("\n".join(lines))
    else:
        show_lines(lines)
    tell_written(args, args.output, args.report)
