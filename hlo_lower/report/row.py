"""Scatters as the rows of a table, alike ones in one: the same cells in text, Markdown and HTML."""

from collections.abc import Sequence

from hlo_lower.base.causes import Code
from hlo_lower.base.english import phrase, shape_text
from hlo_lower.base.short_forms import printable
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.module import NO_RULE, rule_of
from hlo_lower.report.place import Group, where

HEADERS = ("#", "×", "where", "kind", "writes", "rule", "bounds", "unique")
COUNT = HEADERS.index("×")
WHOLE = {"Empty": "nothing", "Full": "all"}
PARTS = {
    "Tile": "tile",
    "Point": "point",
    "BatchedTile": "{} tiles",
    "Rows": "{} rows",
    "Filter": "{} rows",
    "Points": "{} points",
}


class Cell(str):
    """The text of a cell, with what it says in a word: a kind, "proved", "guarded", "none"; else ""."""

    tone: str = ""

    @classmethod
    def of(cls, text: str, tone: str) -> "Cell":
        """A cell of a tone; its text holds no line break."""
        cell = cls(printable(text))
        cell.tone = tone
        return cell


def table_of(groups: Sequence[Group]) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Headers and rows: the number of the first scatter, how many are like it, and what they have in common.

    The column of counts is left out where every scatter has a row of its own.
    """
    rows = [_cells(group) for group in groups]
    if any(group.count > 1 for group in groups):
        return HEADERS, rows
    return HEADERS[:COUNT] + HEADERS[COUNT + 1 :], [row[:COUNT] + row[COUNT + 1 :] for row in rows]


def _cells(group: Group) -> tuple[Cell, ...]:
    record = group.first
    rule, is_unique = rule_of(record), unique(record)
    tones = {Code.PROVED: "proved", Code.GUARDED: "guarded", Code.ASSUMED_INSIDE: "guarded"}
    bounded = tones.get(record.bounds.code, "")
    cells = (
        (f"{record.number}", ""),
        (f"{group.count:,}" if group.count > 1 else "", ""),
        (where(group), ""),
        (kind(record), record.kind),
        (writes(record), ""),
        (rule_name(rule), rule if rule == NO_RULE else ""),
        (bounds(record), bounded),
        (is_unique, is_unique),
    )
    return tuple(Cell.of(text, tone) for text, tone in cells)


def kind(record: ScatterRecord) -> str:
    """The kind, with the combiner where the kind does not imply it ("general: max")."""
    return f"{record.kind}: {record.combiner}" if record.kind == "general" else record.kind


def rule_name(rule: str) -> str:
    """A rule's name without what all of them share ("scatter_to_dynamic_update_slice")."""
    return rule.removeprefix("scatter_to_") or NO_RULE


def unique(record: ScatterRecord) -> str:
    """ "one window" where that is the proof, else proved, claimed or unknown."""
    proof = Code.ONE_WINDOW()
    return phrase(proof) if any(f.name == "unique" and f.evidence == (proof,) for f in record.facts) else record.unique


def bounds(record: ScatterRecord) -> str:
    """Why a guard is needed or none; of a scatter that has no canonical form why it has none."""
    if record.bounds.code is not Code.NOT_KNOWN or record.why is None:
        return phrase(record.bounds)
    return phrase(record.why.cause("reason") if record.why.code is Code.KEPT_UNSUPPORTED else record.why)


def writes(record: ScatterRecord) -> str:
    """The written part in index notation: "tile [:, :, pos, :] of 1x8x64x16"."""
    shape, counts, index = shape_text(record.operand_shape), record.writes.counts, record.writes.index
    if record.bounds.code is Code.NOT_KNOWN:
        return f"part of {shape}"
    if not index:
        return f"{'one window' if counts else 'windows'} of {shape}"
    if record.subset in WHOLE:
        return f"{WHOLE[record.subset]} of {shape}"
    part = PARTS.get(record.subset, "{} windows").format(" by ".join(map(str, counts)))
    return f"{part} [{', '.join(index)}] of {shape}"
