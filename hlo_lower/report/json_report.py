"""The report as JSON: every record, causes as codes, and nothing twice. docs/json-schema.md says what each field is.

What many records share is written once and referred to by its number: the evidence in a table of each module, the rules
that were not chosen in one of the whole report. A record like an earlier one of its module has only the fields in which
it differs. The same modules give the same text.
"""

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar, cast

from hlo_lower.base.causes import Cause
from hlo_lower.base.change import Change, RefusedOps
from hlo_lower.facts.scatter.record import Rejection, ScatterRecord
from hlo_lower.report.module import ModuleReport, Totals, folders, totals
from hlo_lower.report.row import rule_name

VERSION = 2

OWN = ("number", "function", "location", "scope")
"""Fields of a record that say where it stands: they are always its own."""

OPTIONS = {"float_mode", "dialect"}
"""Facts that were asked for, the same for every record."""

LINES = 3
"""How deep in the data a container has lines of its own; a record or a step of the evidence is one line."""


Shared = TypeVar("Shared", bound=Hashable)


class Numbered(dict[Shared, int]):
    """Things by number: each once, in the order in which they were first asked for."""

    def __missing__(self, thing: Shared) -> int:
        self[thing] = len(self)
        return self[thing]

    def all(self, things: Iterable[Shared]) -> list[int]:
        """The numbers of several."""
        return [self[thing] for thing in things]


def report_data(reports: Sequence[ModuleReport]) -> dict[str, Any]:
    """The modules, their records and the totals as plain data."""
    rejections, reasons = Numbered[tuple[Rejection, ...]](), Numbered[Cause]()
    modules = [_module(report, rejections) for report in reports]
    rules = {record.rule: record.form for report in reports for record in report.records if record.rule}
    return {
        "version": VERSION,
        "modules": modules,
        "rules": dict(sorted(rules.items())),
        "rejections": [{rule_name(r.rule): reasons.all(r.reasons) for r in some} for some in rejections],
        "reasons": [cause.to_json() for cause in reasons],
        "totals": _totals(totals(reports)),
        "groups": [{"group": name, "totals": _totals(totals(members))} for name, members in folders(reports)],
    }


def render_json(reports: Sequence[ModuleReport]) -> str:
    """Render modules as JSON text."""
    return "".join(_lines(report_data(reports), 0)) + "\n"


def _lines(value: Any, depth: int) -> list[str]:
    """The text of a value in parts: containers down to `LINES` have a line for each of what they hold."""
    if depth > LINES or not isinstance(value, dict | list) or not value:
        return [json.dumps(value, ensure_ascii=False)]
    if isinstance(value, dict):
        named = cast(dict[str, Any], value).items()
        pairs = [(f"{json.dumps(name, ensure_ascii=False)}: ", held) for name, held in named]
    else:
        pairs = [("", held) for held in cast(list[Any], value)]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    parts = [opened]
    for number, (name, held) in enumerate(pairs):
        parts += [",\n" if number else "\n", " " * (depth + 1), name, *_lines(held, depth + 1)]
    return [*parts, "\n", " " * depth, closed]


def _module(report: ModuleReport, rejections: "Numbered[tuple[Rejection, ...]]") -> dict[str, Any]:
    evidence = Numbered[Cause]()
    records: list[dict[str, Any]] = []
    first: dict[Hashable, tuple[int, dict[str, Any]]] = {}
    for record in report.records:
        told = _record(record, evidence, rejections)
        key = (record.kind, record.subset, record.dtype, record.operand_shape, record.updates_shape, record.rule)
        number, like = first.setdefault(key, (record.number, told))
        if like is told:
            records.append(told)
        else:
            other = {name: told.get(name) for name in (*told, *like) if name in OWN or told.get(name) != like.get(name)}
            records.append({"number": record.number, "like": number, **other})
    return {
        **{name: getattr(report, name) for name in ("file", "group", "op_count", "scatters_left", "target", "oob")},
        "verdict": None if report.verdict is None else dict(report.verdict),
        **{name: getattr(report, name) for name in ("convert_seconds", "verify_seconds", "error")},
        "notes": list(report.notes),
        "changes": [_change(change) for change in report.changes],
        "refused": _refused_json(report.refused),
        "best_options": list(report.best_options),
        "exit_code": report.exit_code,
        "is_resumed": report.is_resumed,
        "artifact": None if report.artifact is None else dict(report.artifact),
        "memory": [curve.to_json() for curve in report.memory],
        "evidence": [cause.to_json() for cause in evidence],
        "records": records,
    }


def _record(
    record: ScatterRecord, evidence: Numbered[Cause], rejections: "Numbered[tuple[Rejection, ...]]"
) -> dict[str, Any]:
    """A record in full, without empty fields."""
    own = {f.name for f in fields(record)} | OPTIONS
    said = {fact.name: fact.value for fact in record.facts if fact.name not in own}
    proofs = {fact.name: evidence.all(fact.evidence) for fact in record.facts}
    told = {
        **{name: getattr(record, name) for name in (*OWN, "kind", "subset")},
        "writes": {"counts": list(record.writes.counts), "index": list(record.writes.index)},
        "combiner": record.combiner,
        **{name: list(getattr(record, name)) for name in ("operand_shape", "indices_shape", "updates_shape")},
        "dtype": record.dtype,
        "in_bounds": record.in_bounds,
        "bounds": record.bounds.to_json(),
        "unique": record.unique,
        "rule": record.rule,
        "why": record.why and record.why.to_json(),
        "why_not": rejections[record.why_not],
        "facts": said,
        "evidence": {name: steps for name, steps in proofs.items() if steps},
        "claims": _claims(record),
    }
    return {name: value for name, value in told.items() if value not in ("", None, {})}


def _claims(record: ScatterRecord) -> dict[str, Any]:
    """What is claimed of the indices beyond what the record says; claims that say nothing are left out."""
    plain = {} if record.claims is None else asdict(record.claims)
    said = ("oob", "in_bounds", "windows", "is_unique")
    return {name: value for name, value in plain.items() if value and name not in said}


def _totals(total: Totals) -> dict[str, Any]:
    """Totals with their counts of causes as lists: each cause with its count."""
    causes: dict[str, Any] = {
        name: [{**cause.to_json(), "count": count} for cause, count in getattr(total, name).items()]
        for name in ("no_rule", "guard_causes")
    }
    causes["refused"] = _refused_json(total.refused)
    return {f.name: causes[f.name] if f.name in causes else getattr(total, f.name) for f in fields(total)}


def _change(change: Change) -> dict[str, Any]:
    return {**asdict(change), "outcome": change.outcome.value, "why": change.why.to_json()}


def _refused_json(refused: Sequence[RefusedOps]) -> list[dict[str, Any]]:
    return [{**asdict(one), "reason": one.reason.to_json(), "places": list(one.places)} for one in refused]
