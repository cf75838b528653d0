"""The page of text reports: its lines, and the widths of a table's columns."""

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import repeat

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hlo_lower.report.headline import summary
from hlo_lower.report.module import Totals

MINOR = ("subsets", "combiners", "guarded")
MEASURES = ("value", "ms")
LABEL = 11
"""Columns of a label in an entry."""


def new_page(width: int, *, color: bool) -> Console:
    """An empty page of this many columns, with ANSI colors or without; it prints text literally."""
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


def grid_text(
    headers: Sequence[str], rows: Iterable[Sequence[str | Text]], page: Console, styles: Iterable[str] = repeat("")
) -> str:
    """A table as it stands on an empty page, each row in its style; what measures ("value", "ms") to the right."""
    grid = new_grid()
    for header in headers:
        grid.add_column(header, overflow="fold", justify="right" if header in MEASURES else "left")
    for row, style in zip(rows, styles, strict=False):
        grid.add_row(*row, style=style)
    page.print(grid)
    return page_text(page)


def print_entry(page: Console, title: str, beside: str, lines: Iterable[tuple[str, ...]], *, is_first: bool) -> None:
    """Print an entry of a list: a title, what stands beside it, and lines, each a label, a text and perhaps a style;
    a line without a text is left out."""
    page.print(Text("" if is_first else "\n").append(title, "bold").append(f"   {beside}", "dim"))
    for label, text, *style in lines:
        if text:
            print_hanging(page, f"  {label}: ".ljust(LABEL), text, LABEL, *style)


def page_text(page: Console) -> str:
    """The text of a page, without blanks at the ends of its lines."""
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


GAP = 2
MOST_CELLS = 64


def column_widths(columns: Sequence[Sequence[str]], page: int, whole: Collection[int] = ()) -> tuple[list[int], bool]:
    """Divide a page among columns of cells, two blanks between them.

    Each column gets its longest word, those in whole their longest cell; what is left goes where it saves most lines.
    Where not even the words fit, the widest columns are cut.

    Returns:
      The widths, and whether all of that fits.
    """
    widths = [
        _longest(word for cell in column for word in ([cell] if number in whole else cell.split()))
        for number, column in enumerate(columns)
    ]
    room = page - GAP * (len(columns) - 1) - sum(widths)
    if room < 0:
        while room < 0 and max(widths) > 1:
            widths[widths.index(max(widths))] -= 1
            room += 1
        return widths, False
    counts = [_line_counter(column) for column in columns]
    while True:
        saved, more, column = max(
            ((counts[c](widths[c]) - counts[c](widths[c] + more)) / more, -more, c)
            for c in range(len(columns))
            for more in range(1, max(room, 1) + 1)
        )
        if saved <= 0 or room <= 0:
            return widths, True
        widths[column] -= more
        room += more


def line_count(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> int:
    """The number of lines of the rows, each as high as its highest cell."""
    return sum(max(_lines(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _line_counter(column: Sequence[str]) -> Callable[[int], int]:
    """How many lines the column's different cells take at a width."""
    cells = sorted(set(column))[:MOST_CELLS]

    @cache
    def lines(width: int) -> int:
        return sum(_lines(line, width) for cell in cells for line in cell.split("\n"))

    return lines


def _lines(text: str, width: int) -> int:
    count, used = 1, 0
    for word in text.split(" "):
        length = cell_len(word)
        if used and used + 1 + length > width:
            count, used = count + 1, length
        else:
            used += length + (1 if used else 0)
    return count


def _longest(texts: Iterable[str]) -> int:
    return max((cell_len(text) for text in texts), default=1)
