"""The report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

import re
from collections.abc import Collection, Sequence
from html import escape

from hlo_lower.report.alike import fold, hidden_line
from hlo_lower.report.explain import explain as explain_lines
from hlo_lower.report.headline import headline, policies, summary, total_headline
from hlo_lower.report.html_charts import broken, charts, folder_chart
from hlo_lower.report.html_page import PAGE, STYLE
from hlo_lower.report.module import ModuleReport, Totals, folders, totals
from hlo_lower.report.overview import FEW, FOLDER_HEADERS, base_name, folder_rows, module_row
from hlo_lower.report.row import Cell, table_of
from hlo_lower.report.short_forms import plural, printable

TONES = {"proved": "good", "guarded": "warn", "none": "bad"}


def render_html(reports: Sequence[ModuleReport], *, show_all: bool = False, explain: Collection[int] = ()) -> str:
    """Render modules as a page: the total with its charts first, then the folders, then each module's table.

    Several modules are a line each, below which their table is folded; open where they are few or explained.
    """
    total = totals(reports)
    body = [f"<p>{escape(total_headline(total))} · {escape(policies(reports))}</p>", charts(total)]
    if len(reports) == 1:
        body.append(_alone(reports[0], show_all=show_all, explain=explain))
    else:
        body += [_folders(reports), _unreadable(reports), "<h2>Modules</h2>"]
        body += _modules(reports, show_all=show_all, explain=explain)
    title = f"Scatter report: {printable(reports[0].file) if len(reports) == 1 else plural(len(reports), 'module')}"
    return PAGE.format(title=escape(title), style=STYLE, body="\n".join(part for part in body if part))


def _alone(report: ModuleReport, *, show_all: bool, explain: Collection[int]) -> str:
    file, *parts = headline(report)
    blocks = [f"<h2>{escape(file)}</h2>"]
    if report.error is not None:
        blocks.append(f'<p class="error">{escape(parts.pop())}</p>')
    if parts:
        blocks.append(f"<p>{escape(' · '.join(parts))}</p>")
    return "\n".join([*blocks, scatters_html(report, show_all=show_all, explain=explain)])


def _folders(reports: Sequence[ModuleReport]) -> str:
    """The table of folders, each linked to its modules, and the chart of what their scatters become."""
    rows = folder_rows(reports)
    if not rows:
        return ""
    links = [f'<a href="#folder-{number}">{escape(row[0])}</a>' for number, row in enumerate(rows)]
    kept = [[re.sub(r"(?<=\d) (?=\w)", "\u00a0", cell) for cell in row] for row in rows]  # a count with its name
    table = f'<div class="folders">{_table(FOLDER_HEADERS, kept, links)}</div>'
    return "\n".join(["<h2>Folders</h2>", folder_chart(reports), table])


def _unreadable(reports: Sequence[ModuleReport]) -> str:
    """The modules that could not be read with the whole reason, before they drown among the others."""
    errors = [report.error for report in reports if report.error is not None]
    told = "\n".join(f'<p class="error">{escape(printable(error, keep=chr(10)))}</p>' for error in errors)
    return f"<h2>Could not be read</h2>\n{told}" if told else ""


def _modules(reports: Sequence[ModuleReport], *, show_all: bool, explain: Collection[int]) -> list[str]:
    lines: list[str] = []
    named = folders(reports)
    for number, (name, members) in enumerate(named):
        if len(named) > 1:
            scatters = plural(sum(len(report.records) for report in members), "scatter")
            counts = f"{plural(len(members), 'module')}, {scatters}"
            lines.append(f'<h3 class="folder" id="folder-{number}">{broken(name)}<span>{counts}</span></h3>')
        for report in members:
            is_open = len(reports) <= FEW or any(record.number in explain for record in report.records)
            lines.append(_module(report, is_open=is_open, show_all=show_all, explain=explain))
    return lines


def _module(report: ModuleReport, *, is_open: bool, show_all: bool, explain: Collection[int]) -> str:
    """A module as a line, its table folded below it; without scatters a line alone."""
    _, ops, scatters, told = module_row(report)
    counts = (plural(report.op_count, "op"), plural(len(report.records), "scatter")) if ops else (ops, scatters)
    tone = ' class="told bad"' if report.error is not None else ' class="told"'
    line = (
        f'<b>{broken(base_name(report))}</b><span class="count first">{counts[0]}</span>'
        f'<span class="count">{counts[1]}</span><span{tone}>{broken(told)}</span>'
    )
    if not report.records:
        return f'<div class="flat"><div class="row">{line}</div></div>'
    file, _, *parts = headline(report)
    inner = f"<p>{escape(' · '.join([file, *parts]))}</p>\n{scatters_html(report, show_all=show_all, explain=explain)}"
    opened = " open" if is_open else ""
    return f'<details{opened}><summary class="row">{line}</summary><div class="inner">\n{inner}\n</div></details>'


def scatters_html(report: ModuleReport, *, show_all: bool, explain: Collection[int]) -> str:
    """The table of a module's scatters, what is explained of them, and their totals."""
    blocks: list[str] = []
    if report.records:
        groups = fold(report.records, show_all=show_all)
        blocks.append(_table(*table_of(groups)))
        if hidden := hidden_line(groups):
            blocks.append(f"<p>{escape(hidden)}</p>")
    for record in report.records:
        if record.number in explain:
            blocks.append(f"<pre>{escape(chr(10).join(explain_lines(record)))}</pre>")
    return "\n".join([*blocks, _summary(report.totals())])


def _summary(total: Totals) -> str:
    return "\n".join(f"<p>{escape(title)}: {escape(line)}</p>" for title, line in summary(total))


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], links: Sequence[str] = ()) -> str:
    """A table of plain cells; links, if there are any, stand in the first column instead of its cells."""
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    lines: list[str] = []
    for number, row in enumerate(rows):
        cells = [_cell(header, cell) for header, cell in zip(headers, row, strict=True)]
        if links:
            cells[0] = f'<td data-title="{escape(headers[0])}">{links[number]}</td>'
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _cell(header: str, cell: str) -> str:
    tone = TONES.get(cell.tone, "") if isinstance(cell, Cell) else ""
    classes = f' class="{tone}"' if tone else ""
    return f'<td data-title="{escape(header)}"{classes}>{escape(cell)}</td>'
