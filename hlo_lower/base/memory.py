"""The memory of a program over its order: what is live at each op, as data, as an SVG and as characters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise
from typing import Any

from hlo_lower.base.drawing.picture import element, text_at
from hlo_lower.base.short_forms import plural, printable

MOST_STEPS = 120
"""Steps of a curve as it is told: of more ops several share one."""


@dataclass(frozen=True)
class LoopSpan:
    """Where a loop's body lies in a curve.

    Attributes:
      first, last: the places of its ops.
      where: the loop's own place ("llama.py:88").
    """

    first: int
    last: int
    where: str


@dataclass(frozen=True)
class MemoryCurve:
    """Bytes that are live at each op, an estimate; arguments and results left out.

    Attributes:
      live: in program order; the body of a loop or of a function stands in its place, of a loop once.
      loops: the loops that are not within another one.
    """

    live: tuple[int, ...]
    loops: tuple[LoopSpan, ...] = ()

    @property
    def most(self) -> int:
        """Bytes at the peak."""
        return max(self.live, default=0)

    def steps(self, most: int = MOST_STEPS) -> list[int]:
        """The curve in so many steps at most, each with the largest of the ops that share it: peaks stay."""
        count = min(most, len(self.live))
        ends = [len(self.live) * step // count for step in range(count + 1)] if count else [0]
        return [max(self.live[first:last]) for first, last in pairwise(ends)]

    def to_json(self) -> dict[str, Any]:
        """What is told of it, as plain data."""
        loops = [{"first": span.first, "last": span.last, "where": span.where} for span in self.loops]
        return {"peak": self.most, "ops": len(self.live), "steps": self.steps(), "loops": loops}


def shown_bytes(size: int) -> str:
    """Bytes, readable."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):,.1f} {unit}"
    return f"{size} B"


WIDTH, HEIGHT = 440, 84
"""Of the area of one curve, in pixels."""

LEFT, RIGHT, TOP, GAP = 66, 10, 24, 40
"""Room for the axis, behind the curves, above the first one, and between two."""

COLORS = ("#b5543c", "#2f6f9f")
LOOP = "#c9952b"

ESTIMATE = (
    "Bytes that are live at each op in program order, arguments and results left out: an estimate, to see where the "
    "memory goes. Loops are shaded; a body stands in its loop's place, that of a function at each call."
)


def memory_svg(curves: Sequence[MemoryCurve], bound: int | None = None, *, alone: bool = False) -> str:
    """Curves on one scale, one above the other; "" where nothing is live anywhere.

    Args:
      curves: that of a module, or those of its version before and after.
      bound: bytes at which a line is drawn.
      alone: whether it is a file of its own, which brings its colours for light and dark.
    """
    top = max((curve.most for curve in curves), default=0)
    if not top:
        return ""
    top = max(top, bound or 0)
    wide, high = LEFT + WIDTH + RIGHT, TOP + len(curves) * (HEIGHT + GAP) - GAP + 10
    named = list(zip(memory_names(curves), curves, COLORS, strict=False))
    label = "Memory over program order. " + ". ".join(told_curve(name, curve) for name, curve, _ in named)
    panels = (
        _panel(told_curve(name, curve), curve, color, TOP + number * (HEIGHT + GAP), top, bound)
        for number, (name, curve, color) in enumerate(named)
    )
    return element("memory", wide, high, label, chain.from_iterable(panels), alone=alone)


def memory_folded(curves: Sequence[MemoryCurve], bound: int | None = None) -> str:
    """The same as HTML that a notebook unfolds, with what it is; "" where nothing is live anywhere."""
    drawn = memory_svg(curves, bound)
    told = f"<details><summary>memory over program order</summary>{drawn}<p>{ESTIMATE}</p></details>"
    return told if drawn else ""


def memory_names(curves: Sequence[MemoryCurve]) -> tuple[str, ...]:
    """What curves are called: before and after, where there are two."""
    return ("memory",) if len(curves) == 1 else ("before", "after")


def told_curve(name: str, curve: MemoryCurve) -> str:
    """ "before: 9.0 KiB at the peak, 12 ops, 1 loop"."""
    loops = f", {plural(len(curve.loops), 'loop')}" if curve.loops else ""
    return f"{name}: {shown_bytes(curve.most)} at the peak, {plural(len(curve.live), 'op')}{loops}"


def _panel(told: str, curve: MemoryCurve, color: str, y: int, top: int, bound: int | None) -> Iterator[str]:
    """One curve, its axis, its loops and the bound."""

    def at(size: int) -> int:
        return y + HEIGHT - round(HEIGHT * size / top)

    yield from (_band(span, len(curve.live), y) for span in curve.loops)
    steps = curve.steps()
    path, last = f"M{LEFT} {y + HEIGHT}", None
    for number, size in enumerate(steps):
        if at(size) != last:
            path += f"H{LEFT + round(WIDTH * number / len(steps))}V{at(size)}"
        last = at(size)
    yield f'<path d="{path}H{LEFT + WIDTH}V{y + HEIGHT}z" fill="{color}" fill-opacity=".8"/>'
    yield f'<path d="M{LEFT} {y}v{HEIGHT}h{WIDTH}" fill="none" stroke="currentColor" stroke-opacity=".6"/>'
    yield text_at(LEFT, y - 7, told)
    yield from (text_at(LEFT - 5, at(size) + 4, shown_bytes(size), "end") for size in (0, top))
    if bound:
        yield f'<path d="M{LEFT} {at(bound)}h{WIDTH}" stroke="currentColor" stroke-dasharray="5 4"/>'
        yield text_at(LEFT + WIDTH, at(bound) - 4, f"asked {shown_bytes(bound)}", "end")


def _band(span: LoopSpan, ops: int, y: int) -> str:
    x, end = (LEFT + WIDTH * place / ops for place in (span.first, span.last + 1))
    told = f"<title>loop at {escape(printable(span.where))}</title>"
    place = f'x="{x:.1f}" y="{y}" width="{max(end - x, 2):.1f}" height="{HEIGHT}"'
    return f'<rect {place} fill="{LOOP}" fill-opacity=".3">{told}</rect>'


ROWS, COLUMNS = 5, 60


def memory_lines(curves: Sequence[MemoryCurve]) -> list[str]:
    """The lines of the drawing, curves on one scale; none where nothing is live anywhere."""
    top = max((curve.most for curve in curves), default=0)
    if not top:
        return []
    lines = ["memory over program order (live bytes, an estimate without arguments and results)"]
    for name, curve in zip(memory_names(curves), curves, strict=True):
        lines += [f"  {told_curve(name, curve)}", *_text_panel(curve, top)]
    return lines


def _text_panel(curve: MemoryCurve, top: int) -> Iterator[str]:
    """A column for each step, as high as its share of the top; a "=" below it where it lies in a loop."""
    steps = curve.steps(COLUMNS)
    heights = [-(-size * ROWS // top) for size in steps]
    for row in range(ROWS, 0, -1):
        bars = "".join("#" if height >= row else " " for height in heights)
        yield f"  {shown_bytes(top) if row == ROWS else '':>10} |{bars}".rstrip()
    yield f"  {'0':>10} +{'-' * len(steps)}"
    if curve.loops:
        places = [place * len(curve.live) // len(steps) for place in range(len(steps))]
        share = max(len(curve.live) // len(steps), 1)
        marks = (any(span.first < p + share and p <= span.last for span in curve.loops) for p in places)
        yield f"  {'loops':>10}  {''.join('=' if is_in else ' ' for is_in in marks)}".rstrip()
