"""Totals as bars of an HTML page: elements with a width, no picture and no script."""

from collections.abc import Mapping, Sequence
from html import escape

from hlo_lower.causes import Cause
from hlo_lower.english import told_kind
from hlo_lower.report.module import ModuleReport, Totals, folders, totals
from hlo_lower.report.overview import loop_share
from hlo_lower.report.row import rule_name
from hlo_lower.report.short_forms import plural, printable


def charts(total: Totals) -> str:
    """A chart for each count of the totals; those without a bar are left out."""
    guards = {
        "needed": total.guards_needed,
        "proved away": total.guards_proved_away,
        "never in bounds": total.never_in_bounds,
    }
    shown = [
        _chart("Kinds", total.kinds),
        _chart("Subsets", total.subsets),
        _chart("Combiners", total.combiners),
        _chart("Rules", {rule_name(rule): count for rule, count in total.rules.items()}),
        _chart("No rule, and why", _told(total.no_rule)),
        _chart("Guards", {name: count for name, count in guards.items() if count}),
        _chart("Guards needed for an index from", _told(total.guard_causes)),
    ]
    return f'<div class="charts">{"".join(shown)}</div>' if total.scatters else ""


def folder_chart(reports: Sequence[ModuleReport]) -> str:
    """A bar for each folder, of one length: how many of its scatters have a form, end in the loop, or have no rule.

    Nothing where all scatters are in one folder.
    """
    counted = [(name, totals(members)) for name, members in folders(reports)]
    bars = [_parts(name, total) for name, total in counted if total.scatters]
    if len(bars) < 2:
        return ""
    keys = (("", "a form without a loop"), ("loop", "the loop over the windows"), ("none", "no rule"))
    legend = "".join(f'<span class="key {kind}">{escape(text)}</span>' for kind, text in keys)
    title = "What the scatters of each folder become"
    return f'<div class="chart wide"><h3>{title}</h3><p>{legend}</p>{"".join(bars)}</div>'


def broken(name: str) -> str:
    """A name as HTML that may be broken after an underscore."""
    return escape(printable(name)).replace("_", "_<wbr>")


def _told(counts: Mapping[Cause, int]) -> dict[str, int]:
    return {told_kind(cause): count for cause, count in counts.items()}


def _chart(title: str, counts: Mapping[str, int]) -> str:
    """A bar for each count, as long as its share of the largest."""
    largest = max(counts.values(), default=1)
    bars = "".join(
        f'<div class="bar"><b>{broken(name)}</b><em>{count:,}</em>'
        f'<i style="width: {100 * count / largest:.1f}%"></i></div>'
        for name, count in counts.items()
    )
    return f'<div class="chart"><h3>{escape(title)}</h3>{bars}</div>' if bars else ""


def _parts(name: str, total: Totals) -> str:
    without = sum(total.no_rule.values())
    parts = (("form", total.scatters - total.looped - without), ("loop", total.looped), ("none", without))
    bar = "".join(
        f'<i class="{kind}" style="width: {100 * count / total.scatters:.1f}%"></i>' for kind, count in parts if count
    )
    told = f"{plural(total.scatters, 'scatter')}, loop {loop_share(total)}"
    return f'<div class="bar"><b>{broken(name)}</b><span class="parts">{bar}</span><em>{escape(told)}</em></div>'
