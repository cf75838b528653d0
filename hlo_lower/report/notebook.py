"""Records as a notebook shows them: the cells of the HTML report, in the notebook's own style."""

from collections.abc import Sequence
from html import escape

from hlo_lower.base.memory import MemoryCurve, memory_folded
from hlo_lower.base.short_forms import plural
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.headline import summary
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.picture import svg_of
from hlo_lower.report.place import Group, fold, hidden_line
from hlo_lower.report.row import Cell, table_of

TONES = {"proved": "good", "guarded": "warn", "none": "bad"}

MOST_PICTURES = 6


def scatters_html(report: ModuleReport) -> str:
    """The table of a module's scatters, alike ones in one row, drawings of the first ones folded, and the totals."""
    blocks: list[str] = []
    if report.records:
        groups = fold(report.records)
        blocks.append(_table(*table_of(groups)))
        if hidden := hidden_line(groups):
            blocks.append(f"<p>{escape(hidden)}</p>")
        blocks.append(_pictures(groups))
    blocks += [f"<p>{escape(title)}: {escape(line)}</p>" for title, line in summary(report.totals())]
    return "\n".join(filter(None, blocks))


def _table(headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "\n".join(f"<tr>{''.join(map(_cell, headers, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _cell(header: str, cell: Cell) -> str:
    tone = TONES.get(cell.tone, "")
    classes = f' class="{tone}"' if tone else ""
    return f'<td data-title="{escape(header)}"{classes}>{escape(cell)}</td>'


def _pictures(groups: Sequence[Group]) -> str:
    """Drawings of what the scatters write; of many different ones the first."""
    drawn = [(group.first.number, svg_of(group.first)) for group in groups]
    shown = [f"<figure><figcaption>{number}</figcaption>{svg}</figure>" for number, svg in drawn if svg]
    inner = "".join(shown[:MOST_PICTURES])
    return f"<details><summary>what is written</summary>{inner}</details>" if shown else ""


class Records(tuple[ScatterRecord, ...]):
    """The records of a module, a tuple, which a notebook shows as a table.

    Example:
      >>> records = hl.classify("decode.mlir")
      >>> len(records), "<table>" in records._repr_html_()
      (1, True)
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The table of the report, alike scatters in one row."""
        return notebook_html(f"{self[0].file}: {plural(len(self), 'scatter')}" if self else "0 scatters", self)


def notebook_html(
    headline: str,
    records: tuple[ScatterRecord, ...],
    notes: tuple[str, ...] = (),
    memory: tuple[MemoryCurve, ...] = (),
) -> str:
    """A headline, the table of the scatters with their totals, the memory, folded, and notes; all text is escaped."""
    parts = [f"<p>{escape(headline)}</p>", scatters_html(ModuleReport("", records=tuple(records)))]
    parts.append(memory_folded(memory))
    return "\n".join(filter(None, [*parts, *(f"<p>{escape(note)}</p>" for note in notes)]))
