"""The report as Markdown: tables that GitHub shows."""

from collections.abc import Collection, Iterable, Sequence

from hlo_lower.report.explain import explain as explain_lines
from hlo_lower.report.headline import headline, policies, summary, total_headline
from hlo_lower.report.module import ModuleReport, Totals, totals
from hlo_lower.report.overview import FOLDER_HEADERS, MODULE_HEADERS, folder_rows, is_brief, module_row
from hlo_lower.report.place import fold, hidden_line
from hlo_lower.report.row import table_of

ESCAPES = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "`": "\\`", "*": "\\*", "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " "}
)


def render_markdown(reports: Sequence[ModuleReport], *, show_all: bool = False, explain: Collection[int] = ()) -> str:
    """Render modules as Markdown: a table and a summary each, and totals by folder and over all of several.

    More than `FEW` modules are a row each, unless all of them are asked for.
    """
    if is_brief(reports, show_all=show_all):
        blocks = ["## Modules", escape(policies(reports)), _cells(MODULE_HEADERS, map(module_row, reports))]
        blocks += [block for report in reports for block in _explanations(report, explain)]
    else:
        blocks = [block for report in reports for block in _module(report, show_all=show_all, explain=explain)]
    if rows := folder_rows(reports):
        blocks += ["## Folders", _cells(FOLDER_HEADERS, rows)]
    if len(reports) > 1:
        total = totals(reports)
        blocks += ["## Total", escape(total_headline(total)), *_summary(total)]
    return "\n\n".join(blocks) + "\n"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(text: str) -> str:
    """Text as Markdown that shows just that text, on one line."""
    return text.translate(ESCAPES)


def code(text: str) -> str:
    """Text as code within a table's cell."""
    return f"`{text.replace('`', ' ').replace('|', chr(92) + '|')}`" if text.strip() else ""


def _module(report: ModuleReport, *, show_all: bool, explain: Collection[int]) -> list[str]:
    file, *parts = headline(report)
    blocks = [f"## {escape(file)}", escape(" · ".join(parts))]
    if report.records:
        groups = fold(report.records, show_all=show_all)
        blocks.append(_cells(*table_of(groups)))
        if hidden := hidden_line(groups):
            blocks.append(escape(hidden))
    return [*blocks, *_explanations(report, explain), *_summary(report.totals())]


def _explanations(report: ModuleReport, numbers: Collection[int]) -> list[str]:
    explained = [explain_lines(record) for record in report.records if record.number in numbers]
    return ["\n".join(f"    {line}" for line in lines) for lines in explained]


def _cells(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return table(headers, ([escape(cell) for cell in row] for row in rows))


def _summary(total: Totals) -> list[str]:
    rows = [f"- {title}: {escape(line)}" for title, line in summary(total)]
    return ["\n".join(rows)] if rows else []
