"""What is known of each op, and which forms of it are refused: on a terminal, and as tables in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.text import Text

from hlo_lower.ops.quirks.quirk import Quirk
from hlo_lower.ops.spec import OpSpec
from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_page, page_text, print_hanging

INDENT = 11
MOST_RULES = 4


class OpEntry(Protocol):
    """What the table shows of an op."""

    @property
    def spec(self) -> OpSpec: ...

    @property
    def rules(self) -> tuple[str, ...]: ...

    @property
    def targets(self) -> Mapping[str, str]: ...


def render_ops_text(ops: Sequence[OpEntry], *, width: int, color: bool = False) -> str:
    """Render ops one after the other: what each does, what is true of it, the rules for it, and what targets do."""
    page = new_page(width, color=color)
    for number, op in enumerate(ops):
        page.print(Text("\n" if number else "").append(op.spec.name, "bold").append(f"   {op.spec.role.value}", "dim"))
        if told := facts_of(op.spec):
            print_hanging(page, "  is:      ", ", ".join(told), INDENT)
        if op.rules:
            print_hanging(page, "  rules:   ", ", ".join(op.rules), INDENT)
        print_hanging(page, "  targets: ", ", ".join(f"{name} {what}" for name, what in op.targets.items()), INDENT)
    return page_text(page)


def render_ops_markdown(ops: Sequence[OpEntry]) -> str:
    """Render ops as a Markdown table, a column for each target."""
    targets = list(ops[0].targets) if ops else []
    rows = [
        [
            code(op.spec.name),
            escape(op.spec.role.name.lower()),
            escape(", ".join(facts_of(op.spec))),
            *(op.targets[target] for target in targets),
            ", ".join(map(code, op.rules[:MOST_RULES])) + (f" and {len(op.rules) - MOST_RULES} more" * _has_more(op)),
        ]
        for op in ops
    ]
    return table(["op", "role", "by definition", *targets, "rules"], rows)


def render_forms_text(quirks: Sequence[Quirk], *, width: int, color: bool = False) -> str:
    """Render forms one after the other: the ops that may stand in each, what becomes of it, and who refuses it, why."""
    page = new_page(width, color=color)
    for number, quirk in enumerate(quirks):
        page.print(Text("\n" if number else "").append(quirk.word, "bold").append(f"   {', '.join(quirk.ops)}", "dim"))
        print_hanging(page, "  becomes: ", quirk.becomes.replace("`", ""), INDENT)
        for name, why in quirk.consumers.items():
            print_hanging(page, f"  {name}: ".ljust(INDENT), why, INDENT)
    return page_text(page)


def render_forms_markdown(quirks: Sequence[Quirk]) -> str:
    """Render forms as a Markdown table."""
    return table(
        ["form", "becomes", "refused by"],
        (
            [code(quirk.word), quirk.becomes, "; ".join(f"{name}: {why}" for name, why in quirk.consumers.items())]
            for quirk in quirks
        ),
    )


def _has_more(op: OpEntry) -> bool:
    return len(op.rules) > MOST_RULES


def facts_of(spec: OpSpec) -> list[str]:
    """What is true of an op, in words."""
    found = [f"of {spec.arity} operand{'s' * (spec.arity != 1)}"] if spec.arity is not None else []
    found += [] if spec.rounds.name == "NEVER" else [f"rounds {spec.rounds.name.lower()}"]
    found += ["not pure"] if not spec.is_pure else []
    found += ["has bodies"] if spec.has_bodies else []
    if spec.moved is None:
        found.append("moves its operands")
    elif spec.moved:
        found.append(f"moves operand {' and '.join(map(str, spec.moved))}")
    found += ["shape from operands"] if spec.is_dynamic else []
    found += [f"combines, identity {spec.identity}"] if spec.identity else []
    return found + ([spec.keeps] if spec.keeps else [])
