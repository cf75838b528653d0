"""The named ops of modules, and what was almost one: as text, and as one HTML page."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from hlo_lower.base import english
from hlo_lower.base.english import phrase
from hlo_lower.base.short_forms import listed, plural, tally
from hlo_lower.named.record import NamedRecord, NamedReport
from hlo_lower.report.html import page_of
from hlo_lower.report.json_report import Numbered
from hlo_lower.report.page import new_page, page_text, print_wrapped
from hlo_lower.report.text import PLAIN_WIDTH


def named_text(reports: Sequence[NamedReport], *, width: int = PLAIN_WIDTH, color: bool = False) -> str:
    """A line for each kind of named op of each module with where it is, and one for each near miss; wrapped."""
    page = new_page(width, color=color)
    for report in reports:
        for line in _lines(report):
            print_wrapped(page, line)
    return page_text(page)


def _lines(report: NamedReport) -> list[str]:
    if report.error:
        return [f"{report.file}: unreadable", *(f"  {line}" for line in report.error.splitlines())]
    covered = sum(one.ops * one.times for one in report.named)
    flops = sum(one.flops * one.times for one in report.named)
    count = sum(one.times for one in report.named)
    of = f" of {report.flops:,}" if report.flops else ""
    lines = [f"{report.file}: {count} named op{'s' * (count != 1)}, {covered:,} ops, {flops:,}{of} FLOPs"]
    groups: dict[tuple[object, ...], list[NamedRecord]] = {}
    for one in report.named:
        groups.setdefault((one.name, str(one.inputs), str(one.attributes), one.ops, one.inner, one.further), []).append(
            one
        )
    for same in groups.values():
        lines += _group(same)
    lines += [f"  almost {miss.name} at {miss.place}: {english.phrase(miss.why)}" for miss in report.misses]
    return lines


def _group(same: list[NamedRecord]) -> list[str]:
    first = same[0]
    times = sum(one.times for one in same)
    inputs = ", ".join(f"{role} {kind}" for role, kind in first.inputs.items())
    attributes = ", ".join(f"{name}={_value(value)}" for name, value in first.attributes.items())
    places = list(dict.fromkeys(one.place for one in same))
    shown = listed(places, 4)
    tail = f"{first.ops} ops, {first.flops:,} FLOPs each"
    tail += f"; holds {', '.join(first.inner)}" if first.inner else ""
    tail += f"; {first.further} values in between are used outside" if first.further else ""
    return [
        f"  {times} {first.name}({inputs})" + (f" {{{attributes}}}" if attributes else ""),
        f"      {tail}; {shown}",
    ]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return str(list(cast(tuple[Any, ...], value)))
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def render_named_html(reports: Sequence[NamedReport], groups: Sequence[str] = ()) -> str:
    """Render the named ops of modules as a page; `groups` are their folders, where they are of several."""
    texts = Numbered[str]({"": 0})
    misses = [texts.all(phrase(miss.why) for miss in report.misses) for report in reports]
    folders = groups or [""] * len(reports)
    modules = [{**one.to_json(), "group": group} for one, group in zip(reports, folders, strict=True)]
    words: dict[str, Any] = {"texts": list(texts), "modules": misses, "open": []}
    name = reports[0].file.rsplit("/", 1)[-1] if len(reports) == 1 else plural(len(reports), "module")
    count = sum(one.times for report in reports for one in report.named)
    almost = sum(len(report.misses) for report in reports)
    lines = [f"{one.file}: {_tally(one)}" for one in reports[:PLAIN]]
    return page_of(
        f"Named ops: {name}",
        f"{plural(count, 'named op')} · {almost:,} almost",
        [*lines, "The tables need JavaScript."],
        ("listing.js", "named.js", "views.js"),
        {"modules": modules},
        words,
    )


PLAIN = 20
"""Modules that are told of where there is no script."""


def _tally(report: NamedReport) -> str:
    counts = Counter[str]()
    for one in report.named:
        counts[one.name] += one.times
    return report.error.split("\n")[0] or tally(counts) or "none"
