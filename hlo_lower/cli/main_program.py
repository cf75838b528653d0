"""The program `hlo-lower`: run the command that the arguments name, and turn whatever happens into an exit code."""

import argparse
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hlo_lower.base.contained.supervisor import run_supervised
from hlo_lower.base.errors import EXIT_BAD_INPUT, HloLowerError
from hlo_lower.base.foreign_files import check_files
from hlo_lower.cli.parser import make_parser
from hlo_lower.cli.settings import settings_of
from hlo_lower.cli.streams import complain, internal_error

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
NAMING = ("function", "input", "files", "before", "after")
"""Arguments that name modules, or the function that is exported."""

LESS_MEMORY = "  next:    convert --no-verify runs nothing; else make the module smaller, or the machine larger"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Without arguments it is the program, and runs the command line of the process in a child: an input that kills or
    hangs jaxlib's parser ends in a message and exit code 2. With arguments it runs in the calling process.
    """
    try:
        args = make_parser(settings_of(Path.cwd())).parse_line(argv)
    except HloLowerError as error:
        complain(str(error))
        return error.exit_code
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else EXIT_BAD_INPUT
    except OSError as error:  # --version and --help print
        if (code := _exit_without_output(error)) is None:
            raise
        return code
    args.typed = sys.argv[1:] if argv is None else list(argv)
    if argv is not None:
        return _run(args)
    return run_supervised(lambda: _run(args), files=_names_given(args), tell=complain)


def _names_given(args: argparse.Namespace) -> list[str]:
    named: list[str | list[str] | None] = [getattr(args, key, None) for key in NAMING]
    return [name for value in named if value for name in ([value] if isinstance(value, str) else value)]


def _read_alone(args: argparse.Namespace) -> list[str]:
    """The modules that a command cannot do without: of several, one that cannot be read is a row of the report."""
    named: list[str | list[str] | None] = [getattr(args, key, None) for key in NAMING if key != "function"]
    alone = [value if isinstance(value, list) else [value] for value in named if value]
    return [names[0] for names in alone if len(names) == 1]


def _run(args: argparse.Namespace) -> int:
    try:
        check_files(_read_alone(args))
        code: int = args.run(args)
        sys.stdout.flush()
    except HloLowerError as error:
        if args.debug and error.__cause__ is not None:  # what a plug-in or a user's function raised
            traceback.print_exception(error.__cause__)
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return EXIT_INTERRUPTED
    except OSError as error:
        without = _exit_without_output(error)
        return _report_unexpected(args, error) if without is None else without
    except MemoryError as error:
        complain(f"hlo-lower: the memory is used up: {error or 'no more is given'}\n{LESS_MEMORY}")
        return EXIT_BAD_INPUT
    except Exception as error:
        return _report_unexpected(args, error)
    return code


def _report_unexpected(args: argparse.Namespace, error: Exception) -> int:
    if args.debug:
        traceback.print_exception(error)
    complain(internal_error(error))
    return EXIT_BAD_INPUT


def _exit_without_output(error: OSError) -> int | None:
    """The exit code where nobody reads standard output, or its disk is full, which is told; None of another error."""
    if not isinstance(error, BrokenPipeError) and error.errno != errno.ENOSPC:
        return None
    _drop_standard_output()
    if isinstance(error, BrokenPipeError):
        return EXIT_BROKEN_PIPE
    complain(f"standard output: cannot be written: {error.strerror}\n  next:    write where there is room")
    return EXIT_BAD_INPUT


def _drop_standard_output() -> None:
    """Point standard output at nothing: the reader has gone, and Python would complain when it flushes at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
