"""The page that text reports are written on, and lines that stay on it."""

import io

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hlo_lower.report.headline import summary
from hlo_lower.report.module import Totals

MINOR = ("subsets", "combiners", "guarded")


def new_page(width: int, *, color: bool) -> Console:
    """An empty page of this many columns, with ANSI colors or without; what is written on it is taken literally."""
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def new_grid() -> Table:
    """An empty table with a head and no frame."""
    return Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)


def text_of(page: Console, grid: Table) -> str:
    """A table as it stands on an empty page."""
    page.print(grid)
    return written(page)


def written(page: Console) -> str:
    """What stands on a page, without blanks at the ends of its lines."""
    assert isinstance(page.file, io.StringIO)
    return "".join(line.rstrip() + "\n" for line in page.file.getvalue().splitlines())


def print_summary(page: Console, total: Totals) -> None:
    """Print what totals say, a line for each title."""
    for title, line in summary(total):
        print_wrapped(page, f"  {title + ':':<10} {line}", style="dim" if title in MINOR else "")


def print_wrapped(page: Console, line: str, style: str = "") -> None:
    """Print a line; where it is too long, go on below its own indentation."""
    lead = len(line) - len(line.lstrip())
    print_hanging(page, line[:lead], line.lstrip(), lead + 4, style)


def print_hanging(page: Console, lead: str, text: str, indent: int, style: str = "") -> None:
    """Print text behind a lead; where it is too long, go on below it at an indentation."""
    for number, part in enumerate(Text(text).wrap(page, max(page.width - indent, 20)) or [Text()]):
        page.print(Text(f"{' ' * indent if number else lead}{part.plain}".rstrip(), style=style), soft_wrap=True)
