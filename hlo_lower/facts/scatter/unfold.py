"""Positions that were flattened before the scatter, seen as several dims again: the pages of a chunk.

A serving stack writes whole pages into a flat pool by `slots = (table[:, None] * block + arange(block)).reshape(-1)`.
Along the one scatter dim that is left nothing moves evenly, but along the dims before the reshape it does: over the
block there is a run, so a page is one window. A scatter takes its positions in row-major order whatever dims they are
counted in, so the scatter of unfolded positions is the same scatter.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.layout import lay_out
from hlo_lower.facts.values.region import classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import RESHAPE

MAX_LOOKED_AT = 64
"""Producers of the indices that are looked at for a reshape."""


def unfolded(scatter: CanonicalScatter, analysis: IndexAnalysis) -> CanonicalScatter:
    """The scatter with its positions counted in the dims that leave the fewest windows; most often as it is.

    Args:
      scatter: the scatter.
      analysis: the ranges of the module's integers.
    """
    if len(scatter.scatter_shape) != 1 or scatter.batching or not scatter.index_dims or scatter.is_empty:
        return scatter  # a batching dim counts the scatter dim as it is
    choices = list(dict.fromkeys(_shapes(scatter.indices, scatter.positions)))
    interval = analysis.of(Site(scatter.indices)) if choices else None
    if interval is None or interval.is_constant:
        return scatter
    assigns = not classify_region(scatter.region).reads_current
    found, fewest = scatter, lay_out(scatter, AffineAnalysis(analysis), interval, assigns=assigns).positions
    for shape in choices:
        other = replace(scatter, unfolded=shape)
        # An analysis of its own: positions of another size are the same symbols to it.
        layout = lay_out(other, AffineAnalysis(analysis), interval, assigns=assigns)
        if layout.runs and layout.positions < fewest:
            found, fewest = other, layout.positions
    return found


def _shapes(value: Value, count: int) -> Iterator[tuple[int, ...]]:
    """The shapes of several dims that the indices, or what they are computed from, had before a reshape."""
    pending, seen = [value], {value}
    while pending and len(seen) < MAX_LOOKED_AT:
        node = pending.pop().node
        if node is None:
            continue
        for operand in node.operands:
            if operand in seen or not operand.is_tensor or not operand.is_static:
                continue
            seen.add(operand)
            shape = tuple(size for size in operand.static_shape if size != 1)
            if node.name == RESHAPE and len(shape) > 1 and prod(shape) == count:
                yield shape
            elif prod(shape) >= count:
                pending.append(operand)
