"""The outcomes of rules as a table, for a terminal, and as JSON."""

import json
from collections import Counter
from collections.abc import Sequence

from hlo_lower.testing.prove.proof_outcome import RuleOutcome

HEADERS = ("rule", "proved", "tried", "unknown", "refuted", "seconds")


def render_text(outcomes: Sequence[RuleOutcome]) -> str:
    """A line for each rule, what is unknown by reason, and each counterexample as a module."""
    rows = [HEADERS, *(_row(o) for o in outcomes)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADERS))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    lines += ["", *_summary(outcomes)]
    for outcome in outcomes:
        lines += [f"{outcome.rule}: unknown: {count} because of {reason}" for reason, count in _reasons(outcome)]
        for refuted in outcome.refuted:
            lines += [
                f"{outcome.rule}: refuted: {refuted.case.name}",
                f"  {refuted.reason}; confirmed by {refuted.confirmed}",
                *(f"  | {line}" for line in refuted.module.splitlines()),
            ]
    return "\n".join(lines) + "\n"


def _row(outcome: RuleOutcome) -> tuple[str, ...]:
    counts = (outcome.proved, outcome.tried, len(outcome.unknown), len(outcome.refuted))
    return (outcome.rule, *map(str, counts), f"{outcome.seconds:.1f}")


def _reasons(outcome: RuleOutcome) -> list[tuple[str, int]]:
    return Counter(unknown.reason for unknown in outcome.unknown).most_common()


def _summary(outcomes: Sequence[RuleOutcome]) -> list[str]:
    """How many rules and shapes are proved, and which rules have none."""
    proved = [o for o in outcomes if o.proved and not o.refuted]
    without = [o.rule for o in outcomes if not o.tried]
    counts = [sum(o.proved for o in outcomes), sum(o.tried for o in outcomes)]
    told = (
        f"{len(proved)} of {len(outcomes)} rules have proved shapes and none refuted; {counts[0]} of {counts[1]} shapes"
    )
    return [told, *([f"no shape of the family is taken by: {', '.join(without)}"] if without else [])]


def render_json(outcomes: Sequence[RuleOutcome]) -> str:
    """The outcomes as JSON."""
    return json.dumps({"rules": [outcome.to_json() for outcome in outcomes]}, indent=2) + "\n"
