"""`hlo-lower export`: a JAX function as a StableHLO module."""

import argparse

from hlo_lower.api.module_forms import exported_bytes, form_for
from hlo_lower.base.errors import EXIT_OK
from hlo_lower.base.whole_files import STANDARD, check_writable, write_whole
from hlo_lower.cli.common_options import add_emit, setting
from hlo_lower.cli.streams import complain


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `export`."""
    command.add_argument(
        "function", metavar="FILE.py:FN", help="a function of a file, or pkg.mod:FN (models/llama.py:decode)"
    )
    command.add_argument("-o", "--output", metavar="OUT", required=True, help="file, or - for standard output")
    command.add_argument(
        "--shapes",
        metavar="SHAPE",
        nargs="+",
        help='symbolic shapes, one per argument, and constraints: "b, 2*s + 1, 64" "..." "s >= 2"; default: those of '
        'its entry in EXPORTS; of a function without one the element types, too: "f32[b, 64]" "i32[]"',
    )
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], type=setting, help="set a field of the config"
    )
    command.add_argument(
        "--plain-stablehlo",
        action="store_true",
        help="expand ops of chlo (erf, top_k, ...), for a consumer that accepts only StableHLO",
    )
    add_emit(command)


def run(args: argparse.Namespace) -> int:
    """Export the function and write it."""
    check_writable(args.output)  # before JAX is imported and the function traced
    from hlo_lower.ir.export.load import load_function

    target = load_function(args.function, dict(args.set), args.shapes)
    exported = target.export(args.shapes, plain_stablehlo=args.plain_stablehlo)
    form = args.emit or form_for(args.output)
    data = exported_bytes(exported, form)
    write_whole(args.output, data)
    if not exported.out_avals:
        complain(f"{args.function} returns nothing: the module has no result\n  next:    return what it computes")
    if args.output != STANDARD and not args.quiet:
        print(f"{args.output}   {form} of {args.function}, {len(data):,} bytes")
    return EXIT_OK
