"""`hlo-lower rules`: the canonical form of every class, from the registry, and the costs that decide between forms."""

import argparse
import sys

from hlo_lower.cli.common_options import add_target
from hlo_lower.cli.streams import page_of, show
from hlo_lower.errors import EXIT_OK

FORMATS = ("text", "markdown")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rules`."""
    add_target(command)
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the registry's rules under a target."""
    import hlo_lower as hl
    from hlo_lower.report import render_costs_markdown, render_costs_text, render_rules_markdown, render_rules_text

    rules, costs = hl.rules(args.target), hl.costs(args.target)
    if args.format == "markdown":
        show(render_rules_markdown(rules) + "\n" + render_costs_markdown(costs))
    else:
        page = page_of(sys.stdout)
        show(render_rules_text(rules, **page) + "\n" + render_costs_text(costs, **page))
    return EXIT_OK
