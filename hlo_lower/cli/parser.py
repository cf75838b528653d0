"""The parser: the commands in the order in which help lists them. Each command's file declares its own arguments.

Building it imports nothing but the command line itself: a command imports what it works with when it runs.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from hlo_lower.base.errors import EXIT_BAD_INPUT
from hlo_lower.cli import (
    completion,
    conformance,
    convert,
    diff,
    export,
    laws,
    ops,
    pipeline,
    prove,
    raise_named,
    report,
    rules,
    settings,
    tile,
    verify,
)
from hlo_lower.cli.common_options import END, add_quiet

PASSING_ON = ("convert",)
"""Commands that hand on what stands behind `END`."""

PARSER = "parser"
"""Where a parsed command line holds the parser of its command."""

SECTIONS = {
    "input and output": (
        *("output", "format", "emit", "in_place", "report", "save_inputs", "json", "list", "forms", "shapes", "set"),
        "plain_stablehlo",
    ),
    "what is shown": ("explain", "all", "verbose", "named", "fail_on", "plan", "print_loops"),
    "tiling": ("max_temp", "op", "sizes", "fuse", "fuse_operand", "into", "against"),
    "target": (
        *("on", "target", "oob", "float_mode", "prefer", "max_unroll", "trust_flags", "loop_ranges", "lower_all"),
        "inline",
    ),
    "changes before lowering": ("bind", "legalize", "demote_i64", "checked", "demote_f64", "widen", "one_device"),
    "linalg": ("linalg_ops", "linalg_loops", "linalg_groups"),
    "what is lowered": ("only", "skip", "patterns", "keep_unsupported", "assume_in_bounds"),
    "verification": (
        *("verify", "require", "accept_runs", "prove", "inputs", "seed", "runs", "jobs", "patience", "cache"),
        "timeout",
    ),
}
"""The sections of a command's help, each with what its options set; all others are general ones."""


class CommandParser(argparse.ArgumentParser):
    """A parser of a command line, or of one command of it; options are not abbreviated.

    Attributes:
      commands: the parsers of its commands, by name.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, allow_abbrev=False, **kwargs)
        self.set_defaults(**{PARSER: self})
        self.commands: dict[str, CommandParser] = {}

    def parse_line(self, line: Sequence[str] | None) -> argparse.Namespace:
        """Parse a command line. An empty line prints the help; an unknown argument is an error of its command."""
        if not (sys.argv[1:] if line is None else line):
            self.print_help(sys.stderr)
            self.exit(EXIT_BAD_INPUT)
        given = list(sys.argv[1:] if line is None else line)
        passed: list[str] = []
        if END in given and given[0] in PASSING_ON:
            given, passed = given[: given.index(END)], given[given.index(END) + 1 :]
        found, unknown = self.parse_known_args(given)
        if unknown:
            getattr(found, PARSER).refuse(unknown[0])
        found.passed = passed
        return found

    def format_help(self) -> str:
        """The help, with the options in sections."""
        if self.commands:
            return super().format_help()
        page, rest = self._get_formatter(), [*self._actions]
        page.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        page.add_text(self.description)
        sections = {"arguments": [one for one in rest if not one.option_strings]}
        sections |= {title: [one for one in rest if one.dest in names] for title, names in SECTIONS.items()}
        shown = [one for actions in sections.values() for one in actions]
        sections["general options"] = [one for one in rest if one not in shown]
        for title, actions in sections.items():
            page.start_section(title)
            page.add_arguments([one for one in actions if one.option_strings or title == "arguments"])
            page.end_section()
        page.add_text(self.epilog)
        return page.format_help()

    def error(self, message: str) -> NoReturn:
        """Exit with what is wrong in a line, and where help stands."""
        near = "" if "  next:    " in message else f"\n  next:    {self.prog} --help"
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: error: {message}{near}\n")

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


EXAMPLES_AND_CODES = """examples:
  hlo-lower report model.mlir --target iree               which ops stop, and what helps
  hlo-lower convert model.mlir -o out.mlir --target iree  lower, verify, write
  hlo-lower help convert                                  the options of a command

