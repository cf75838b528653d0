"""The passes of the pipeline: what each does, who wants it, and what it did to a module; as text and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from hlo_lower.base.change import Change
from hlo_lower.report.page import grid_text, new_page

MOST_NAMES = 3
"""As many names of ops are shown of those that are gone, and of those that are new."""


@dataclass(frozen=True)
class PassWork:
    """What a pass did to a module."""

    seconds: float  # how long it took
    # gone, built: ops that it took away, and that it built, by name; one that it gave other types counts as both
    gone: Mapping[str, int]
    built: Mapping[str, int]
    changes: tuple[Change, ...]  # what it tells of ops


@dataclass(frozen=True)
class PassRow:
    """A pass under a target."""

    # name, does: of the pass
    name: str
    does: str
    may_change: str  # what it may change of a module
    why_not: str  # why it is not wanted; "" where it is
    where: str  # on what it depends that other passes did, or ""
    after: tuple[str, ...]  # passes that come before it
    work: PassWork | None = None  # what it did; None where it did not run


def render_pipeline_text(rows: Sequence[PassRow], *, with_work: bool, width: int, color: bool = False) -> str:
    """Render passes as a table, in order, with what they did where they ran on a module."""
    cells: list[list[str | Text]] = []
    styles: list[str] = []
    for row in rows:
        work = row.work
        condition = f"no: {row.why_not}" if row.why_not else f"yes, {row.where}" if row.where else "yes"
        told = _work_text(row) if with_work else condition
        time = [f"{1000 * work.seconds:,.1f}" if work else ""] if with_work else []
        styles.append("dim" if row.why_not or (with_work and work is None) else "")
        cells.append([Text(row.name, styles[-1] or "bold"), row.does, row.may_change, Text(told), *time])
    headers = ("pass", "what it does", "may change", *(("what it did", "ms") if with_work else ("wanted",)))
    return grid_text(headers, cells, new_page(width, color=color), styles)


def pipeline_json(rows: Sequence[PassRow], target: str, module: str | None) -> dict[str, Any]:
    """The passes as JSON; with a module also what each did to it."""
    passes = [_json(row) | (_work_json(row.work) if module is not None else {}) for row in rows]
    return {"target": target, **({} if module is None else {"module": module}), "passes": passes}


def _json(row: PassRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "does": row.does,
        "may_change": row.may_change,
        "after": list(row.after),
        "wanted": not row.why_not,
        "why_not": row.why_not,
        "where": row.where,
    }


def _work_json(work: PassWork | None) -> dict[str, Any]:
    if work is None:
        return {"ran": False}
    changes = [str(change) for change in work.changes]
    told = {"seconds": round(work.seconds, 6), "gone": dict(work.gone), "built": dict(work.built), "changes": changes}
    return {"ran": True, **told}


def _work_text(row: PassRow) -> str:
    if row.work is None:
        return f"not wanted: {row.why_not}" if row.why_not else f"not run: only {row.where}"
    parts = [_ops("-", row.work.gone), _ops("+", row.work.built)]
    return "; ".join(filter(None, parts)) or "nothing"


def _ops(sign: str, counts: Mapping[str, int]) -> str:
    """The ops that come or go, the most frequent ones by name."""
    shown = [f"{sign}{count:,} {name.removeprefix('stablehlo.')}" for name, count in counts.items()]
    others = sum(list(counts.values())[MOST_NAMES:])
    return ", ".join([*shown[:MOST_NAMES], *([f"{sign}{others:,} others"] if others else [])])
