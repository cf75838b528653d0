"""Widths of a table's columns: no word is broken while the page has room for whole ones, and few lines are."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from rich.cells import cell_len

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
    """How many lines the rows take, each as many as its highest cell."""
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
