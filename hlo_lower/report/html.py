"""The report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Collection, Mapping, Sequence
from html import escape

from hlo_lower.report.alike import fold, hidden_line
from hlo_lower.report.explain import explain as explain_lines
from hlo_lower.report.headline import headline, summary, total_headline
from hlo_lower.report.module import NOT_MEASURED, ModuleReport, Totals, totals
from hlo_lower.report.row import rule_name, table_of
from hlo_lower.report.wording import plural, printable

STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --soft: #5c6670; --paper: #fff; --card: #f6f7f9; --line: #dde1e6;
  --bar: #3b74c4; --good: #1a7f4b; --warn: #9a6200; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa4af; --paper: #14171a; --card: #1d2125;
  --line: #343a41; --bar: #6ea3ea; --good: #5fc38d; --warn: #e0a84c; --bad: #f28b82; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1.5rem 1rem 3rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .25rem; overflow-wrap: anywhere; }
h3 { font-size: .85rem; margin: 0 0 .4rem; color: var(--soft); font-weight: 600; }
p { margin: .25rem 0; color: var(--soft); overflow-wrap: anywhere; }
p.error { color: var(--bad); white-space: pre-wrap; }
table { width: 100%; border-collapse: collapse; margin: .75rem 0; font-size: .875rem; }
th { text-align: left; color: var(--soft); font-weight: 600; } th, td { padding: .35rem .75rem .35rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; }
div.table { overflow-x: auto; }
td { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .8rem; }
td:first-child { white-space: nowrap; } .good { color: var(--good); } .warn { color: var(--warn); }
.bad { color: var(--bad); font-weight: 600; }
pre { background: var(--card); padding: .75rem; overflow-x: auto; font-size: .8rem; border-radius: 6px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 1rem; margin: 1rem 0; }
.chart { background: var(--card); border-radius: 6px; padding: .75rem; }
.bar { display: grid; grid-template-columns: 1fr auto; gap: 0 .75rem; font-size: .8rem; margin-bottom: .4rem; }
.bar b { font-weight: 400; overflow-wrap: anywhere; } .bar em { font-style: normal; }
.bar i { grid-column: 1 / 3; height: .4rem; background: var(--bar); border-radius: 2px; min-width: 2px; }
@media (max-width: 700px) { thead { display: none; } table, tbody, tr, td { display: block; width: 100%; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } td { border: 0; padding: .1rem 0 .1rem 5rem;
  position: relative; min-height: 1.3rem; overflow-wrap: anywhere; }
  td:empty { display: none; } td::before { content: attr(data-title); position: absolute; left: 0;
  color: var(--soft); font-family: system-ui, sans-serif; } }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>Scatter report</h1>
{body}
</body>
</html>
"""

TONES = {"proved": "good", "guarded": "warn", "none": "bad"}


def render_html(reports: Sequence[ModuleReport], *, show_all: bool = False, explain: Collection[int] = ()) -> str:
    """Render modules as a page: the total with its charts first, then each module's table."""
    total = totals(reports)
    line = total_headline(total)
    body = [f"<p>{escape(line)}</p>", _charts(total)]
    if len(reports) > 1:
        body.append(_modules(reports))
    body += [_module(report, show_all=show_all, explain=explain) for report in reports]
    title = f"Scatter report: {printable(reports[0].file) if len(reports) == 1 else plural(len(reports), 'module')}"
    return PAGE.format(title=escape(title), style=STYLE, body="\n".join(part for part in body if part))


def _charts(total: Totals) -> str:
    guards = {
        "needed": total.guards_needed,
        "proved away": total.guards_proved_away,
        "never in bounds": total.never_in_bounds,
    }
    charts = [
        _chart("Kinds", total.kinds),
        _chart("Subsets", total.subsets),
        _chart("Combiners", total.combiners),
        _chart("Rules", {rule_name(rule): count for rule, count in total.rules.items()}),
        _chart("Guards", {name: count for name, count in guards.items() if count}),
    ]
    return f'<div class="charts">{"".join(charts)}</div>' if total.scatters else ""


def _chart(title: str, counts: Mapping[str, int]) -> str:
    """A bar for each count, as long as its share of the largest."""
    largest = max(counts.values(), default=1)
    bars = "".join(
        f'<div class="bar"><b>{escape(printable(name)).replace("_", "_<wbr>")}</b>'
        f'<em>{count:,}</em><i style="width: {100 * count / largest:.1f}%"></i></div>'
        for name, count in counts.items()
    )
    return f'<div class="chart"><h3>{escape(title)}</h3>{bars}</div>'


def _modules(reports: Sequence[ModuleReport]) -> str:
    headers = ("module", "ops", "scatters", "left", "verification")
    rows: list[tuple[str, ...]] = []
    for report in reports:
        told = (report.error or report.verification or NOT_MEASURED).split("\n")[0]
        left = NOT_MEASURED if report.scatters_left is None else f"{report.scatters_left:,}"
        counts = (f"{report.op_count:,}", f"{len(report.records):,}", left)
        rows.append((printable(report.file), *(("", "", "") if report.error else counts), printable(told)))
    return "<h2>Modules</h2>" + _table(headers, rows)


def _module(report: ModuleReport, *, show_all: bool, explain: Collection[int]) -> str:
    file, *parts = headline(report)
    blocks = [f"<h2>{escape(file)}</h2>"]
    if report.error is not None:
        blocks.append(f'<p class="error">{escape(parts.pop())}</p>')
    if parts:
        blocks.append(f"<p>{escape(' · '.join(parts))}</p>")
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


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "\n".join(
        "<tr>" + "".join(_cell(header, cell) for header, cell in zip(headers, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _cell(header: str, cell: str) -> str:
    tone = TONES.get(cell.split(" ")[0].rstrip(":"), "")
    classes = f' class="{tone}"' if tone else ""
    return f'<td data-title="{escape(header)}"{classes}>{escape(cell)}</td>'
