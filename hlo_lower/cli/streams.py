"""Standard output and error: how wide a page is, which signs it shows, the progress of long work, and closed pipes."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from hlo_lower.base.arguments import silent
from hlo_lower.base.whole_files import STANDARD, write_whole

PLAIN_SIGNS = str.maketrans({"─": "-", "×": "x", "·": "-"})


def page_of(stream: TextIO) -> dict[str, Any]:
    """Width and color of a stream: those of a terminal, else plain and as wide as COLUMNS says or `PLAIN_WIDTH`."""
    from hlo_lower.report.text import PLAIN_WIDTH

    terminal = stream.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if terminal else _columns(PLAIN_WIDTH)
    return {"width": max(width, 40), "color": _has_color(terminal)}


def _has_color(terminal: bool) -> bool:
    """Whether a page has colors: NO_COLOR forbids them, FORCE_COLOR asks for them where no terminal is seen."""
    return not os.environ.get("NO_COLOR") and (terminal or os.environ.get("FORCE_COLOR", "") not in ("", "0"))


def show(text: str, output: str = STANDARD) -> None:
    """Print text, or write it to a file."""
    if output == STANDARD:
        sys.stdout.write(fit(text, sys.stdout))
    else:
        write_whole(output, text.encode())


def show_lines(lines: Iterable[str]) -> None:
    """Print lines; one that is wider than the page goes on below its own indentation."""
    from hlo_lower.report.page import new_page, page_text, print_wrapped

    page = new_page(page_of(sys.stdout)["width"], color=False)
    for line in lines:
        print_wrapped(page, line)
    show(page_text(page))


def tell_written(args: argparse.Namespace, *paths: str | None) -> None:
    """Say what files were written, on standard error where another one went to standard output."""
    files = [path for path in paths if path and path != STANDARD]
    if files and not args.quiet:
        line = f"wrote {', '.join(files)}"
        complain(line) if STANDARD in paths else show(f"{line}\n")


def fit(text: str, stream: Any) -> str:
    """The text with plain signs for those that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN_SIGNS).encode(encoding, "backslashreplace").decode(encoding)
    return text


def complain(message: str) -> None:
    """Print a message on standard error; a closed one is no reason to fail."""
    with suppress(OSError):
        print(message, file=sys.stderr)


def internal_error(error: Exception) -> str:
    """The message for an error that is a mistake in hlo-lower itself."""
    told = (str(error).splitlines() or [""])[0]
    return (
        f"hlo-lower: internal error: {type(error).__name__}: {told}\n"
        "  next:    this is a mistake in hlo-lower: please report it with the module and what --debug adds"
    )


def _columns(default: int) -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else default


Tell = Callable[[str, int, int], None]


EACH = 30.0
"""Seconds between two lines of progress, where there is no terminal."""


class ProgressLines:
    """Lines of progress for a file or a log: none of what is done soon, and then one now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._told = self._start
        self._begun: dict[str, tuple[float, int]] = {}

    def tell(self, stage: str, done: int, total: int) -> None:
        """Tell how far a stage is, and how long the rest takes if it goes on so."""
        now = self._clock()
        start, before = self._begun.setdefault(stage, (now, done))
        if now - self._told < EACH:
            return
        self._told = now
        left = (now - start) * (total - done) / (done - before) if done > before else None
        rest = "" if left is None else f", about {_duration(left)} left"
        complain(f"{stage}: {done:,} of {total:,} after {_duration(now - self._start)}{rest}")


def _duration(seconds: float) -> str:
    """ "45 s", "12 min" or "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def progress(*, quiet: bool = False) -> Generator[Tell]:
    """Give a function that takes a stage, how much of it is done and how much there is.

    On a terminal nothing of it stays on screen; elsewhere it is a line on standard error now and then.
    """
    if quiet or not sys.stderr.isatty():
        yield silent if quiet else ProgressLines().tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(stage, total=total)
            bar.update(tasks[stage], completed=done, total=total)

        yield tell
