"""Value ranges of what scatters write: of an assignment, a maximum, a count, and of points whose places are known.

Which updates land where is not asked. An element of the result is the operand's own element, or what the region made of
it and of some updates; and an update that is dropped changes nothing.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.ranges.loop_ranges import keeps_within, uniform, within
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.region import Combiner, classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node

MAX_POINTS = 1 << 16
"""Most points at known places that are applied one after the other."""


def scatter_range(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The interval of a result of a scatter, or None where nothing is told.

    - If the region, given values in the hull of the operand and of the updates, returns one in the same hull, so does
      any number of its applications: an assignment, a minimum, a selection.
    - A sum: each window writes an element of the operand at most once, so no more of them come to one element than
      there are windows, of one batch where there are batching dims. With n of them in [lo, hi] it moves by at least
      min(n lo, 0) and at most max(n hi, 0), and if that stays in the type no sum on the way leaves it.
    - Points whose places, updates and operand are all known are applied.
    """
    arity, number, value = len(node.results), site.value.number, site.value
    operand, updates = node.operand(number), node.operand(arity + 1 + number)
    if not all(v.is_static for v in node.operands) or type_range(value.element_type) is None:
        return None
    if len({v.element_type for v in (operand, updates, value)}) != 1 or 0 in value.static_shape:
        return None
    before = ranges.of(site.to(operand))
    if 0 in updates.static_shape:
        return before
    written = ranges.of(site.to(updates))
    why = merge((before.evidence, written.evidence))
    known = _applied(ranges, node, site, before, written) if arity == 1 else None
    if known is not None:
        return known.because(Evidence.at(node, Code.KNOWN_POINTS(), why))
    (low, high), (least, most) = before.hull(), written.hull()
    hull = min(low, least), max(high, most)
    block = node.blocks[0]
    arguments = block.argument(number), block.argument(arity + number)
    if len({a.element_type for a in (*arguments, value)}) != 1:
        return None
    like = Interval.of_type(value.static_shape, value.element_type)
    if keeps_within(ranges, hull, [*map(site.to, arguments)], site.to(block.terminator.operand(number))):
        return uniform(like, hull).because(Evidence.at(node, Code.SCATTERED(*hull), why))
    if classify_region(block).combiners[number] is not Combiner.ADD:
        return None
    # How many windows a scatter writes; of one batch where its operand has batching dims.
    numbers, indices = mlir.ScatterNumbers.of(node.raw), node.operand(len(node.results)).static_shape
    apart = (numbers.index_vector_dim, *numbers.scatter_indices_batching_dims)
    terms = prod(size for d, size in enumerate(indices) if d not in apart)
    hull = low + min(terms * least, 0), high + max(terms * most, 0)
    if not within(hull, type_range(value.element_type) or (0, 0)):
        return None
    return uniform(like, hull).because(Evidence.at(node, Code.ADDED(terms, *hull), why))


_APPLIED: Mapping[Combiner, Callable[[Any, Any], Any]] = {
    Combiner.ASSIGN: lambda _, update: update,
    Combiner.ADD: lambda current, update: current + update,
    Combiner.MIN: min,
    Combiner.MAX: max,
}


def _applied(ranges: Ranges, node: Node, site: Site, before: Interval, written: Interval) -> Interval | None:
    """The result of a scatter of points into a vector, all of it known; points outside are dropped."""
    indices = node.operand(1)
    numbers, block = mlir.ScatterNumbers.of(node.raw), node.blocks[0]
    apply = _APPLIED.get(classify_region(block).common)
    is_points = len(before.shape) == 1 and not numbers.update_window_dims and not numbers.input_batching_dims
    if apply is None or not is_points or numbers.scatter_dims_to_operand_dims != (0,):
        return None
    if apply is _APPLIED[Combiner.ASSIGN] and block.terminator.operand(0) != block.argument(1):
        return None
    if not (before.is_constant and written.is_constant) or max(before.shape[0], prod(written.shape)) > MAX_POINTS:
        return None
    places = ranges.of(site.to(indices))
    if not places.is_constant:
        return None
    result: NDArray[Any] = np.array(before.values, object)
    order = np.asarray(places.values, object).reshape(-1)
    for row, update in zip(order, np.asarray(written.values, object).reshape(-1), strict=True):
        if 0 <= row < len(result):
            result[row] = apply(result[row], update)
    allowed = type_range(before.element_type) or (0, 0)
    if not within((int(result.min()), int(result.max())), allowed):
        return None
    return Interval.exactly(result, before.element_type)
