"""A few ops and who reads whom, as a drawing from left to right: an SVG with what it shows in words."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from hlo_lower.base.drawing.picture import element, text_at
from hlo_lower.base.short_forms import printable

HIGH, DOWN, ACROSS = 22, 8, 34
"""The height of a box, and what is left between boxes of a column and between columns."""

LETTER, LONGEST = 7.4, 30
"""The width of a letter, and the letters of a label."""


@dataclass(frozen=True)
class Box:
    """An op, or a value that comes from outside.

    Attributes:
      label: what it is: "compare 4xi1".
      column: where it stands, from the left.
      is_op: whether it is an op; else it is a value that is given.
      is_centre: whether the drawing is about it.
    """

    label: str
    column: int
    is_op: bool = True
    is_centre: bool = False


@dataclass
class Drawn:
    """Boxes, and pairs of their numbers: the second one reads the first one."""

    boxes: list[Box] = field(default_factory=list[Box])
    reads: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def add(self, box: Box) -> int:
        """The number of one more box."""
        self.boxes.append(box)
        return len(self.boxes) - 1


def graph_svg(drawn: Drawn, told: str) -> str:
    """An SVG; `told` says what it is. "" of a drawing without boxes."""
    if not drawn.boxes:
        return ""
    labels = [_shorten(box.label) for box in drawn.boxes]
    columns: dict[int, list[int]] = defaultdict(list)
    for number, box in enumerate(drawn.boxes):
        columns[box.column].append(number)
    places: dict[int, tuple[float, float, float]] = {}
    x, most = 1.0, max(map(len, columns.values()))
    for column in sorted(columns):
        wide = max(LETTER * len(labels[number]) for number in columns[column]) + 14
        top = (most - len(columns[column])) * (HIGH + DOWN) / 2
        for row, number in enumerate(columns[column]):
            places[number] = x, top + row * (HIGH + DOWN) + 1, wide
        x += wide + ACROSS
    parts = [*_lines(drawn, places), *_boxes(drawn, labels, places)]
    pairs = ", ".join(f"{labels[b]} reads {labels[a]}" for a, b in drawn.reads)
    return element("graph", x - ACROSS + 1, most * (HIGH + DOWN), f"{told}: {pairs}", parts, alone=False)


def _lines(drawn: Drawn, places: dict[int, tuple[float, float, float]]) -> Iterator[str]:
    for one, other in dict.fromkeys(drawn.reads):
        (x, y, wide), (to_x, to_y, _) = places[one], places[other]
        x, y, to_y = x + wide, y + HIGH / 2, to_y + HIGH / 2
        middle = (x + to_x) / 2
        path = f"M{x:.0f} {y:.0f}C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
        yield f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".5"/>'


def _boxes(drawn: Drawn, labels: Sequence[str], places: dict[int, tuple[float, float, float]]) -> Iterator[str]:
    for number, box in enumerate(drawn.boxes):
        x, y, wide = places[number]
        look = f'fill="currentColor" fill-opacity="{".22" if box.is_centre else ".06"}"'
        edge = ' stroke="currentColor" stroke-opacity=".6"' + ("" if box.is_op else ' stroke-dasharray="4 3"')
        size = f'x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{HIGH}"'
        title = f"<title>{escape(printable(box.label))}</title>"
        yield f'<g>{title}<rect {size} rx="4" {look}{edge}/>{text_at(x + 7, y + 15, labels[number])}</g>'


def _shorten(label: str) -> str:
    told = printable(label)
    return told if len(told) <= LONGEST else f"{told[: LONGEST - 3]}..."
