"""The report of named ops as one HTML page: its JSON, words of what was almost one, and tables of the same kind."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hlo_lower.base.english import told
from hlo_lower.base.short_forms import plural, tally
from hlo_lower.named.record import NamedReport
from hlo_lower.report.html import page_of
from hlo_lower.report.json_report import Numbered


def render_named_html(reports: Sequence[NamedReport], groups: Sequence[str] = ()) -> str:
    """Render the named ops of modules as a page.

    Args:
      reports: what was found in each module.
      groups: the folder of each, where they are of several.
    """
    texts = Numbered[str]({"": 0})
    misses = [texts.all(told(miss.why) for miss in report.misses) for report in reports]
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
