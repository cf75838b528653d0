"""`hlo-lower conformance`: a suite of scatters on a consumer, as they are and converted, with a table of results."""

import argparse
import json

from hlo_lower.cli.common_options import add_exactness, add_former, add_oob, add_plain, positive, seconds
from hlo_lower.cli.streams import show


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `conformance`."""
    told = "the consumer: iree, litert, coreml or one of a plug-in"
    command.add_argument("--on", metavar="NAME", required=True, help=told)
    told = "what to convert for, a name or a target file; default: the consumer's own target, else stablehlo"
    command.add_argument("--target", metavar="T", help=told)
    told = "only modules with this name, FORM/COMBINER/TYPE/INDEX-TYPE, such as 'rows/add/*'; repeatable"
    command.add_argument("--only", dest="patterns", metavar="PATTERN", action="append", default=[], help=told)
    command.add_argument("--list", action="store_true", help="show the names of the modules and run nothing")
    command.add_argument("--jobs", metavar="N", type=positive, default=1, help="modules at a time; default: 1")
    told = "seconds for each version of a module; default: 180"
    command.add_argument("--timeout", metavar="S", type=seconds, default=180.0, help=told)
    add_former(command, "--limit", "--timeout", seconds)
    command.add_argument("--json", action="store_true", help="print all checks as JSON instead of the table")
    add_oob(command)
    add_exactness(command)
    add_plain(command)


def run(args: argparse.Namespace) -> int:
    """Judge the suite and show the table; 1 where a converted module is wrong, 3 where one is not taken."""
    from hlo_lower.cli.streams import progress
    from hlo_lower.consumers import consumer_named
    from hlo_lower.ops.targets import TARGETS
    from hlo_lower.testing.conformance.conformance_run import Settings, check_conformance
    from hlo_lower.testing.conformance.conformance_table import exit_code, lines, to_json
    from hlo_lower.testing.conformance.suite import select_modules

    modules = select_modules(args.patterns)
    if args.list:
        show("".join(f"{module.name}\n" for module in modules))
        return 0
    consumer = consumer_named(args.on)
    consumer.require()
    if args.target is None:
        args.target = consumer.name if any(t.name == consumer.name for t in TARGETS) else "stablehlo"
    from hlo_lower.cli.checks import options_from

    settings = Settings(consumer.name, options_from(args), args.timeout)
    with progress() as tell:
        checks = check_conformance(modules, settings, jobs=args.jobs, progress=tell)
    version = consumer.version()
    if args.json:
        told = {"consumer": consumer.name, "version": version, "target": args.target, "oob": args.oob}
        show(json.dumps(to_json(checks, told), indent=1) + "\n")
    else:
        title = f"{consumer.title} {version}, converted for {args.target}, --oob {args.oob}"
        show("\n".join(lines(title, checks)) + "\n")
    return exit_code(checks)
