"""The page of a plan: what was asked and reached, the memory over program order before and after, and the loops.

One file without anything from elsewhere: styles and drawings are in it.
"""

from collections.abc import Iterable
from html import escape

from hlo_lower.tile.memory_curve import LoopSpan, MemoryCurve
from hlo_lower.tile.tiled_module import Tiled, shown_bytes

WIDTH, HEIGHT = 860, 150
"""Of the area of one curve, in pixels."""

LEFT, TOP, GAP = 80, 24, 46
"""Room for the axis, above the first curve, and between two."""

STYLE = """\
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; } td, th { padding: .25em .8em .25em 0; text-align: left; }
tr { border-bottom: 1px solid #ddd; vertical-align: top; } code { font-size: 13px; } svg { max-width: 100%; }
"""


def plan_page(tiled: Tiled, name: str) -> str:
    """The page as HTML.

    Args:
      tiled: the plan.
      name: of the module.
    """
    title = escape(f"{name}: {tiled.summary()}")
    parts = [f"<h1>{escape(name)}</h1>", f"<p>{escape(tiled.summary())}</p>"]
    if tiled.memory is not None:
        told = "Bytes that are live at each op in program order, arguments and results left out: an estimate, to see"
        told += (
            " where the memory goes. XLA's own figure is above. Loops are shaded; a body stands in its loop's place."
        )
        parts += [memory_svg(*tiled.memory, tiled.max_temp), f"<p>{told}</p>"]
    parts += [_loops(tiled), _list("Pulled up", map(str, tiled.pulled))]
    parts += [_list("Computed again", map(str, tiled.recomputed)), _list("Left", tiled.left)]
    parts += [f"<p>The search ended early: {escape(tiled.ended)}.</p>"] if tiled.ended else []
    head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return "\n".join([head, *filter(None, parts), "</html>\n"])


def memory_svg(before: MemoryCurve, after: MemoryCurve, bound: int | None = None) -> str:
    """Both curves on one scale, one above the other, as an SVG.

    Args:
      before, after: the curves.
      bound: bytes at which a line is drawn.
    """
    top = max(before.most, after.most, bound or 0, 1)
    height = TOP + 2 * HEIGHT + GAP + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 12} {height}" role="img" '
        f'aria-label="memory before and after" font-family="system-ui, sans-serif" font-size="12">'
    ]
    for number, (what, curve) in enumerate((("before", before), ("after", after))):
        parts += _panel(what, curve, TOP + number * (HEIGHT + GAP), top, bound)
    return "\n".join([*parts, "</svg>"])


def _panel(what: str, curve: MemoryCurve, y: int, top: int, bound: int | None) -> list[str]:
    """One curve, its axis, its loops and the bound."""
    step = WIDTH / max(len(curve.live), 1)

    def at(size: int) -> float:
        return y + HEIGHT - HEIGHT * size / top

    parts = [_band(span, y, step) for span in curve.loops]
    corners = [f"{LEFT},{y + HEIGHT}"]
    for place, size in enumerate(curve.live):
        corners += [f"{LEFT + place * step:.1f},{at(size):.1f}", f"{LEFT + (place + 1) * step:.1f},{at(size):.1f}"]
    corners.append(f"{LEFT + WIDTH},{y + HEIGHT}")
    color = "#b5543c" if what == "before" else "#2f6f9f"
    parts.append(f'<polygon points="{" ".join(corners)}" fill="{color}" fill-opacity="0.75"/>')
    parts.append(f'<path d="M{LEFT},{y}V{y + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#555"/>')
    parts.append(_text(LEFT, y - 8, f"{what}: {shown_bytes(curve.most)} at the peak, {len(curve.live)} ops", "start"))
    parts += [_text(LEFT - 6, at(size) + 4, shown_bytes(size), "end") for size in (0, top)]
    if bound:
        parts.append(f'<path d="M{LEFT},{at(bound):.1f}h{WIDTH}" stroke="#222" stroke-dasharray="5 4"/>')
        parts.append(_text(LEFT + WIDTH, at(bound) - 4, f"asked {shown_bytes(bound)}", "end"))
    return parts


def _band(span: LoopSpan, y: int, step: float) -> str:
    x, width = LEFT + span.first * step, (span.last + 1 - span.first) * step
    told = f"<title>loop at {escape(span.where)}</title>"
    place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{HEIGHT}"'
    return f'<rect {place} fill="#f0d58a" fill-opacity="0.6">{told}</rect>'


def _text(x: float, y: float, told: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(told)}</text>'


def _loops(tiled: Tiled) -> str:
    if not tiled.loops:
        return "<p>No loop.</p>"
    heads = ("made for", "a tile computes", "steps", "ops", "writes", "accumulates", "computes again")
    rows = ["".join(f"<th>{head}</th>" for head in heads)]
    for loop in tiled.loops:
        lists = ("<br>".join(map(escape, values)) for values in (loop.tiles, loop.accumulators, loop.again))
        cells = (escape(loop.where), escape(loop.subset), f"{loop.size} of {loop.steps}", str(loop.ops), *lists)
        rows.append("".join(f"<td><code>{cell}</code></td>" for cell in cells))
    return "<h2>Loops</h2>\n<table>" + "".join(f"<tr>{row}</tr>\n" for row in rows) + "</table>"


def _list(title: str, values: Iterable[str]) -> str:
    found = [f"<li>{escape(value)}</li>" for value in values]
    return f"<h2>{title}</h2>\n<ul>{''.join(found)}</ul>" if found else ""
