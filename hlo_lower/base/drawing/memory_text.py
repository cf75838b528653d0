"""The memory of a module over its program order as characters, for a terminal."""

from collections.abc import Iterator, Sequence

from hlo_lower.base.drawing.memory_svg import memory_names, told_curve
from hlo_lower.base.memory import MemoryCurve, shown_bytes

ROWS, COLUMNS = 5, 60


def memory_lines(curves: Sequence[MemoryCurve]) -> list[str]:
    """The lines of the drawing, curves on one scale; none where nothing is live anywhere."""
    top = max((curve.most for curve in curves), default=0)
    if not top:
        return []
    lines = ["memory over program order (bytes that are live, an estimate; arguments and results left out)"]
    for name, curve in zip(memory_names(curves), curves, strict=True):
        lines += [f"  {told_curve(name, curve)}", *_panel(curve, top)]
    return lines


def _panel(curve: MemoryCurve, top: int) -> Iterator[str]:
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
