"""The report as one HTML page that needs nothing else: its data, a script that shows it, and a style.

The data is the JSON report as it is, so that both say the same; `page_words` adds words and drawings. Rows are drawn
when they are needed, so ten thousand modules do not stall the page. Without a script the totals are shown alone.
"""

import json
import re
from collections.abc import Collection, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from hlo_lower.base.short_forms import plural
from hlo_lower.report.headline import policies, summary, total_headline
from hlo_lower.report.json_report import report_data
from hlo_lower.report.module import ModuleReport, totals
from hlo_lower.report.overview import base_name
from hlo_lower.report.page_words import words_of


def render_html(reports: Sequence[ModuleReport], *, explain: Collection[int] = ()) -> str:
    """Render the scatters of modules as a page, on which those of the numbers `explain` are open at first."""
    total = totals(reports)
    data = report_data(reports)
    words = {**words_of(reports, data), "open": sorted(explain)}
    name = base_name(reports[0]) if len(reports) == 1 else plural(len(reports), "module")
    lines = [*(f"{title}: {line}" for title, line in summary(total)), "The tables need JavaScript."]
    headline = f"{total_headline(total)} · {policies(reports)}"
    scripts = ("listing.js", "scatters.js", "views.js")
    return page_of(f"Scatter report: {name}", headline, lines, scripts, data, words, views=(*VIEWS, "Sources"))


VIEWS = ("Overview", "Modules", "Ops")
"""The views of a page, by their headings; their names in addresses are in small letters."""


def page_of(
    title: str,
    headline: str,
    lines: Sequence[str],
    scripts: Sequence[str],
    data: Any,
    words: Any,
    *,
    views: Sequence[str] = VIEWS,
) -> str:
    """A page of its title, what stands there without a script, the scripts by their files, what these show, and the
    views."""
    names = [(view.lower(), view) for view in views]
    parts = {
        "title": escape(title),
        "heading": escape(title),
        "headline": escape(headline),
        "plain": "\n".join(f"<p>{escape(line)}</p>" for line in lines),
        "links": " ".join(f'<a href="#{name}">{view}</a>' for name, view in names),
        "sections": "\n".join(_section(name, view) for name, view in names),
        "keys": ", l source lines" if "Sources" in views else "",
        "style": _part("page.css"),
        "script": "\n\n".join(map(_part, scripts)),
        "report": _script_json(data),
        "words": _script_json(words),
    }
    return re.sub(r"{{(\w+)}}", lambda match: parts[match[1]], _part("page.html") + "\n")


def _section(name: str, view: str) -> str:
    head = f'<h2 id="h-{name}">{view}</h2>'
    return f'<section id="view-{name}" aria-labelledby="h-{name}">{head}<div class="body"></div></section>'


def plain_page(title: str, headline: str, parts: Sequence[str]) -> str:
    """A page in the same style without a script: its heading, a line below it, and parts that are HTML."""
    head = '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    head += f"<title>{escape(f'{title}: {headline}')}</title>\n<style>\n{_part('page.css')}\n</style>"
    top = f"<header><h1>{escape(title)}</h1><p>{escape(headline)}</p></header>"
    body = "\n".join((top, "<main>", *parts, "</main>"))
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


@cache
def _part(name: str) -> str:
    return files("hlo_lower.report").joinpath("page", name).read_text(encoding="utf-8").rstrip()


def _script_json(data: Any) -> str:
    """JSON that may stand in a script element: no text in it can close the element, or open a comment."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
