"""`hlo-lower ops`: what is known of each op, and what becomes of it for each target."""

import argparse
import difflib
import sys

from hlo_lower.base.errors import EXIT_OK, InputError
from hlo_lower.cli.streams import page_of, show

FORMATS = ("text", "markdown")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ops`."""
    command.add_argument("name", metavar="NAME", nargs="?", help='one op ("stablehlo.tanh" or "tanh"); default: all')
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the declarations of ops.

    Raises:
      InputError: there is no op of the name.
    """
    from hlo_lower.api.op_rows import op_rows
    from hlo_lower.report.ops_table import render_ops_markdown, render_ops_text

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
    show(render_ops_markdown(rows) if args.format == "markdown" else render_ops_text(rows, **page_of(sys.stdout)))
    return EXIT_OK
