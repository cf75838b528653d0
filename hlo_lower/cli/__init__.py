"""The command line: one file per command, the parser that lists them, and the entry that runs one."""

from hlo_lower.cli.main_program import main

__all__ = ["main"]
