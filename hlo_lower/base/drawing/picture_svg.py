"""A drawing of what is taken of a tensor as an SVG: in a page, in a notebook, in documents."""

from collections.abc import Iterable, Iterator
from html import escape

from hlo_lower.base.drawing.picture import Box, Look, Picture
from hlo_lower.base.short_forms import printable

WIDTH, HEIGHT = 220, 120
"""Most that a tensor takes, in pixels."""

LEAST = 14
"""Least extent of a tensor, so that a row of 1x100000 is seen."""

MARGIN = 26
LINE = 15
MOST_LINES = 32
"""Cells that are told apart by lines between them; more are drawn as an area."""

COLORS = {
    Look.READ: "#3b74c4",
    Look.HELD: "#3f8f5b",
    Look.WRITTEN: "#3b74c4",
    Look.ADDED: "#c77a12",
    Look.AGAIN: "#c77a12",
    Look.OUTSIDE: "#c0392b",
}
TEXT = 'fill="currentColor" font-family="system-ui,sans-serif" font-size="12"'
STYLE = "<style>svg{color:#1c2127}@media(prefers-color-scheme:dark){svg{color:#e4e7eb}}</style>"


def picture_svg(picture: Picture, told: str, *, alone: bool = False) -> str:
    """An SVG with its captions.

    Args:
      picture: the drawing.
      told: what it shows in words, for those who do not see it.
      alone: whether it is a file of its own, which brings its colours for light and dark.
    """
    width, height = extent(picture, WIDTH, HEIGHT)
    bottom = MARGIN + height + MARGIN
    lines = [
        picture.rows.told and f"down, {picture.rows.told}",
        picture.columns.told and f"across, {picture.columns.told}",
    ]
    captions = [printable(line) for line in (*filter(None, lines), *picture.captions)]
    wide = max([MARGIN * 2 + width, *(12 + 6.4 * len(line) for line in captions)])
    high = bottom + LINE * len(captions)
    parts = [*shapes_of(picture, MARGIN, MARGIN, width, height)]
    parts += (text_at(6, bottom + LINE * n + 4, line) for n, line in enumerate(captions))
    return element("picture", wide, high, ". ".join([told, *captions]), parts, alone=alone)


def element(kind: str, width: float, height: float, told: str, parts: Iterable[str], *, alone: bool) -> str:
    """An SVG of a class and a size, and what it shows in words; `alone` as in `picture_svg`."""
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg{space} class="{kind}" {size} role="img" aria-label="{escape(told)}" {TEXT}>'
    return "".join([head, STYLE if alone else "", *parts, "</svg>"])


def text_at(x: float, y: float, told: str, anchor: str = "") -> str:
    """A line of text."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{placed}>{escape(told)}</text>'


def extent(picture: Picture, width: int, height: int) -> tuple[int, int]:
    """Width and height of the tensor, of those at most: in proportion, as far as both can be seen."""
    rows, columns = picture.rows.size, picture.columns.size
    scale = min(width / columns, height / rows, 20)
    return max(round(columns * scale), LEAST), max(round(rows * scale), LEAST)


def shapes_of(picture: Picture, x: int, y: int, width: int, height: int) -> Iterator[str]:
    """The tensor with its lines, and the boxes, at a place."""
    dashes = "" if picture.is_stored else ' stroke-dasharray="5 4"'
    look = f'fill="currentColor" fill-opacity=".06" stroke="currentColor" stroke-opacity=".6"{dashes}'
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {look}/>'
    path = ""
    for axis, size, is_row in ((picture.rows, height, True), (picture.columns, width, False)):
        count = axis.size / axis.unit
        if count <= MOST_LINES and size >= 4 * count:
            for line in range(axis.unit, axis.size, axis.unit):
                at = size * line / axis.size
                path += f"M{x} {y + at:.1f}h{width}" if is_row else f"M{x + at:.1f} {y}v{height}"
    if path:
        yield f'<path d="{path}" stroke="currentColor" stroke-opacity=".18" fill="none"/>'
    for box in picture.boxes:
        left, wide = _span(box.columns, picture.columns.size, width)
        top, high = _span(box.rows, picture.rows.size, height)
        place = f'x="{x + left:.1f}" y="{y + top:.1f}" width="{wide:.1f}" height="{high:.1f}"'
        yield f"<rect {place} {_look(box)}/>"


def _look(box: Box) -> str:
    color = COLORS[box.look]
    solid = f'fill="{color}" fill-opacity=".75"'
    dashed = f'fill="{color}" fill-opacity=".12" stroke="{color}" stroke-width="1.5" stroke-dasharray="4 3"'
    half = f'fill="{color}" fill-opacity=".55" stroke="{color}" stroke-width="1.5"'
    return {Look.OUTSIDE: dashed, Look.AGAIN: half}.get(box.look, solid)


def _span(cells: tuple[int, int], size: int, pixels: int) -> tuple[float, float]:
    """Start and extent in pixels, at least 3; what leaves the tensor does so by less than the margin."""
    start = pixels * cells[0] / size
    long = max(pixels * (cells[1] - cells[0]) / size, 3.0)
    most = pixels + MARGIN - 12
    return min(start, pixels + 2), min(long, max(most - start, 3.0))
