"""The drawing of what a scatter writes as an SVG: in a page, in a notebook, in documents."""

from collections.abc import Iterator
from html import escape

from hlo_lower.report.picture import Axis, Box, Look, Picture, picture_of
from hlo_lower.report.row import writes
from hlo_lower.report.short_forms import printable
from hlo_lower.scatter.record import ScatterRecord

WIDTH, HEIGHT = 220, 120
"""Most that the operand takes, in pixels."""

LEAST = 14
"""Least extent of the operand, so that a row of 1x100000 is seen."""

MARGIN = 26
LINE = 15
MOST_LINES = 32
"""Cells that are told apart by lines between them; more are drawn as an area."""

COLORS = {Look.WRITTEN: "#3b74c4", Look.AGAIN: "#c77a12", Look.OUTSIDE: "#c0392b"}
STYLE = "<style>svg{color:#1c2127}@media(prefers-color-scheme:dark){svg{color:#e4e7eb}}</style>"


def svg_of(record: ScatterRecord, *, alone: bool = False) -> str:
    """An SVG, with what it shows in words for those who do not see it; "" where there is nothing to draw.

    Args:
      record: the scatter.
      alone: whether it is a file of its own, which brings its colours for light and dark.
    """
    picture = picture_of(record)
    return "" if picture is None else _svg(picture, printable(writes(record)), alone=alone)


def _svg(picture: Picture, told: str, *, alone: bool) -> str:
    width, height = _extent(picture.rows, picture.columns)
    bottom = MARGIN + height + MARGIN
    lines = [
        picture.rows.told and f"down, {picture.rows.told}",
        picture.columns.told and f"across, {picture.columns.told}",
    ]
    captions = [printable(line) for line in (*filter(None, lines), *picture.captions)]
    wide = max([MARGIN * 2 + width, *(12 + 6.4 * len(line) for line in captions)])
    high = bottom + LINE * len(captions)
    space = ' xmlns="http://www.w3.org/2000/svg"' if alone else ""
    label = escape(". ".join([told, *captions]))
    parts = [
        f'<svg{space} class="picture" viewBox="0 0 {wide:.0f} {high}" width="{wide:.0f}" height="{high}" role="img" '
        f'aria-label="{label}">',
        STYLE if alone else "",
        *_operand(picture, width, height),
        *(_box(picture, box, width, height) for box in picture.boxes),
        '<g fill="currentColor" font-family="system-ui,sans-serif" font-size="12">',
        *(f'<text x="6" y="{bottom + LINE * n + 4}">{escape(line)}</text>' for n, line in enumerate(captions)),
        "</g></svg>",
    ]
    return "".join(parts)


def _extent(rows: Axis, columns: Axis) -> tuple[int, int]:
    """Width and height of the operand: in proportion, as far as both can be seen."""
    scale = min(WIDTH / columns.size, HEIGHT / rows.size, 20)
    return max(round(columns.size * scale), LEAST), max(round(rows.size * scale), LEAST)


def _operand(picture: Picture, width: int, height: int) -> Iterator[str]:
    place = f'x="{MARGIN}" y="{MARGIN}" width="{width}" height="{height}"'
    yield f'<rect {place} fill="currentColor" fill-opacity=".06" stroke="currentColor" stroke-opacity=".6"/>'
    path = ""
    for axis, extent, is_row in ((picture.rows, height, True), (picture.columns, width, False)):
        if axis.size <= MOST_LINES and extent >= 4 * axis.size:
            for cell in range(1, axis.size):
                at = MARGIN + extent * cell / axis.size
                path += f"M{MARGIN} {at:.1f}h{width}" if is_row else f"M{at:.1f} {MARGIN}v{height}"
    if path:
        yield f'<path d="{path}" stroke="currentColor" stroke-opacity=".18" fill="none"/>'


def _box(picture: Picture, box: Box, width: int, height: int) -> str:
    """A box at its cells, at least 3 pixels in each direction."""
    x, wide = _span(box.columns, picture.columns.size, width)
    y, high = _span(box.rows, picture.rows.size, height)
    color = COLORS[box.look]
    solid = f'fill="{color}" fill-opacity=".75"'
    dashed = f'fill="{color}" fill-opacity=".12" stroke="{color}" stroke-width="1.5" stroke-dasharray="4 3"'
    half = f'fill="{color}" fill-opacity=".55" stroke="{color}" stroke-width="1.5"'
    look = {Look.WRITTEN: solid, Look.OUTSIDE: dashed, Look.AGAIN: half}[box.look]
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" {look}/>'


def _span(cells: tuple[int, int], size: int, extent: int) -> tuple[float, float]:
    """Start and extent in pixels; what leaves the operand does so by less than the margin: captions stay free."""
    start = MARGIN + extent * cells[0] / size
    long = max(extent * (cells[1] - cells[0]) / size, 3.0)
    most = extent + MARGIN * 2 - 12
    return min(start, MARGIN + extent + 2), min(long, max(most - start, 3.0))
