"""The laws of derived equality, of each op and beyond the definitions: on a terminal, in Markdown and as data."""

from typing import Any

from rich.text import Text

from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_page, page_text, print_hanging
from hlo_lower.verify.pull.derive import PULLS
from hlo_lower.verify.pull.laws import LAWS

INDENT = 4


def laws_of_ops() -> dict[str, list[str]]:
    """What each law of ops says, with the ops that it is for."""
    found: dict[str, list[str]] = {}
    for op, law in PULLS.items():
        found.setdefault(" ".join((law.__doc__ or "").split()), []).append(op.removeprefix("stablehlo."))
    return found


def laws_json() -> dict[str, Any]:
    """The laws as plain data."""
    further = [{"name": law.name, "kind": law.kind, "says": law.says, "holds": law.holds} for law in LAWS.values()]
    return {"ops": [{"ops": ops, "says": says} for says, ops in laws_of_ops().items()], "laws": further}


def render_laws_text(*, width: int, color: bool = False) -> str:
    """Render the laws: those of ops first.

    Args:
      width: columns of the page.
      color: with ANSI colors.
    """
    page = new_page(width, color=color)
    page.print(Text("An element of an op's result, at the position p:", "bold"))
    for says, ops in laws_of_ops().items():
        print_hanging(page, "  ", ", ".join(ops), INDENT)
        print_hanging(page, "    ", says, INDENT)
    page.print(Text("\nBeyond the definitions of ops:", "bold"))
    for law in LAWS.values():
        print_hanging(page, "  ", f"{law.name} ({law.kind}, {law.holds})", INDENT)
        print_hanging(page, "    ", law.says, INDENT)
    return page_text(page)


def render_laws_markdown() -> str:
    """Render the laws as two Markdown tables."""
    ops = [[", ".join(map(code, ops)), escape(says)] for says, ops in laws_of_ops().items()]
    laws = [[law.name, law.kind, escape(law.says), law.holds] for law in LAWS.values()]
    return table(["op", "an element of its result"], ops) + "\n" + table(["law", "about", "says", "holds"], laws)
