"""The report as Markdown: tables that GitHub shows."""

from collections.abc import Collection, Iterable, Sequence

from hlo_lower.report.alike import Group, fold, hidden_line
from hlo_lower.report.explain import explain as explain_lines
from hlo_lower.report.headline import headline, summary, total_headline
from hlo_lower.report.module import ModuleReport, Totals, totals
from hlo_lower.report.row import table_of

ESCAPES = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "`": "\\`", "*": "\\*", "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " "}
)


def render_markdown(reports: Sequence[ModuleReport], *, show_all: bool = False, explain: Collection[int] = ()) -> str:
    """Render modules as Markdown: a table and a summary each, and a total where there are several."""
    blocks = [block for report in reports for block in _module(report, show_all=show_all, explain=explain)]
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
        blocks.append(_rows(groups))
        if hidden := hidden_line(groups):
            blocks.append(escape(hidden))
    for record in report.records:
        if record.number in explain:
            blocks.append("\n".join(f"    {line}" for line in explain_lines(record)))
    return blocks + _summary(report.totals())


def _rows(groups: Sequence[Group]) -> str:
    headers, rows = table_of(groups)
    return table(headers, ([escape(cell) for cell in row] for row in rows))


def _summary(total: Totals) -> list[str]:
    rows = [f"- {title}: {escape(line)}" for title, line in summary(total)]
    return ["\n".join(rows)] if rows else []
