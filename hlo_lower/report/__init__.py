"""Reports: records of scatters as text, JSON, Markdown and HTML."""

from hlo_lower.report.costs_table import render_costs_markdown, render_costs_text
from hlo_lower.report.explain import explain
from hlo_lower.report.html import render_html
from hlo_lower.report.json_report import render_json, report_data
from hlo_lower.report.markdown import render_markdown
from hlo_lower.report.module import ModuleReport, Totals, folders, totals
from hlo_lower.report.render import FORMATS, render
from hlo_lower.report.rules_table import render_rules_markdown, render_rules_text
from hlo_lower.report.text import render_text

__all__ = [
    "FORMATS",
    "ModuleReport",
    "Totals",
    "explain",
    "folders",
    "render",
    "render_costs_markdown",
    "render_costs_text",
    "render_html",
    "render_json",
    "render_markdown",
    "render_rules_markdown",
    "render_rules_text",
    "render_text",
    "report_data",
    "totals",
]
