"""Many modules on a terminal: a line for each below its folder, and a table of the folders."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hlo_lower.base.short_forms import plural, printable
from hlo_lower.report.columns import GAP, column_widths
from hlo_lower.report.headline import total_headline
from hlo_lower.report.module import ModuleReport, folders, totals
from hlo_lower.report.overview import FOLDER_HEADERS, MODULE_HEADERS, base_name, folder_rows, module_row
from hlo_lower.report.page import new_grid, print_hanging, print_summary

LONGEST_SHARE = 0.4  # of the page, for a module's name
LEAST_NAME, LEAST_TOLD = 14, 24  # cells
COUNTS = 3  # columns of numbers behind a folder's name
WHOLE = (*range(COUNTS + 1), len(FOLDER_HEADERS) - 1)


def print_modules(page: Console, reports: Sequence[ModuleReport]) -> None:
    """Print a line for each module: its counts, and its kinds with their rules or why it could not be read."""
    name, *numbers, _ = (
        max(map(cell_len, column)) for column in zip(MODULE_HEADERS, *map(_cells, reports), strict=True)
    )
    room = page.width - sum(numbers) - GAP * len(MODULE_HEADERS[1:]) - LEAST_TOLD
    widths = (min(name, max(min(int(page.width * LONGEST_SHARE), room), LEAST_NAME)), *numbers)
    page.print(Text(_lead(widths, MODULE_HEADERS[:-1]) + MODULE_HEADERS[-1], style="dim"), soft_wrap=True)
    for folder, members in folders(reports):
        scatters = plural(sum(len(report.records) for report in members), "scatter")
        counts = f"{plural(len(members), 'module')}, {scatters}"
        page.print(Text(printable(folder), style="bold").append(f"   {counts}", style="dim not bold"), soft_wrap=True)
        for report in members:
            *cells, told = _cells(report)
            lead = _lead(widths, cells)
            style = "red" if report.error is not None else "" if report.records else "dim"
            print_hanging(page, lead, told, cell_len(lead), style)


def print_folders(page: Console, reports: Sequence[ModuleReport]) -> None:
    """Print the totals of each folder: a table, or on a narrow page a few lines for each."""
    rows = folder_rows(reports)
    if not rows:
        return
    widths, fits = column_widths([*zip(FOLDER_HEADERS, *rows, strict=True)], page.width, whole=WHOLE)
    if fits:
        page.print(_grid(rows, widths))
    else:
        for folder, members in folders(reports):
            total = totals(members)
            page.print(Text(total_headline(total, printable(folder))), soft_wrap=True)
            print_summary(page, total)
    page.print()


def _grid(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Table:
    table = new_grid()
    for number, (header, width) in enumerate(zip(FOLDER_HEADERS, widths, strict=True)):
        table.add_column(header, overflow="fold", width=width, justify="right" if 0 < number <= COUNTS else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _cells(report: ModuleReport) -> tuple[str, ...]:
    """The cells of a module below its folder, indented."""
    return (f"  {base_name(report)}", *module_row(report)[1:])


def _lead(widths: Sequence[int], cells: Sequence[str]) -> str:
    """The cells before the last: the name, shortened where it must be, and numbers to the right."""
    name, *numbers = cells
    shown = _shortened(name, widths[0])
    told = "  ".join(f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
    return f"{shown}{' ' * (widths[0] - cell_len(shown))}  {told}  "


def _shortened(name: str, width: int) -> str:
    """A name without its middle where it is too long; its end is kept, in which similar ones differ."""
    if cell_len(name) <= width:
        return name
    kept = width - 3
    head, tail = name[: kept // 3], name[len(name) - (kept - kept // 3) :]
    return f"{head}...{tail}"