exit codes:
  0  fine
  1  the two versions of a module differ
  2  bad usage, or an input that cannot be read
  3  something was not lowered
  4  no difference was found, but some of it was only run, not verified"""


class Command(NamedTuple):
    """A command: its name, what it does in a line, its arguments, and what runs it."""

    name: str
    what: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    is_quiet: bool = False
    """Whether it prints beside what it writes, and --quiet leaves that out."""


def _help(args: argparse.Namespace) -> int:
    """Show the help of a command, or of all."""
    try:
        make_parser().parse_line([*args.command, "--help"])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _add_command_name(command: argparse.ArgumentParser) -> None:
    command.add_argument("command", metavar="COMMAND", nargs="*", help="default: all of them")


COMMANDS = (
    Command("export", "export a JAX function as StableHLO", export.add_arguments, export.run, is_quiet=True),
    Command(
        "report",
        "show what a target rejects, and how each scatter is lowered",
        report.add_arguments,
        report.run,
        is_quiet=True,
    ),
    Command(
        "convert", "lower what a target rejects, verify, and write", convert.add_arguments, convert.run, is_quiet=True
    ),
    Command(
        "verify", "show that two versions of a module compute the same", verify.add_arguments, verify.run, is_quiet=True
    ),
    Command("diff", "print what changed between two modules, by meaning", diff.add_arguments, diff.run),
    Command("tile", "compute large values in loops, to bound memory", tile.add_arguments, tile.run, is_quiet=True),
    Command(
        "raise",
        "replace the ops of a softmax, an attention, ... by one composite",
        raise_named.add_arguments,
        raise_named.run,
        is_quiet=True,
    ),
    Command("prove", "prove rules for all index values", prove.add_arguments, prove.run),
    Command("conformance", "run a suite of scatters on a consumer", conformance.add_arguments, conformance.run),
    Command("rules", "print what each rule lowers and builds, and the costs", rules.add_arguments, rules.run),
    Command("ops", "print what is known of each op, and what targets do with it", ops.add_arguments, ops.run),
    Command("laws", "print the laws that a derived verdict rests on", laws.add_arguments, laws.run),
    Command("pipeline", "print the passes of a conversion, and what each does", pipeline.add_arguments, pipeline.run),
    Command("settings", "print the settings of pyproject.toml", settings.add_arguments, settings.run),
    Command("completion", "print the completion script for a shell", completion.add_arguments, completion.run),
    Command("help", "show the help of a command", _add_command_name, _help),
)


def make_parser(given: settings.Settings | None = None) -> CommandParser:
    """The parser of `hlo-lower`; a parsed command line holds its command's function as `run`.

    Args:
      given: what the project sets, in the place of defaults.

    Raises:
      InputError: a setting is unknown, or its value wrong.
    """
    parser = CommandParser(
        prog="hlo-lower",
        description="Lower what a compiler rejects in StableHLO modules, and verify the result.",
        epilog=EXAMPLES_AND_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        description = command.what[0].upper() + command.what[1:] + "."
        own = commands.add_parser(command.name, help=command.what, description=description)
        own.set_defaults(run=command.run)
        own.add_argument("--debug", action="store_true", help="show the traceback behind an error")
        if command.is_quiet:
            add_quiet(own)
        command.add_arguments(own)
        parser.commands[command.name] = own
    if given is not None:
        settings.check_known(given, parser.commands)
        for name, own in parser.commands.items():
            given.give_to(name, own)
    return parser


class _Version(argparse.Action):
    """Look the version up only where it is asked for: that reads the installed packages' metadata."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("hlo-lower")
        except PackageNotFoundError:  # run from a checkout
            found = "(not installed)"
        print(f"{parser.prog} {found}")
        parser.exit()
