"""Scatters as the rows of a table, alike ones in one: the same cells in text, Markdown and HTML."""

from collections.abc import Sequence

from hlo_lower.report.alike import Group
from hlo_lower.report.module import NO_RULE, rule_of
from hlo_lower.report.place import where
from hlo_lower.report.wording import printable
from hlo_lower.scatter.record import ScatterRecord

HEADERS = ("#", "×", "where", "kind", "writes", "rule", "bounds", "unique")
COUNT = HEADERS.index("×")


def table_of(groups: Sequence[Group]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headers and rows: the number of the first scatter, how many are like it, and what they have in common.

    The column of counts is left out where every scatter has a row of its own.
    """
    rows = [_cells(group) for group in groups]
    if any(group.count > 1 for group in groups):
        return HEADERS, rows
    return _without_count(HEADERS), [_without_count(row) for row in rows]


def _without_count(cells: tuple[str, ...]) -> tuple[str, ...]:
    return cells[:COUNT] + cells[COUNT + 1 :]


def _cells(group: Group) -> tuple[str, ...]:
    """The cells of a row, in the order of HEADERS."""
    record = group.first
    count = f"{group.count:,}" if group.count > 1 else ""
    words = (where(group), kind(record), record.writes, rule_name(rule_of(record)), record.bounds, unique(record))
    return (f"{record.number}", count, *(printable(word) for word in words))


def kind(record: ScatterRecord) -> str:
    """The kind; the combiner with it where the kind does not tell it ("general: max")."""
    return f"{record.kind}: {record.combiner}" if record.kind == "general" else record.kind


def rule_name(rule: str) -> str:
    """A rule's name without what all of them share ("scatter_to_dynamic_update_slice")."""
    return rule.removeprefix("scatter_to_") or NO_RULE


def unique(record: ScatterRecord) -> str:
    """ "one window" where that is the proof, else proved, claimed or unknown."""
    one_window = any(fact.name == "unique" and fact.evidence == ("one window",) for fact in record.facts)
    return "one window" if one_window else record.unique
