"""Draw the temporaries of workloads before and after tiling as bars on a logarithmic axis: an SVG without libraries."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log2
from typing import Any

from hlo_lower.tile.tiled_module import shown_bytes

ROW, BAR, LEFT, WIDTH = 44, 15, 170, 560
"""Height of a workload and of a bar, room for names, and the axis, in pixels."""

LEAST = 20
"""The power of two at which the axis begins."""

COLORS = {"before": "#b5543c", "after": "#2f6f9f"}


def memory_chart(entries: Sequence[Mapping[str, Any]]) -> str:
    """The chart.

    Args:
      entries: as `scripts/bench_memory.py` writes them: "workload", "before" and "after" in bytes, and "time_ratio"
        where it was measured.
    """
    most = max([log2(max(entry["before"], 2)) for entry in entries] + [LEAST + 1])
    height = 40 + ROW * len(entries)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 190} {height}" role="img" '
        f'aria-label="temporaries before and after tiling" font-family="system-ui, sans-serif" font-size="12">'
    ]

    def at(size: int) -> float:
        return WIDTH * max(0.0, log2(max(size, 1)) - LEAST) / (most - LEAST)

    for power in range(LEAST, int(most) + 1, 2):
        x = LEFT + at(1 << power)
        parts.append(f'<path d="M{x:.1f},22V{height - 14}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="14" text-anchor="middle" fill="#555">{shown_bytes(1 << power)}</text>')
    for row, entry in enumerate(entries):
        y = 30 + ROW * row
        name = escape(str(entry["workload"]).replace("_", " "))
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{name}</text>')
        for number, (what, color) in enumerate(COLORS.items()):
            size, top = int(entry[what]), y + number * (BAR + 2)
            parts.append(f'<rect x="{LEFT}" y="{top}" width="{at(size):.1f}" height="{BAR}" fill="{color}"/>')
            told = shown_bytes(size)
            if what == "after":
                told += f", {entry['before'] / max(size, 1):.0f}x less"
                told += f", {entry['time_ratio']:.2f}x the time" if "time_ratio" in entry else ""
            parts.append(f'<text x="{LEFT + at(size) + 6:.1f}" y="{top + 12}">{told}</text>')
    return "\n".join([*parts, "</svg>\n"])
