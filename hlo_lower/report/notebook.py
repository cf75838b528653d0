"""Records as a notebook shows them: the cells of the HTML report, in the notebook's own style."""

from html import escape

from hlo_lower.base.drawing.memory_svg import memory_folded
from hlo_lower.base.memory import MemoryCurve
from hlo_lower.base.short_forms import plural
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.html_table import scatters_html
from hlo_lower.report.module import ModuleReport


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
