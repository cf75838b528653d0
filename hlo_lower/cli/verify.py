"""`hlo-lower verify`: two versions of a module, run and compared; the second one under XLA or on a consumer."""

import argparse
import json

from hlo_lower.base.whole_files import check_folder, check_writable, write_whole
from hlo_lower.cli.checks import check_one_standard, options_from
from hlo_lower.cli.common_options import (
    add_accept_runs,
    add_bind,
    add_cache,
    add_exactness,
    add_jobs,
    add_patience,
    add_plain,
    add_policy,
    add_timeout,
    count,
)
from hlo_lower.cli.inputs import archive_of, arrays_of, module_source
from hlo_lower.cli.streams import show_lines


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `verify`."""
    command.add_argument("before", metavar="BEFORE", help="module, or - for standard input")
    command.add_argument("after", metavar="AFTER", help="its other version")
    command.add_argument("--inputs", metavar="X.npz", help="arguments of the module; default: random ones")
    command.add_argument("--seed", metavar="N", type=count, default=0, help="seed of the random arguments; default: 0")
    command.add_argument("--runs", metavar="N", type=count, default=3, help="runs of the whole module; default: 3")
    told = "give each derivation more time, and show inputs that speak against it (exit code 4)"
    command.add_argument("--prove", action="store_true", help=told)
    add_accept_runs(command)
    told = "what counts as verified: proofs for all inputs (derived), or also driven runs (tested, the default)"
    command.add_argument("--require", choices=("derived", "tested"), default="tested", help=told)
    add_jobs(command)
    add_patience(command)
    add_timeout(command)
    add_cache(command)
    command.add_argument("--report", metavar="R.json", help="write the verdict as JSON")
    command.add_argument("--save-inputs", metavar="X.npz", help="write arguments on which the two differ")
    command.add_argument(
        "--on",
        metavar="NAME",
        help="run AFTER on this consumer, and compare with BEFORE under XLA: iree, litert, coreml or one of a plug-in",
    )
    add_policy(command)
    add_exactness(command)
    add_plain(command)
    add_bind(command)


def run(args: argparse.Namespace) -> int:
    """Compare, and show the verdict."""
    import hlo_lower as hl
    from hlo_lower.cli.streams import progress

    options = options_from(args)
    for path in (args.report, args.save_inputs):
        if path:
            check_writable(path)
    if args.cache is not None:
        check_folder(args.cache)
    if args.on:
        return _run_on(args)
    check_one_standard("input", [args.before, args.after])
    inputs = arrays_of(args.inputs) if args.inputs else None
    before, after = module_source(args.before), module_source(args.after)
    with progress(quiet=args.quiet) as tell:
        verdict = hl.verify(
            before,
            after,
            options=options,
            inputs=inputs,
            seed=args.seed,
            runs=args.runs,
            prove=args.prove,
            accept_runs=args.accept_runs,
            require=args.require,
            jobs=args.jobs,
            patience=args.patience,
            timeout=args.timeout,
            cache=args.cache,
            progress=tell,
        )
    if args.report:
        write_whole(args.report, f"{json.dumps(verdict.to_json(), indent=1)}\n".encode())
    found = next((region.inputs for region in verdict.regions if region.status == "differs" and region.inputs), None)
    if args.save_inputs and found is not None:
        write_whole(args.save_inputs, archive_of(found))
    if not args.quiet:
        show_lines([f"{args.before}, {args.after}: {verdict.summary()}", *verdict.lines()])
    return verdict.exit_code


def _run_on(args: argparse.Namespace) -> int:
    """Compare what a consumer computes with the second version, and show the verdict."""
    import hlo_lower as hl
    from hlo_lower.cli.streams import progress
    from hlo_lower.consumers import consumer_named
    from hlo_lower.consumers.verification import verify_on
    from hlo_lower.ir.binding import is_symbolic, open_sizes
    from hlo_lower.ir.reader import text_of
    from hlo_lower.ir.writer import to_text

    consumer = consumer_named(args.on)
    consumer.require()
    check_one_standard("input", [args.before, args.after])
    inputs = arrays_of(args.inputs) if args.inputs else None
    before = hl.bind(hl.read(module_source(args.before)), args.bind)
    after = text_of(module_source(args.after), args.after)
    if args.bind and "stablehlo." in after and is_symbolic(after):
        after = to_text(hl.bind(after, open_sizes(after, args.bind)))
    with progress(quiet=args.quiet) as tell:
        verdict = verify_on(
            consumer,
            to_text(before),
            after,
            inputs=inputs,
            seed=args.seed,
            runs=args.runs,
            progress=tell,
        )
    if not args.quiet:
        show_lines([f"{args.before}, {args.after}: {verdict.lines()[0]}", *verdict.lines()[1:]])
    return verdict.exit_code
