"""The memory of a module over its program order as an SVG: in a page, in a notebook, in documents."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain

from hlo_lower.base.drawing.picture_svg import element, text_at
from hlo_lower.base.memory import LoopSpan, MemoryCurve, shown_bytes
from hlo_lower.base.short_forms import plural, printable

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
