"""--emit: the form that a module is written in."""

import argparse

from hlo_lower.module_forms import FORM_BY_SUFFIX, FORMS


def add_emit(command: argparse.ArgumentParser) -> None:
    """Add --emit."""
    by_suffix = ", ".join(f"{suffix} {form}" for suffix, form in FORM_BY_SUFFIX.items())
    command.add_argument("--emit", choices=FORMS, help=f"form of OUT; by default by its suffix: {by_suffix}")
