"""What a probe found, and the target's file that says so."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hlo_lower.consumers import ConsumerOutcome
from hlo_lower.ops.targets.target import Target


@dataclass
class Probed:
    """What became of an op's modules.

    Attributes:
      op: its name.
      outcomes: for each element type on which XLA takes the op, what became of each form.
      has_flags: whether it takes or gives i1 beside its element type.
    """

    op: str
    outcomes: dict[str, list[ConsumerOutcome]] = field(default_factory=dict[str, list[ConsumerOutcome]])
    has_flags: bool = False

    @property
    def right(self) -> tuple[str, ...]:
        """The types on which every form is right, i1 with them where it is a predicate or a result."""
        found = [t for t, told in self.outcomes.items() if all(o.ok for o in told)]
        return tuple(["i1", *found] if found and self.has_flags and "i1" not in found else found)

    @property
    def said(self) -> str:
        """What the consumer says most often where it is not right."""
        told = Counter(_words(o) for found in self.outcomes.values() for o in found if not o.ok)
        return told.most_common(1)[0][0] if told else ""

    @property
    def not_refused(self) -> str:
        """The types on which it is taken and not right: "i8 wrong, i64 crashed"."""
        bad = {
            t: next((o.result for o in told if not o.ok and o.result != "refused"), "")
            for t, told in self.outcomes.items()
        }
        return ", ".join(f"{t} {result}" for t, result in bad.items() if result)


def target_lines(title: str, probed: Sequence[Probed]) -> list[str]:
    """The file: what is taken, on which types, and what is not, in the consumer's words."""
    taken = [p for p in probed if p.right]
    lines = [
        f"# {title}.",
        "#",
        "# Written by scripts/probe_target.py from modules of one op, compared with XLA's results: an op is listed",
        "# with the types on which every form was right. Ops that stand nowhere here were not probed. NaN, division",
        "# by 0, shifts beyond the type, and open shapes were not tried.",
        f'description = "{_quoted(title)}"',
        "ops = [",
        *(f'    "{p.op}",' for p in taken),
        "]",
        "",
        "[op_dtypes]",
    ]
    for one in taken:
        told = ", ".join(f'"{t}"' for t in one.right)
        comment = f" # {one.not_refused}" if one.not_refused else ""
        lines.append(f'"{one.op}" = [{told}]{comment}')
    lines += ["", "[refused]", '"stablehlo.scatter" = "not probed here: see hlo-lower conformance"']
    return [*lines, *(f'"{p.op}" = "{_quoted(p.said)}"' for p in probed if not p.right and p.outcomes)]


def difference_lines(probed: Sequence[Probed], target: Target) -> list[str]:
    """For each probed op how a target's file differs: types that it lists and were not right, and the reverse."""
    lines: list[str] = []
    for one in probed:
        types = set(one.outcomes)
        listed = {t for t in types if target.refuses_op(one.op) is None and not target.refuses_op_on(one.op, t)}
        found = set(one.right) & types
        if listed == found:
            lines.append(f"{one.op}: the same, {', '.join(t for t in one.outcomes if t in found) or 'none'}")
            continue
        only_listed = [t for t in one.outcomes if t in listed - found]
        only_found = [t for t in one.outcomes if t in found - listed]
        parts = [f"listed, and not right: {', '.join(only_listed)}"] if only_listed else []
        parts += [f"right, and not listed: {', '.join(only_found)}"] if only_found else []
        lines.append(f"{one.op}: {'; '.join(parts)}")
    return lines


def _words(outcome: ConsumerOutcome) -> str:
    if outcome.result == "wrong":
        return "it gives other numbers than XLA"
    return f"{'' if outcome.result == 'refused' else f'{outcome.result}: '}{outcome.message or 'it is refused'}"


def _quoted(text: str) -> str:
    """A message inside a basic string of TOML."""
    return text.replace("\\", "\\\\").replace('"', "'").replace("\n", " ").replace("\t", " ")
