"""Draw the ratios to native as bars on a logarithmic axis, one panel per consumer."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmark.outcome import Entry, Outcome
from benchmark.versions import LOOP, LOWERED, NATIVE, REASSOCIATE

COLORS = {LOWERED: "#1f6fb4", REASSOCIATE: "#2a9d62", LOOP: "#c98a1b"}
MORE_COLORS = ("#8d5fb0", "#c2504a", "#5c8f99", "#a0a13a", "#666666")
NAMES = {LOWERED: "lowered", REASSOCIATE: "lowered, float sums in any order", LOOP: "loop"}


def write_plot(path: Path, outcomes: Sequence[Outcome], caption: str) -> None:
    """Write the chart as a PNG file.

    Raises:
      ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    consumers = list(dict.fromkeys(outcome.consumer for outcome in outcomes))
    entries = [entry for outcome in outcomes for entry in outcome.entries]
    preferred = dict.fromkeys(e.candidate for e in entries if e.candidate not in (NATIVE, *COLORS))
    colors = COLORS | dict(zip(preferred, cycle(MORE_COLORS)))
    names = list(dict.fromkeys(outcome.case.name for outcome in outcomes))
    figure = Figure(figsize=(2 + 5.5 * len(consumers), 1.6 + 0.62 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(consumers), sharey=True, squeeze=False)[0]
    for axes, consumer in zip(panels, consumers, strict=True):
        _panel(axes, consumer, names, colors, {o.case.name: o for o in outcomes if o.consumer == consumer})
    panels[0].set_yticks(range(len(names)), names)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    handles = [Patch(color=color, label=NAMES.get(name, name)) for name, color in colors.items()]
    figure.legend(handles=handles, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    figure.supxlabel(caption, fontsize=8, color="#555555")
    figure.savefig(path, dpi=130, format="png")


def _panel(
    axes: Any, consumer: str, names: Sequence[str], colors: dict[str, str], outcomes: dict[str, Outcome]
) -> None:
    """Bars of one consumer; a bar that is missing says why in a word."""
    ratios = [r for o in outcomes.values() for c in colors if (r := o.ratio(c)) is not None]
    low, high = min([0.5, *ratios]), max([2.0, *ratios])
    axes.set_xscale("log")
    axes.set_xlim(low / 10, high * 6)
    axes.axvline(1, color="black", linewidth=1, zorder=3)
    for row, name in enumerate(names):
        outcome = outcomes.get(name)
        shown = [c for c in colors if outcome is not None and outcome.entry(c) is not None]
        height = 0.8 / max(1, len(shown))
        for place, candidate in enumerate(shown):
            y = row + (place - (len(shown) - 1) / 2) * height
            _bar(axes, outcome, candidate, colors[candidate], y, height)
    axes.set_title(consumer, fontsize=11)
    axes.set_xlabel("time / native scatter (log scale; less is faster)", fontsize=9)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6, zorder=0)
    axes.tick_params(labelsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _bar(axes: Any, outcome: Outcome | None, candidate: str, color: str, y: float, height: float) -> None:
    entry = outcome.entry(candidate) if outcome else None
    if outcome is None or entry is None:
        return
    value = outcome.ratio(candidate)
    style: dict[str, Any] = {"va": "center", "fontsize": 6.5, "color": "#333333"}
    if value is None:
        axes.text(1.05, y, _reason(entry), style="italic", **style)
        return
    # From 1 outwards: a bar to the left is faster than native, one to the right slower.
    axes.barh(y, value - 1, height * 0.9, left=1, color=color, zorder=2)
    text = f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    axes.text(value * (0.93 if value < 1 else 1.07), y, text, ha="right" if value < 1 else "left", **style)


def _reason(entry: Entry) -> str:
    """Why there is no bar, in a few words."""
    if entry.timing is not None:
        return f"{entry.timing.median * 1e3:,.2f} ms, no native"
    told = entry.note.split("; ")[-1]  # behind what it is the same as
    what, _, why = told.partition(": ")
    return why if why.startswith("not done") else what or "not measured"
