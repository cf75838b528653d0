"""Draw workloads before and after tiling: an SVG without libraries.

On the left their temporaries as bars on a logarithmic axis; on the right the time of one call beside the original's,
where it was measured.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import log2
from typing import Any

from hlo_lower.base.memory import shown_bytes

TOP, ROW, BAR, LEFT, WIDTH = 62, 44, 15, 170, 440
"""Height of the head, of a workload and of a bar, room for names, and the axis of temporaries, in pixels."""

TIMES, LONGEST = (LEFT + WIDTH + 170, 220), 1.5
"""Where the axis of times begins and how wide it is; the most that is drawn, as a multiple of the original's."""

LEAST = 20
"""The power of two at which the axis of temporaries begins."""

COLORS = {"before": "#b5543c", "after": "#2f6f9f"}
FONT = 'font-family="system-ui, DejaVu Sans, sans-serif" font-size="12"'


def memory_chart(entries: Sequence[Mapping[str, Any]]) -> str:
    """The chart.

    Args:
      entries: as `scripts/bench_memory.py` writes them: "workload", "before" and "after" in bytes, and "time_ratio"
        where it was measured.
    """
    most = max([log2(max(entry["before"], 2)) for entry in entries] + [LEAST + 1])
    height = TOP + 8 + ROW * len(entries)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {sum(TIMES) + 70} {height}" role="img" '
        f'aria-label="temporaries and time before and after tiling" {FONT}>',
        *_head(most, height),
    ]
    for row, entry in enumerate(entries):
        y = TOP + ROW * row
        name = escape(str(entry["workload"]).replace("_", " "))
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR + 5}" text-anchor="end">{name}</text>')
        for number, what in enumerate(COLORS):
            size, top = int(entry[what]), y + number * (BAR + 2)
            told = shown_bytes(size)
            told += f", {entry['before'] / max(size, 1):.0f}x less" if what == "after" else ""
            parts += _bar(LEFT, top, _along(size, most), what, told)
        parts += _times(entry.get("time_ratio"), y)
    return "\n".join([*parts, "</svg>\n"])


def _along(size: int, most: float) -> float:
    """How far along its axis an amount of bytes is."""
    return WIDTH * max(0.0, log2(max(size, 1)) - LEAST) / (most - LEAST)


def _head(most: float, height: int) -> list[str]:
    """Titles, the legend and the lines of both axes."""
    parts = [f'<text x="{LEFT}" y="16">temporaries by XLA</text>', f'<text x="{TIMES[0]}" y="16">time of a call</text>']
    for number, (what, color) in enumerate(COLORS.items()):
        x = LEFT + 150 + 80 * number
        parts.append(f'<rect x="{x}" y="6" width="11" height="11" fill="{color}"/>')
        parts.append(f'<text x="{x + 16}" y="16">{what}</text>')
    marks = [(LEFT + _along(1 << power, most), shown_bytes(1 << power)) for power in range(LEAST, int(most) + 1, 2)]
    marks += [(TIMES[0] + TIMES[1] * part / LONGEST, f"{part:g}x") for part in (0, 0.5, 1, 1.5)]
    for x, told in marks:
        parts.append(f'<path d="M{x:.1f},{TOP - 16}V{height - 8}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP - 22}" text-anchor="middle" fill="#555">{told}</text>')
    return parts


def _bar(left: float, top: float, length: float, what: str, told: str) -> list[str]:
    """A bar, and what is told of it behind it."""
    return [
        f'<rect x="{left}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{COLORS[what]}"/>',
        f'<text x="{left + length + 6:.1f}" y="{top + 12}">{told}</text>',
    ]


def _times(ratio: float | None, top: float) -> list[str]:
    """The time before and after, as multiples of the first."""
    left, width = TIMES
    if ratio is None:
        return [f'<text x="{left + 6}" y="{top + BAR + 5}" fill="#777">not measured</text>']
    after = width * min(ratio, LONGEST) / LONGEST
    before = f'<rect x="{left}" y="{top}" width="{width / LONGEST:.1f}" height="{BAR}" fill="{COLORS["before"]}"/>'
    return [before, *_bar(left, top + BAR + 2, after, "after", f"{ratio:.2f}x")]
