"""Flowcharts of the documents as SVG: the part of mermaid's language that they use, from top to bottom.

GitHub draws mermaid itself; a page of the site would have to load a script for it. Here nodes stand in ranks, each
below those that lead to it; an arrow to the next rank is a line, any other one goes around at the side.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

NODE = re.compile(r'(\w+)(?:(?:\["|\{")(.*?)(?:"\]|"\}))?')
ARROW = re.compile(r'\s+(?:-\. "?([^"]*?)"? \.->|-- "?([^"]*?)"? -->|-->)\s+')
BLOCK = re.compile(r"^```mermaid\nflowchart TB\n(.*?)^```$", re.DOTALL | re.M)

LETTERS, LINE, ACROSS, DOWN, SIDE = 44, 16, 24, 34, 34
"""Letters in a line of a node; pixels of a line, between nodes, between ranks, and for an arrow at the side."""


@dataclass(frozen=True)
class Arrow:
    """From one node to another; with words, and dashed where the chart has dots."""

    start: str
    end: str
    words: str
    is_dashed: bool


def drawn(text: str) -> str:
    """A page with its flowcharts as SVG."""
    return BLOCK.sub(lambda found: f"```{{raw}} html\n{svg_of(*read(found[1]))}\n```", text)


def read(text: str) -> tuple[dict[str, str], list[Arrow]]:
    """The words of each node, and the arrows."""
    nodes: dict[str, str] = {}
    arrows: list[Arrow] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        start, dotted, said, end = ARROW.split(line, maxsplit=1) if ARROW.search(line) else (line, None, None, "")
        names: list[str] = []
        for part in filter(None, (start, end)):
            found = NODE.fullmatch(part)
            assert found is not None, line
            nodes[found[1]] = found[2] or nodes.get(found[1], found[1])
            names.append(found[1])
        if end:
            arrows.append(Arrow(*names, dotted or said or "", dotted is not None))
    return nodes, arrows


def ranks_of(nodes: Sequence[str], arrows: Sequence[Arrow]) -> dict[str, int]:
    """How far down each node stands: below all that lead to it, arrows that close a circle aside."""
    down = [arrow for arrow in arrows if arrow not in _closing(nodes, arrows)]
    ranks = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for arrow in down:
            ranks[arrow.end] = max(ranks[arrow.end], ranks[arrow.start] + 1)
    return ranks


def _closing(nodes: Sequence[str], arrows: Sequence[Arrow]) -> list[Arrow]:
    """Arrows that lead back to where a way through the chart came from."""
    found: list[Arrow] = []
    done: set[str] = set()

    def follow(name: str, way: tuple[str, ...]) -> None:
        for arrow in (arrow for arrow in arrows if arrow.start == name):
            if arrow.end in way:
                found.append(arrow)
            elif arrow.end not in done:
                follow(arrow.end, (*way, arrow.end))
        done.add(name)

    for name in nodes:
        if name not in done:
            follow(name, (name,))
    return found


def svg_of(nodes: dict[str, str], arrows: Sequence[Arrow]) -> str:
    """The drawing."""
    ranks = ranks_of(list(nodes), arrows)
    lines = {name: textwrap.wrap(words, LETTERS) for name, words in nodes.items()}
    sizes = {name: (max(map(len, own)) * 7 + 20, len(own) * LINE + 14) for name, own in lines.items()}
    rows = [[name for name in nodes if ranks[name] == rank] for rank in range(max(ranks.values()) + 1)]
    widest = max(sum(sizes[name][0] + ACROSS for name in row) for row in rows)
    aside = [arrow for arrow in arrows if ranks[arrow.end] != ranks[arrow.start] + 1]
    middle = SIDE * len(aside) + widest / 2
    places: dict[str, tuple[float, float]] = {}
    top = 4.0
    for row in rows:
        left = middle - sum(sizes[name][0] + ACROSS for name in row) / 2
        for name in row:
            places[name] = (left + (sizes[name][0] + ACROSS) / 2, top)
            left += sizes[name][0] + ACROSS
        top += max(sizes[name][1] for name in row) + DOWN
    wide, high = middle + widest / 2 + 4, top - DOWN + 4
    parts = [
        f'<svg class="flowchart" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" role="img" '
        f'aria-label="{escape("; ".join(nodes.values()))}">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>',
    ]
    for arrow in arrows:
        parts += _arrow(arrow, places, sizes, (aside.index(arrow) + 1) * SIDE if arrow in aside else None)
    for name, (x, y) in places.items():
        width, height = sizes[name]
        parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width}" height="{height}" rx="4" fill="var(--color-'
            'background-secondary)" stroke="currentColor" stroke-opacity=".5"/>'
        )
        parts += [_text(x, y + 18 + LINE * n, line) for n, line in enumerate(lines[name])]
    return "".join([*parts, "</svg>"])


def _arrow(
    arrow: Arrow, places: dict[str, tuple[float, float]], sizes: dict[str, tuple[int, int]], side: float | None
) -> list[str]:
    """Its line and its words: straight down, or by way of a column at the left."""
    (x, y), (to_x, to_y) = places[arrow.start], places[arrow.end]
    y += sizes[arrow.start][1]
    path, at = f"M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}", ((x + to_x) / 2 + 4, (y + to_y) / 2 + 4)
    if side is not None:
        from_x, from_y = x - sizes[arrow.start][0] / 2, y - sizes[arrow.start][1] / 2
        left, into = to_x - sizes[arrow.end][0] / 2, to_y + sizes[arrow.end][1] / 2
        path, at = f"M{from_x:.0f} {from_y:.0f}H{side:.0f}V{into:.0f}H{left:.0f}", (side + 4, from_y - 5)
    dashes = ' stroke-dasharray="4 3"' if arrow.is_dashed else ""
    line = f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".7" marker-end="url(#head)"{dashes}/>'
    return [line, *([_text(*at, arrow.words, "start")] if arrow.words else [])]


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    look = 'fill="currentColor" font-size="12" font-family="system-ui,sans-serif"'
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {look}>{escape(words)}</text>'
