"""Tables of the registry's rules, of a target's costs and of the forms of linalg, for a terminal and for documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.text import Text

from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import grid_text, new_page, page_text, print_entry, print_hanging
from hlo_lower.report.row import rule_name

RULES = ("rule", "accepts", "canonical form")
COSTS = ("entry", "value", "meaning (costs in ns)", "measured")


@dataclass(frozen=True)
class RuleRow:
    """A rule as documentation shows it.

    Attributes:
      name: the rule, as in a record.
      classes: the facts that it is for.
      form: its canonical form in a line.
      place: file and line.
      builds: the operations that it builds in its golden modules, those of a region left out; none of a plug-in's rule.
      refused: what the target rejects of these, or "".
      proof: what it replaces by what, and why both are equal: its own description.
      op: the op, or the composite, that it is for.

    Example:
      >>> hl.rules()[0].name in {row.name for row in hl.rules(target="iree")}
      True
    """

    name: str
    classes: str
    form: str
    place: str
    builds: tuple[str, ...]
    refused: str
    proof: str
    op: str = ""


@dataclass(frozen=True)
class CostRow:
    """An entry of a target's table of costs.

    Attributes:
      name: as `prefer` takes it.
      value: a number, or a cost in nanoseconds.
      what: what it is of.
      measured: what its default was set by.

    Example:
      >>> [row] = [row for row in hl.costs() if row.name == "few_windows"]
      >>> row.what
      'most windows that get ops of their own'
    """

    name: str
    value: float
    what: str
    measured: str


def render_rules_text(rules: Sequence[RuleRow], *, width: int, color: bool = False, proofs: bool = False) -> str:
    """Render rules one after the other: name and place, what it is for, the form, the ops that it builds, and its own
    description where proofs are asked for."""
    page = new_page(width, color=color)
    for number, rule in enumerate(rules):
        # A line ends behind a sign between values, not within one.
        lines = [("for", rule.classes.replace("|", " | ")), ("form", rule.form)]
        lines += [("builds", _built_ops(rule), "dim"), ("rejects", rule.refused, "red")]
        print_entry(page, rule_name(rule.name), rule.place, lines, is_first=not number)
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


def _built_ops(rule: RuleRow) -> str:
    return ", ".join(op.removeprefix("stablehlo.") for op in rule.builds)


def render_rules_markdown(rules: Sequence[RuleRow]) -> str:
    """Render rules as a Markdown table."""
    rows = [
        [
            code(rule_name(rule.name)),
            escape(rule.classes),
            code(rule.form) + (escape(f" rejected: {rule.refused}") if rule.refused else ""),
        ]
        for rule in rules
    ]
    return table(RULES, rows) + "\n"


def render_costs_text(rows: Sequence[CostRow], *, width: int, color: bool = False) -> str:
    """Render the entries as a table; costs are in nanoseconds."""
    cells = [[Text(r.name, "bold"), f"{r.value:,}", Text(r.what), Text(r.measured, "dim")] for r in rows]
    return grid_text(COSTS, cells, new_page(width, color=color))


def render_costs_markdown(rows: Sequence[CostRow]) -> str:
    """Render the entries as a Markdown table."""
    cells = [[code(row.name), f"{row.value:,}", escape(row.what), escape(row.measured)] for row in rows]
    return table(COSTS, cells) + "\n"


class FormEntry(Protocol):
    """What something becomes in linalg."""

    @property
    def meaning(self) -> str: ...

    @property
    def ops(self) -> tuple[str, ...]: ...

    @property
    def how(self) -> str: ...


def render_linalg_text(forms: Sequence[FormEntry], *, width: int, color: bool = False) -> str:
    """Render the forms of linalg, a line for each."""
    rows = [[f.meaning, Text(", ".join(f.ops), "bold"), Text(f.how.replace("`", ""), "dim")] for f in forms]
    return grid_text(("what", "form in linalg", "how"), rows, new_page(width, color=color))


def render_linalg_markdown(forms: Sequence[FormEntry]) -> str:
    """Render the forms of linalg as a Markdown table."""
    rows = [[escape(f.meaning), ", ".join(map(code, f.ops)), f.how] for f in forms]
    return table(("op", "form", "how"), rows) + "\n"
