"""What is taken of a tensor, as a drawing in two dims: which of them, and which boxes; as an SVG and as characters."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape

from hlo_lower.base.short_forms import printable

GOLDEN = 0.618034
"""Multiples of it, without their whole parts, are spread evenly, however many they are."""


class Look(Enum):
    """What a box stands for."""

    READ = "read"
    HELD = "computed, never stored whole"
    WRITTEN = "written"
    ADDED = "accumulated"
    AGAIN = "again"  # a window that may write elements of another one
    OUTSIDE = "outside"  # a window that leaves the operand


@dataclass(frozen=True)
class Axis:
    """A dim that is drawn.

    Attributes:
      dim: its number; None where the operand has fewer dims than the drawing.
      size: how many cells.
      is_known: whether that is its size; else it is known at run time only.
      index: what is taken of it: ":" is all, "b" each batch coordinate, "2:5" a known place, "i:i+4" and "i:+4"
        one that is not.
      unit: cells between two lines of the grid.
    """

    dim: int | None
    size: int
    is_known: bool
    index: str
    unit: int = 1

    @property
    def caption(self) -> str:
        """ "dim 2: pos of 64"; of a dim that is taken whole "dim 3: 16"."""
        size = str(self.size) if self.is_known else "?"
        return "" if self.dim is None else f"dim {self.dim}: {size}" if self.is_whole else self._place_caption(size)

    def _place_caption(self, size: str) -> str:
        return f"dim {self.dim}: {self.index} of {size}"

    @property
    def is_whole(self) -> bool:
        """Whether all of it is taken."""
        return self.index == ":"

    @property
    def is_batch(self) -> bool:
        """Whether each of its coordinates has windows of its own."""
        return self.index == "b"

    @property
    def is_placed(self) -> bool:
        """Whether the data gives the start."""
        return not self.is_whole and not self.is_batch and self._known_cells() is None

    @property
    def extent(self) -> int:
        """Cells of a window."""
        if fixed := self._known_cells():
            return fixed[1] - fixed[0]
        added = re.fullmatch(r".+:.*\+(\d+)", self.index)
        return self.size if self.is_whole else min(int(added[1]), self.size) if added else 1

    def _known_cells(self) -> tuple[int, int] | None:
        """First cell and the one after the last; None where the place is not known."""
        known = re.fullmatch(r"(-?\d*):(\d+)|(-?\d+)", self.index)
        if known is None:
            return None
        first = int(known[3] or known[1] or 0)
        return first, int(known[2]) if known[2] else first + 1

    def sample(self, number: int, rows: int = 1) -> tuple[int, int]:
        """Cells of the window of a number: where it is known, else somewhere inside; rows of a run lie side by side."""
        if self.is_whole:
            return 0, self.size
        if self.is_batch:
            return number % self.size, number % self.size + 1
        if (fixed := self._known_cells()) is not None:
            return fixed
        extent = min(max(self.extent, rows), self.size)
        start = int((0.4 + number * GOLDEN) % 1 * (self.size - extent + 1))
        return start, start + extent


@dataclass(frozen=True)
class Box:
    """Cells of the drawing: rows and columns from the first to the one behind the last; they may leave the operand."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    look: Look


@dataclass(frozen=True)
class Picture:
    """The drawing.

    Attributes:
      rows, columns: the dims that are drawn.
      boxes: what is taken.
      captions: what the drawing does not show, a line each.
      is_stored: whether the tensor is there as a whole at any time.
    """

    rows: Axis
    columns: Axis
    boxes: tuple[Box, ...]
    captions: tuple[str, ...]
    is_stored: bool = True


def two_dims(axes: Sequence[Axis]) -> tuple[Axis, Axis]:
    """The two dims that tell most, in the operand's order; the batch coordinate above where its windows lie."""
    wide = [axis for axis in axes if axis.size > 1] or [axes[-1]]
    placed = [axis for axis in wide if not axis.is_whole and not axis.is_batch]
    batch = [axis for axis in wide if axis.is_batch]
    whole = sorted((axis for axis in wide if axis.is_whole), key=lambda axis: -axis.size)
    chosen = [*placed[:2], *batch, *placed[2:], *whole][:2]
    if len(chosen) == 1:
        return Axis(None, 1, True, ":"), chosen[0]
    first, second = sorted(chosen, key=lambda axis: (not axis.is_batch, axis.dim or 0))
    return first, second


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
        picture.rows.caption and f"down, {picture.rows.caption}",
        picture.columns.caption and f"across, {picture.columns.caption}",
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


MOST_ROWS, MOST_COLUMNS = 8, 32

MARKS = {Look.READ: "=", Look.HELD: "~", Look.WRITTEN: "#", Look.ADDED: "+", Look.AGAIN: "%", Look.OUTSIDE: "o"}
LEGEND = {Look.WRITTEN: "# written", Look.AGAIN: "% may be written again", Look.OUTSIDE: "o outside, dropped"}


def picture_lines(picture: Picture) -> list[str]:
    """The lines of a drawing, and what its characters mean."""
    rows, columns = min(picture.rows.size, MOST_ROWS), min(picture.columns.size, MOST_COLUMNS)
    return [*grid(picture, rows, columns), *_words(picture)]


def grid(picture: Picture, rows: int, columns: int) -> Iterator[str]:
    """So many rows and columns of characters, each for a cell or for several; behind the right and the lower edge what
    leaves the tensor."""
    over_right = any(box.columns[1] > picture.columns.size for box in picture.boxes)
    over_below = any(box.rows[1] > picture.rows.size for box in picture.boxes)
    yield "+" + "-" * columns + "+"
    for row in range(rows):
        cells = "".join(_mark(picture, row, column, rows, columns) for column in range(columns))
        beyond = _mark(picture, row, columns, rows, columns).replace(".", "") if over_right else ""
        yield f"|{cells}|{beyond}"
    yield "+" + "-" * columns + "+"
    if over_below:
        yield " " + "".join(_mark(picture, rows, column, rows, columns) for column in range(columns)).replace(".", " ")


def _mark(picture: Picture, row: int, column: int, rows: int, columns: int) -> str:
    """What stands at a character: the last box that has one of its cells."""
    found = [
        box
        for box in picture.boxes
        if _meets(box.rows, row, rows, picture.rows) and _meets(box.columns, column, columns, picture.columns)
    ]
    return MARKS[found[-1].look] if found else "."


def _meets(cells: tuple[int, int], number: int, parts: int, axis: Axis) -> bool:
    """Whether cells are among those of a character: part `number` of `parts`, or all that lies behind the last."""
    if number >= parts:
        return cells[1] > axis.size
    return cells[0] * parts < (number + 1) * axis.size and cells[1] * parts > number * axis.size


def _words(picture: Picture) -> Iterator[str]:
    axes = [
        f"{way}, {axis.caption}" for way, axis in (("down", picture.rows), ("across", picture.columns)) if axis.caption
    ]
    yield "; ".join(axes)
    yield "; ".join(LEGEND[look] for look in Look if any(box.look is look for box in picture.boxes))
    yield from picture.captions
