"""`hlo-lower prove`: each rule for all index values, over a bounded family of shapes."""

import argparse

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_OK
from hlo_lower.cli.common_options import positive, seconds
from hlo_lower.cli.streams import show

FORMATS = ("text", "json")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `prove`."""
    command.add_argument("rules", nargs="*", metavar="RULE", help="rules by name, as `rules` lists them; default: all")
    told = "prove each rule on N modules, spread over its family; default: all"
    command.add_argument("--shapes", type=positive, metavar="N", help=told)
    command.add_argument(
        "--timeout", type=seconds, default=10.0, metavar="S", help="seconds for each module; default: 10"
    )
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Prove rules and show a table; 1 where a rule is refuted."""
    from hlo_lower.cli.streams import progress
    from hlo_lower.testing.prove.proof_campaign import prove_rules, render_json, render_text, rules_named
    from hlo_lower.verify.pull.solver import require

    require()
    rules = rules_named(args.rules)
    with progress() as tell:
        outcomes = prove_rules(rules, timeout_s=args.timeout, shapes=args.shapes, progress=tell)
    show(render_json(outcomes) if args.format == "json" else render_text(outcomes))
    return EXIT_DIFFERS if any(outcome.refuted for outcome in outcomes) else EXIT_OK
