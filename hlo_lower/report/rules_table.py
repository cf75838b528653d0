"""Tables of the registry's rules and of a target's costs, for a terminal and for documents."""

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_grid, new_page, page_text, print_hanging, text_of
from hlo_lower.report.row import rule_name

INDENT = 11
HEADERS = ("rule", "accepts", "canonical form", "builds", "place")


class RuleEntry(Protocol):
    """What the table shows of a rule."""

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

    @property
    def proof(self) -> str: ...


def render_rules_text(rules: Sequence[RuleEntry], *, width: int, color: bool = False, proofs: bool = False) -> str:
    """Render rules one after the other: name and place, what it takes, the form, the ops that it builds, and its own
    description where proofs are asked for."""
    page = new_page(width, color=color)
    for number, rule in enumerate(rules):
        page.print(Text("\n" if number else "").append(rule_name(rule.name), "bold").append(f"   {rule.place}", "dim"))
        # A line ends behind a sign between values, not within one.
        print_hanging(page, "  for:     ", rule.classes.replace("|", " | "), INDENT)
        print_hanging(page, "  form:    ", rule.form, INDENT)
        if rule.builds:
            print_hanging(page, "  builds:  ", ", ".join(_op(op) for op in rule.builds), INDENT, "dim")
        if rule.refused:
            print_hanging(page, "  rejects: ", rule.refused, INDENT, "red")
        if proofs:
            _print_proof(page, rule.proof)
    return page_text(page)


def _print_proof(page: Console, proof: str) -> None:
    """Print a description as it is written; a paragraph that is wider than the page is wrapped, code is not."""
    for block in proof.split("\n\n"):
        page.print()
        lines = block.split("\n")
        if max(map(len, lines)) > page.width and not any(line.startswith(" ") for line in lines):
            print_hanging(page, "", " ".join(lines), 0)
        else:
            page.print(Text(block), soft_wrap=True)


def render_rules_markdown(rules: Sequence[RuleEntry]) -> str:
    """Render rules as a Markdown table."""
    rows = [
        [
            code(rule_name(rule.name)),
            escape(rule.classes),
            code(rule.form) + (escape(f" rejected: {rule.refused}") if rule.refused else ""),
            escape(", ".join(_op(op) for op in rule.builds)),
            code(rule.place),
        ]
        for rule in rules
    ]
    return table(HEADERS, rows) + "\n"


def _op(name: str) -> str:
    return name.removeprefix("stablehlo.")


class CostEntry(Protocol):
    """What the table shows of an entry: its name, value, description and the measurement that set it."""

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
    for header in ("entry", "value", "meaning (costs in ns)", "measured"):
        grid.add_column(header, overflow="fold", justify="right" if header == "value" else "left")
    for row in rows:
        grid.add_row(Text(row.name, style="bold"), f"{row.value:,}", Text(row.what), Text(row.measured, style="dim"))
    return text_of(page, grid)


def render_costs_markdown(rows: Sequence[CostEntry]) -> str:
    """Render the entries as a Markdown table."""
    cells = [[code(row.name), f"{row.value:,}", escape(row.what), escape(row.measured)] for row in rows]
    return table(("entry", "value", "meaning (costs in ns)", "measured"), cells) + "\n"


class FormEntry(Protocol):
    """What something becomes in linalg."""

    @property
    def meaning(self) -> str: ...

    @property
    def ops(self) -> tuple[str, ...]: ...

    @property
    def how(self) -> str: ...

    @property
    def category(self) -> str: ...


def render_linalg_text(forms: Sequence[FormEntry], *, width: int, color: bool = False) -> str:
    """Render the forms of linalg, a line for each."""
    page, grid = new_page(width, color=color), new_grid()
    for header in ("what", "form in linalg", "category", "how"):
        grid.add_column(header, overflow="fold")
    for form in forms:
        how = form.how.replace("`", "")
        grid.add_row(form.meaning, Text(", ".join(form.ops), style="bold"), form.category, Text(how, style="dim"))
    return text_of(page, grid)


def render_linalg_markdown(forms: Sequence[FormEntry]) -> str:
    """Render the forms of linalg as a Markdown table."""
    rows = [[escape(f.meaning), ", ".join(map(code, f.ops)), f.category, f.how] for f in forms]
    return table(("op", "form", "category", "how"), rows) + "\n"
