"""A target's table of costs: what the forms cost there, and the measurement behind each entry."""

from collections.abc import Sequence
from typing import Protocol

from rich.text import Text

from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_grid, new_page, text_of


class CostEntry(Protocol):
    """What an entry tells about itself: its name, its value for the target, what it is, and what it was set by."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float: ...

    @property
    def what(self) -> str: ...

    @property
    def measured(self) -> str: ...


def render_costs_text(rows: Sequence[CostEntry], *, width: int, color: bool = False) -> str:
    """Render the entries as a table; costs are in nanoseconds."""
    page = new_page(width, color=color)
    grid = new_grid()
    for header in ("size", "value", "of (costs in ns)", "set by"):
        grid.add_column(header, overflow="fold", justify="right" if header == "value" else "left")
    for row in rows:
        grid.add_row(Text(row.name, style="bold"), f"{row.value:,}", Text(row.what), Text(row.measured, style="dim"))
    return text_of(page, grid)


def render_costs_markdown(rows: Sequence[CostEntry]) -> str:
    """Render the entries as a Markdown table."""
    cells = [[code(row.name), f"{row.value:,}", escape(row.what), escape(row.measured)] for row in rows]
    return table(("size", "value", "of (costs in ns)", "set by"), cells) + "\n"
