"""`hlo-lower completion`: what a shell completes commands, options and files with."""

import argparse
from importlib import import_module
from typing import Any

from hlo_lower.base.errors import EXIT_OK, InputError
from hlo_lower.base.installed import install_line
from hlo_lower.cli.streams import show

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments of `completion`."""
    command.epilog = (
        'bash: eval "$(hlo-lower completion bash)"; the others: into a file that the shell reads at its start'
    )
    command.add_argument("shell", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell; InputError if shtab is not installed."""
    try:
        shtab: Any = import_module("shtab")
    except ImportError:
        raise InputError("completion", "shtab is not installed", next_step=install_line("completion")) from None
    from hlo_lower.cli.parser import make_parser

    show(shtab.complete(make_parser(), shell=args.shell) + "\n")
    return EXIT_OK
