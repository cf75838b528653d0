"""The report as text: what a person reads on a terminal, and the same without color in a file or a pipe."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.english import phrase
from hlo_lower.base.memory import memory_lines
from hlo_lower.base.short_forms import by_count, plural, printable
from hlo_lower.report.explain import explain as explain_lines
from hlo_lower.report.headline import headline, list_counts, policies, total_headline
from hlo_lower.report.module import ModuleReport, folders, totals
from hlo_lower.report.overview import FOLDER_HEADERS, MODULE_HEADERS, base_name, folder_rows, is_brief, module_row
from hlo_lower.report.page import (
    GAP,
    column_widths,
    line_count,
    new_grid,
    new_page,
    page_text,
    print_hanging,
    print_summary,
    print_wrapped,
)
from hlo_lower.report.place import Group, fold, hidden_line
from hlo_lower.report.row import Cell, table_of

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
    return (f"  {base_name(report)}", *module_row(report)[1:])


def _lead(widths: Sequence[int], cells: Sequence[str]) -> str:
    """The cells before the last: the name, shortened where it must be, and numbers to the right."""
    name, *numbers = cells
    shown = _shorten_name(name, widths[0])
    told = "  ".join(f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True))
    return f"{shown}{' ' * (widths[0] - cell_len(shown))}  {told}  "


def _shorten_name(name: str, width: int) -> str:
    """A name without its middle where it is too long; its end is kept, in which similar ones differ."""
    if cell_len(name) <= width:
        return name
    kept = width - 3
    head, tail = name[: kept // 3], name[len(name) - (kept - kept // 3) :]
    return f"{head}...{tail}"


PLAIN_WIDTH = 160
FEW_LINES = 6  # lines of what is lowered that are shown as they are
FACTS = 6  # columns behind the numbers
MOST_WRAPPED = 1.25  # lines per row
STYLES = {
    "insert_slice": "green",
    "reduction_add": "cyan",
    "general": "yellow",
    "proved": "green",
    "guarded": "yellow",
    "none": "bold red",
    "error": "bold red",
}


def render_text(
    reports: Sequence[ModuleReport],
    *,
    show_all: bool = False,
    explain: Collection[int] = (),
    verbose: bool = False,
    width: int = PLAIN_WIDTH,
    color: bool = False,
) -> str:
    """Render modules as tables, a summary below each, and totals by folder and over all where there are several.

    More than `FEW` modules are a line each, unless all of them are asked for. The scatters whose numbers are in
    `explain` are explained below the table of their module, or of all modules. What is lowered besides scatters is
    summed up by rule where it is more than `FEW_LINES`, unless verbose.
    """
    page = new_page(width, color=color)
    if is_brief(reports, show_all=show_all):
        page.print(Text(policies(reports), style="dim"), soft_wrap=True)
        print_modules(page, reports)
        for report in reports:
            _print_explanations(page, report, explain)
    else:
        for number, report in enumerate(reports):
            if number:
                page.print()
            _module(page, report, show_all=show_all, explain=explain, verbose=verbose)
    if len(reports) > 1:
        total = totals(reports)
        page.print()
        print_folders(page, reports)
        page.print(Text(total_headline(total), style="bold"))
        print_summary(page, total)
    return page_text(page)


def _module(page: Console, report: ModuleReport, *, show_all: bool, explain: Collection[int], verbose: bool) -> None:
    _headline(page, headline(report), is_error=report.error is not None)
    if report.records:
        groups = fold(report.records, show_all=show_all)
        page.print(_table(groups, page.width))
        if hidden := hidden_line(groups):
            page.print(Text(f"  {hidden}", style="dim"))
    _print_explanations(page, report, explain)
    print_summary(page, report.totals())
    for note in report.notes if verbose else _summed_up(report):
        print_wrapped(page, f"  {note}")


def _summed_up(report: ModuleReport) -> list[str]:
    """The notes; many lines of what is lowered as one for each rule: how many ops, and their names."""
    lowered = {str(change): change for change in report.changes if change.outcome is Outcome.LOWERED}
    if len(lowered) <= FEW_LINES:
        return list(report.notes)
    by_rule: dict[str, dict[str, int]] = {}
    for change in lowered.values():
        ops = by_rule.setdefault(_rule_of(change), {})
        ops[change.op] = ops.get(change.op, 0) + change.count
    sums = [
        f"lowered: {plural(sum(ops.values()), 'op')} by {rule}: {list_counts(by_count(ops))}"
        for rule, ops in by_rule.items()
    ]
    first = next((place for place, note in enumerate(report.notes) if note in lowered), 0)
    rest = [note for note in report.notes if note not in lowered]
    return [*rest[:first], *sums, f"({plural(len(lowered), 'line')} with --verbose)", *rest[first:]]


def _rule_of(change: Change) -> str:
    """The rule that lowered an op; where none is named, what it became."""
    return str(change.why["rule"]) if change.why.code is Code.BECAME else phrase(replace(change.why, at=""))


def _print_explanations(page: Console, report: ModuleReport, numbers: Collection[int]) -> None:
    for record in report.records:
        if record.number in numbers:
            page.print()
            for line in explain_lines(record):
                print_wrapped(page, line)
            page.print()
    if any(record.number in numbers for record in report.records):
        for line in memory_lines(report.memory):
            print_wrapped(page, line)


def _headline(page: Console, parts: Sequence[str], *, is_error: bool) -> None:
    """Print the parts beside each other, as many as fit on a line, the first one bold; the last one may be an error."""
    line = Text()
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        text = Text(part, style="bold" if number == 0 else STYLES["error"] if is_error and is_last else "")
        if number and line.cell_len + 3 + cell_len(part.split("\n")[0]) > page.width:
            page.print(line)
            line = Text("  ")
        elif number:
            line.append("   ")
        line.append_text(text)
    page.print(line)


def _table(groups: Sequence[Group], page: int) -> Table:
    """One line per row where that fits, else two in each: where over kind, writes over rule, bounds over unique.

    A few cells may be longer than the rest: where most rows take one line as they are, those few are wrapped.
    """
    headers, rows = table_of(groups)
    keys = len(headers) - FACTS
    widths, fits = column_widths([*zip(headers, *rows, strict=True)], page, whole=range(keys + 2))
    lines = [[(cell,) for cell in row] for row in rows]
    if not fits or line_count(rows, widths) > MOST_WRAPPED * len(rows):
        lines = [_stack_cells(row) for row in rows]
        headers = tuple("\n".join(cells) for cells in _stack_cells([*map(Cell, headers)]))
        headers = (*(f"{key}\n" for key in headers[:keys]), *headers[keys:])
        texts = [["\n".join(cells) for cells in row] for row in lines]
        widths, _ = column_widths([*zip(headers, *texts, strict=True)], page, whole=range(keys))
    table = new_grid()
    for number, (header, width) in enumerate(zip(headers, widths, strict=True)):
        table.add_column(header, overflow="fold", width=width, justify="right" if number < keys else "left")
    for row in lines:
        table.add_row(
            *(Text("\n").join(Text(cell, style=STYLES.get(cell.tone, "")) for cell in cells) for cells in row)
        )
    return table


def _stack_cells(row: Sequence[Cell]) -> list[tuple[Cell, ...]]:
    *keys, where, kind, writes, rule, bounds, unique = row
    return [*((key,) for key in keys), (where, kind), (writes, rule), (bounds, unique)]
