"""A report in one of its formats."""

import os
from collections.abc import Collection, Sequence

from hlo_lower.report.annotations import render_github, render_sarif
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json
from hlo_lower.report.markdown import render_markdown
from hlo_lower.report.module import ModuleReport
from hlo_lower.report.text import PLAIN_WIDTH, render_text

FORMATS = ("text", "json", "markdown", "html", "github", "sarif")
FORM_BY_SUFFIX = {".json": "json", ".md": "markdown", ".html": "html", ".sarif": "sarif"}
ANNOTATED = {"github": render_github, "sarif": render_sarif}


def form_of(path: str, default: str) -> str:
    """The format that a file's suffix asks for; the default for another one."""
    return FORM_BY_SUFFIX.get(os.path.splitext(path)[1].lower(), default)


def render(
    reports: Sequence[ModuleReport],
    form: str = "text",
    *,
    show_all: bool = False,
    explain: Collection[int] = (),
    verbose: bool = False,
    width: int = PLAIN_WIDTH,
    color: bool = False,
) -> str:
    """Render modules in a format of FORMATS; the keywords are those of `render_text`, as far as the format has them."""
    if form == "json":
        return render_json(reports)
    if form == "markdown":
        return render_markdown(reports, show_all=show_all, explain=explain)
    if form in ANNOTATED:
        return ANNOTATED[form](reports)
    if form == "html":
        return render_html(reports, explain=explain)
    return render_text(reports, show_all=show_all, explain=explain, verbose=verbose, width=width, color=color)
