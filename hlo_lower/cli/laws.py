"""`hlo-lower laws`: what a derivation rests on, the law of each op and the laws beyond the definitions of ops."""

import argparse
import json
import sys

from hlo_lower.base.errors import EXIT_OK
from hlo_lower.cli.streams import page_of, show

FORMATS = ("text", "markdown", "json")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `laws`."""
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Show the laws."""
    from hlo_lower.report.laws_table import laws_json, render_laws_markdown, render_laws_text

    if args.format == "json":
        show(json.dumps(laws_json(), indent=1) + "\n")
    elif args.format == "markdown":
        show(render_laws_markdown())
    else:
        show(render_laws_text(**page_of(sys.stdout)))
    return EXIT_OK
