"""What the script of the HTML report has beside the JSON report: the words and the drawings for what is codes there.

Each text is there once, in `texts`, and is referred to by its number, counted from 0; the lists go along with those of
the JSON report, entry by entry. Code is told line by line, so that a line is there once, too: `blocks` are lists of the
numbers of lines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hlo_lower.base.causes import Cause
from hlo_lower.base.change import Change
from hlo_lower.base.english import kind_phrase, phrase
from hlo_lower.base.memory import ESTIMATE, memory_svg
from hlo_lower.base.short_forms import printable
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.explain import why
from hlo_lower.report.headline import reason_text
from hlo_lower.report.json_report import Numbered
from hlo_lower.report.module import NO_RULE, ModuleReport, guard_cause, refusal_cause, rule_of
from hlo_lower.report.neighbourhood import of_built
from hlo_lower.report.picture import svg_of
from hlo_lower.report.place import Group, alike, where
from hlo_lower.report.row import bounds, rule_name, unique, writes
from hlo_lower.report.source_text import scatter_texts, source_line

RECORD = (
    "where",
    "writes",
    "rule",
    "bounds",
    "unique",
    "why",
    "guard",
    "cause",
    "picture",
    "source",
    "around",
    "became",
)
"""What is told of a record, in this order; the number of "" where there is nothing."""


class _Texts:
    """Texts, and blocks of lines, by number; the first ones are empty."""

    def __init__(self) -> None:
        self.texts = Numbered[str]({"": 0})
        self.blocks = Numbered[tuple[int, ...]]({(): 0})

    def __call__(self, text: str) -> int:
        return self.texts[printable(text, keep="\t")]

    def block(self, lines: Iterable[str]) -> int:
        """The number of a block of lines."""
        return self.blocks[tuple(map(self, lines))]


def words_of(reports: Sequence[ModuleReport], data: dict[str, Any]) -> dict[str, Any]:
    """The words for a JSON report, whose data were made of these reports (`report_data`)."""
    texts = _Texts()
    reasons = list(dict.fromkeys(r for n in _rejections(reports) for other in n for r in other.reasons))
    modules = [_module(report, texts) for report in reports]
    assert len(reasons) == len(data["reasons"])
    return {
        "record": RECORD,
        "estimate": ESTIMATE,
        "reasons": [texts(phrase(reason)) for reason in reasons],
        "modules": modules,
        "texts": list(texts.texts),
        "blocks": list(texts.blocks),
    }


def _rejections(reports: Sequence[ModuleReport]) -> list[Any]:
    """What was not chosen, in the order of `rejections` of the JSON report."""
    return list(dict.fromkeys(record.why_not for report in reports for record in report.records))


def _module(report: ModuleReport, texts: _Texts) -> dict[str, Any]:
    evidence: dict[Cause, int] = {}
    for record in report.records:
        for fact in record.facts:
            evidence.update(dict.fromkeys(fact.evidence, 0))
    before, first = scatter_texts(report), dict[object, int]()
    code: list[tuple[int, int]] = []
    words: list[list[int]] = []
    for place, record in enumerate(report.records):
        shown = first.setdefault(alike(record), place)
        after = report.built.get(report.records[shown].number, ())
        words.append([texts(part) for part in (*_record(report, record), of_built(after))])
        code.append((texts.block(before[shown].split("\n") if before else ()), texts.block(after)))
    return {
        "evidence": [texts(phrase(replace(cause, at=""))) for cause in evidence],
        "refused": [
            [texts(one.op or f"any op on {one.reason['dtype']}"), texts(reason_text(one, of_many=True))]
            for one in report.refused
        ],
        "changes": [[texts(part) for part in _change(one)] for one in report.changes],
        "memory": texts(memory_svg(report.memory)),
        "records": words,
        "code": code,
    }


def _record(report: ModuleReport, record: ScatterRecord) -> tuple[str, ...]:
    is_guarded = bool(record.rule) and record.in_bounds == "unknown"
    return (
        where(Group((record,))),
        writes(record),
        rule_name(rule_of(record)),
        bounds(record),
        unique(record),
        why(record) if record.why else "",
        kind_phrase(guard_cause(record)) if is_guarded else "",
        kind_phrase(refusal_cause(record)) if rule_of(record) == NO_RULE and record.why else "",
        svg_of(record),
        source_line(report, record),
        report.around.get(record.number, ""),
    )


def _change(change: Change) -> tuple[str, str]:
    """Why, and the same in short: what many have in common stands before the first semicolon."""
    why = phrase(replace(change.why, at=""))
    return why, why.split("; ")[0]
