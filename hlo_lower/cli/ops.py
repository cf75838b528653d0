"""`hlo-lower ops`: what is known of each op, what becomes of it for each target, and which forms of it are refused."""

import argparse
import difflib
import sys

from hlo_lower.base.errors import EXIT_OK, InputError
from hlo_lower.cli.streams import page_of, show

FORMATS = ("text", "markdown")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ops`."""
    command.add_argument("name", metavar="NAME", nargs="?", help='one op ("stablehlo.tanh" or "tanh"); default: all')
    command.add_argument(
        "--forms", action="store_true", help="print the forms of ops that refused_forms of a target file may name"
    )
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the declarations of ops, or of one; InputError if there is no op of the name."""
    from hlo_lower.api.op_rows import op_rows
    from hlo_lower.ops.quirks import QUIRKS
    from hlo_lower.report.ops_table import (
        render_forms_markdown,
        render_forms_text,
        render_ops_markdown,
        render_ops_text,
    )

    rows = op_rows()
    if args.name is not None:
        names = [row.spec.name for row in rows]
        wanted: str = args.name
        rows = tuple(row for row in rows if wanted in (row.spec.name, row.spec.short_name))
        if not rows:
            known = sorted({*names, *(name.partition(".")[2] for name in names)})
            raise InputError(
                "ops",
                f"StableHLO and chlo have no op named {wanted!r}",
                nearest=tuple(difflib.get_close_matches(wanted, known, n=3)),
                next_step="hlo-lower ops",
            )
    is_markdown = args.format == "markdown"
    if args.forms:
        shown = {row.spec.name for row in rows}
        quirks = [quirk for quirk in QUIRKS if args.name is None or not shown.isdisjoint(quirk.ops)]
        show(render_forms_markdown(quirks) if is_markdown else render_forms_text(quirks, **page_of(sys.stdout)))
    else:
        show(render_ops_markdown(rows) if is_markdown else render_ops_text(rows, **page_of(sys.stdout)))
    return EXIT_OK
