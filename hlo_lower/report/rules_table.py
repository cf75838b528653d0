"""The registry's rules as a table: the canonical form of every class, on a terminal and in docs/rules.md."""

from collections.abc import Sequence
from typing import Protocol

from rich.text import Text

from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_grid, new_page, text_of
from hlo_lower.report.row import rule_name

HEADERS = ("rule", "takes", "canonical form", "builds", "place")


class RuleEntry(Protocol):
    """What a rule tells about itself."""

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> str: ...

    @property
    def form(self) -> str: ...

    @property
    def place(self) -> str: ...

    @property
    def builds(self) -> tuple[str, ...]: ...

    @property
    def refused(self) -> str: ...


def render_rules_text(rules: Sequence[RuleEntry], *, width: int, color: bool = False) -> str:
    """Render rules as a table: name and place, what it takes, the form and the ops that it builds."""
    page = new_page(width, color=color)
    grid = new_grid()
    for header in ("rule\nplace", "takes", "canonical form\nbuilds"):
        grid.add_column(header, overflow="fold")
    for number, rule in enumerate(rules):
        name = Text(rule_name(rule.name), style="bold").append(f"\n{rule.place}", style="dim not bold")
        form = Text(rule.form).append(f"\n{', '.join(_op(op) for op in rule.builds)}", style="dim")
        if rule.refused:
            form.append(f"\nrefused: {rule.refused}", style="red")
        grid.add_row(name, Text(rule.classes), form, end_section=number + 1 < len(rules))
    return text_of(page, grid)


def render_rules_markdown(rules: Sequence[RuleEntry]) -> str:
    """Render rules as a Markdown table."""
    rows = [
        [
            code(rule_name(rule.name)),
            escape(rule.classes),
            code(rule.form) + (escape(f" refused: {rule.refused}") if rule.refused else ""),
            escape(", ".join(_op(op) for op in rule.builds)),
            code(rule.place),
        ]
        for rule in rules
    ]
    return table(HEADERS, rows) + "\n"


def _op(name: str) -> str:
    return name.removeprefix("stablehlo.")
