"""A parser whose errors come with the usage of the command that they are about, and with what is near to a mistake."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from hlo_lower.base.errors import EXIT_BAD_INPUT

PARSER = "parser"
"""Where a parsed command line holds the parser of its command."""


class CommandParser(argparse.ArgumentParser):
    """A parser of a command line, or of one command of it; options are not abbreviated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.set_defaults(**{PARSER: self})

    def parsed(self, line: Sequence[str] | None) -> argparse.Namespace:
        """What a command line says; of an empty one help says it, and what is not known is an error of its command."""
        if not (sys.argv[1:] if line is None else line):
            self.print_help(sys.stderr)
            self.exit(EXIT_BAD_INPUT)
        found, unknown = self.parse_known_args(line)
        if unknown:
            getattr(found, PARSER).refuse(unknown[0])
        return found

    def refuse(self, argument: str) -> NoReturn:
        """Exit with an error about an argument that is not known."""
        name = argument.partition("=")[0]
        options = [option for action in self._actions for option in action.option_strings]
        self.error(f"there is no argument {name}{_near(name, options)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            told = f"there is no {value!r}; choose from {', '.join(choices)}{_near(str(value), choices)}"
            raise argparse.ArgumentError(action, told)


def _near(name: str, choices: Iterable[str]) -> str:
    """A line that says what may have been meant; "" where nothing is near."""
    found = get_close_matches(name, list(choices), n=1)
    return f"\n  next:    did you mean {found[0]}?" if found else ""
