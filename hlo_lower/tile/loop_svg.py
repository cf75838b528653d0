"""A step of a loop over tiles as an SVG: what it reads, computes and gives, from left to right."""

from collections.abc import Iterable, Sequence
from html import escape

from hlo_lower.base.drawing.picture_svg import LINE, element, extent, shapes_of, text_at
from hlo_lower.base.short_forms import plural, printable
from hlo_lower.tile.loop_picture import LoopPart, in_roles

WIDTH, HEIGHT = 150, 80
"""Most that a tensor takes, in pixels."""

LEFT, TOP, GAP, ARROW = 6, 6, 14, 34
"""Room around the drawing, between tensors, and between what is read, computed and given."""

EXPLAINED = (
    "One step of each loop: what it reads, computes and gives of each tensor. What is dashed is never stored whole."
)

MOST_FIGURES, MOST_CAPTIONS = 12, 8
"""Different drawings, and loops of one drawing, that are shown."""


def loop_svg(parts: Sequence[LoopPart], step: int, *, alone: bool = False) -> str:
    """The drawing of a step; "" where nothing is known of it.

    Args:
      parts: what the loop takes of tensors.
      step: the step that is drawn, by its number.
      alone: whether it is a file of its own, which brings its colours for light and dark.
    """
    columns = [_column(found, more, step) for found, more in in_roles(parts)]
    if not columns:
        return ""
    high, x, drawn = max(height for _, _, height in columns), float(LEFT), list[str]()
    for number, (shapes, width, height) in enumerate(columns):
        if number:
            drawn.append(_arrow(x, TOP + high / 2))
            x += ARROW
        drawn.append(f'<g transform="translate({x:.0f} {TOP + (high - height) / 2:.0f})">{shapes}</g>')
        x += width
    told = "A step of the loop " + "; ".join(map(str, parts))
    return element("loop", x + LEFT, high + 2 * TOP, printable(told), drawn, alone=alone)


def _column(parts: Sequence[LoopPart], more: int, step: int) -> tuple[str, float, float]:
    """Tensors below each other, each above its words; and their width and height."""
    drawn, y, wide = "", 0, 0.0
    for part in parts:
        picture = part.picture(step)
        width, height = extent(picture, WIDTH, HEIGHT)
        lines = [printable(f"{part.role} {part.what}"), str(part.part)]
        drawn += "".join(shapes_of(picture, 0, y, width, height))
        drawn += "".join(text_at(0, y + height + LINE * (n + 1), line) for n, line in enumerate(lines))
        y += height + LINE * len(lines) + GAP
        wide = max(wide, width, *(6.4 * len(line) for line in lines))
    if more:
        drawn += text_at(0, y + 4, f"and {more} more")
        y += LINE
    return drawn, wide, y


def _arrow(x: float, y: float) -> str:
    at = f"M{x + 8:.0f} {y:.0f}h16m-5 -5l5 5l-5 5"
    return f'<path d="{at}" fill="none" stroke="currentColor" stroke-opacity=".6" stroke-width="1.5"/>'


def loop_figures(drawn: Iterable[tuple[str, str]]) -> list[str]:
    """Figures of HTML: each drawing once, with the captions of all loops that it is of; of many the first.

    Args:
      drawn: of each loop its caption and its drawing.
    """
    captions: dict[str, list[str]] = {}
    for caption, svg in drawn:
        captions.setdefault(svg, []).append(escape(printable(caption)))
    captions.pop("", None)
    told = ((svg, "<br>".join(own[:MOST_CAPTIONS])) for svg, own in captions.items())
    figures = [f"<figure><figcaption>{caption}</figcaption>{svg}</figure>" for svg, caption in told]
    more = len(figures) - MOST_FIGURES
    head = [f"<p>{EXPLAINED}</p>"] if figures else []
    return [*head, *figures[:MOST_FIGURES], *([f"<p>and {plural(more, 'other drawing')}</p>"] if more > 0 else [])]
