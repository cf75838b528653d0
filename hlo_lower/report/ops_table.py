"""What is known of each op, and which forms of it are refused: on a terminal, and as tables in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.base.short_forms import listed
from hlo_lower.ops.quirks.quirk import Quirk
from hlo_lower.ops.spec import OpSpec
from hlo_lower.report.markdown import code, escape, table
from hlo_lower.report.page import new_page, page_text, print_entry

MOST_RULES = 4


@dataclass(frozen=True)
class OpRow:
    """An op as documentation shows it."""

    spec: OpSpec  # what is true of it by its definition
    # the rules that replace it, by name, without those for any op on an element type or of many dims
    rules: tuple[str, ...]
    # what each built-in target does: it "accepts" the op, the op is "lowered" for it, or it "rejects" the op
    targets: Mapping[str, str]


def render_ops_text(ops: Sequence[OpRow], *, width: int, color: bool = False) -> str:
    """Render ops one after the other: what each does, what is true of it, the rules for it, and what targets do."""
    page = new_page(width, color=color)
    for number, op in enumerate(ops):
        lines = [("is", ", ".join(facts_of(op.spec))), ("rules", ", ".join(op.rules))]
        lines.append(("targets", ", ".join(f"{name} {what}" for name, what in op.targets.items())))
        print_entry(page, op.spec.name, op.spec.role.value, lines, is_first=not number)
    return page_text(page)


def render_ops_markdown(ops: Sequence[OpRow]) -> str:
    """Render ops as a Markdown table that names the targets which do not accept them as they are; ops of which the
    same is known share a row. The number of operands, which the specification has, is left out."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for op in ops:
        known = (
            escape(op.spec.role.name.lower()),
            escape(", ".join(fact for fact in facts_of(op.spec) if not fact.startswith("of "))),
            *(", ".join(name for name, done in op.targets.items() if done == what) for what in ("lowered", "rejects")),
            listed([*map(code, op.rules)], MOST_RULES),
        )
        rows.setdefault(known, []).append(code(op.spec.name.removeprefix("stablehlo.")))
    cells = [[", ".join(names), *known] for known, names in rows.items()]
    return table(["ops", "role", "by definition", "lowered for", "rejected by", "rules"], cells)


def render_forms_text(quirks: Sequence[Quirk], *, width: int, color: bool = False) -> str:
    """Render forms one after the other: the ops that may stand in each, what becomes of it, and who refuses it, why."""
    page = new_page(width, color=color)
    for number, quirk in enumerate(quirks):
        lines = [("becomes", quirk.becomes.replace("`", "")), *quirk.consumers.items()]
        print_entry(page, quirk.word, ", ".join(quirk.ops), lines, is_first=not number)
    return page_text(page)


def render_forms_markdown(quirks: Sequence[Quirk]) -> str:
    """Render forms as a Markdown table."""
    return table(
        ["form", "becomes", "rejected by"],
        (
            [code(quirk.word), quirk.becomes, "; ".join(f"{name}: {why}" for name, why in quirk.consumers.items())]
            for quirk in quirks
        ),
    )


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
