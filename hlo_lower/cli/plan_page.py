"""The page of a plan: what was asked and reached, memory over program order before and after, and the loops, drawn."""

from collections.abc import Iterable
from html import escape

from hlo_lower.base.memory import ESTIMATE, memory_svg
from hlo_lower.report.html import plain_page
from hlo_lower.tile.tiled_module import Tiled

LOOPS = ("made for", "a tile computes", "steps", "ops", "writes", "accumulates", "computes again")


def plan_page(tiled: Tiled, name: str) -> str:
    """The page as HTML."""
    parts: list[str] = []
    if drawn := memory_svg(tiled.memory, tiled.max_temp):
        parts = ["<h2>Memory</h2>", drawn, f"<p>{ESTIMATE} XLA's own figure is above.</p>"]
    parts += [*_loops(tiled), *_list("Pulled up", map(str, tiled.pulled))]
    parts += [*_list("Computed again", map(str, tiled.recomputed)), *_list("Left", tiled.left)]
    parts += [f"<p>The search ended early: {escape(tiled.ended)}.</p>"] if tiled.ended else []
    return plain_page(name, tiled.summary(), parts)


def _loops(tiled: Tiled) -> Iterable[str]:
    yield "<h2>Loops</h2>"
    if not tiled.loops:
        yield "<p>None.</p>"
        return
    head = "".join(f'<th scope="col">{head}</th>' for head in LOOPS)
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
    for loop in tiled.loops:
        lists = ("<br>".join(map(escape, values)) for values in (loop.tiles, loop.accumulators, loop.again))
        cells = (escape(loop.where), escape(loop.subset), f"{loop.size} of {loop.steps}", str(loop.ops), *lists)
        told = (f'<td data-title="{head}">{cell}</td>' for head, cell in zip(LOOPS, cells, strict=True))
        yield f"<tr>{''.join(told)}</tr>"
    yield "</tbody></table></div>"
    yield from tiled.figures()


def _list(title: str, values: Iterable[str]) -> Iterable[str]:
    found = [f"<li>{escape(value)}</li>" for value in values]
    return [f"<h2>{title}</h2>", f"<ul>{''.join(found)}</ul>"] if found else []
