"""`hlo-lower rules`: the canonical form of every class, from the registry, the costs that decide between forms, and for
a target that reads linalg what becomes of everything else there."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlo_lower.base.arguments import no_rule
from hlo_lower.base.errors import EXIT_OK
from hlo_lower.cli.common_options import add_target
from hlo_lower.cli.streams import page_of, show

if TYPE_CHECKING:
    from hlo_lower.api.functions import RuleRow

FORMATS = ("text", "markdown")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rules`."""
    told = "one rule, or the rules of an op or composite, with proofs; default: a table of all"
    command.add_argument("name", metavar="NAME", nargs="?", help=told)
    add_target(command)
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the registry's rules under a target."""
    import hlo_lower as hl
    from hlo_lower.lowering.linalg.forms import FORMS
    from hlo_lower.ops.targets import target_of
    from hlo_lower.report.rules_table import (
        render_costs_markdown,
        render_costs_text,
        render_linalg_markdown,
        render_linalg_text,
        render_rules_markdown,
        render_rules_text,
    )

    rules, costs = list(hl.rules(args.target)), hl.costs(args.target)
    if args.name is not None:
        rules = _find_rules(args.name, rules)
        if args.format == "text":
            show(render_rules_text(rules, **page_of(sys.stdout), proofs=True))
            return EXIT_OK
    forms = FORMS if args.target is not None and target_of(args.target).dialect == "linalg" else ()
    if args.format == "markdown":
        told = [render_rules_markdown(rules), render_costs_markdown(costs)]
        told += [render_linalg_markdown(forms)] if forms else []
    else:
        page = page_of(sys.stdout)
        told = [render_rules_text(rules, **page), render_costs_text(costs, **page)]
        told += [render_linalg_text(forms, **page)] if forms else []
    show("\n".join(told))
    return EXIT_OK


def _find_rules(name: str, rules: "Sequence[RuleRow]") -> "list[RuleRow]":
    """The rule of this name, else the rules of a composite or an op of this name, of open sizes, too; InputError if
    there is none."""
    found = [rule for rule in rules if rule.name == name]
    found = found or [rule for rule in rules if rule.op == name or rule.op.startswith(f"{name} of ")]
    if not found:
        raise no_rule("rules", name, (rule.name for rule in rules))
    return found
