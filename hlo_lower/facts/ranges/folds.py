"""Value ranges of what is folded: by reductions, by running sums and by scatters.

Reductions are proved by induction over the fold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Bounds, Interval, bounds_dtype, lesser
from hlo_lower.facts.ranges.loop_ranges import keeps_within, uniform, within
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.region import Combiner, classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops.names import ADD, REDUCE, SCATTER


def reduction_range(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The interval of a result of `reduce` or `reduce_window` that is one of what it folds, or a sum of few.

    If the body, given values in the hull of the operand and of the initial value, returns one in the same hull, so
    does the whole fold: a maximum, a selection, the index of an argmax. A sum of n values in [lo, hi] that begins
    with 0 is in [min(n lo, 0), max(n hi, 0)].
    """
    count, number = len(node.results), site.value.number
    operand, start = node.operand(number), node.operand(count + number)
    result = node.result(number)
    tensor = operand.tensor_type
    if tensor is None or not (tensor.is_static and result.is_static) or type_range(tensor.element_name) is None:
        return None
    if result.element_type != operand.element_type or 0 in operand.static_shape or 0 in result.static_shape:
        return None
    folded, first = (ranges.of(site.to(v)) for v in (operand, start))
    hull = min(folded.hull()[0], first.hull()[0]), max(folded.hull()[1], first.hull()[1])
    like = Interval.of_type(result.static_shape, result.element_type)
    body = node.blocks[0]
    returned = body.terminator.operand(number)
    arguments = (body.argument(number), body.argument(count + number))
    why = merge((folded.evidence, first.evidence))
    if keeps_within(ranges, hull, [*map(site.to, arguments)], site.to(returned)):
        return uniform(like, hull).because(Evidence.at(node, Code.FOLDED(*hull), why))
    adder = returned.node
    if adder is None or adder.name != ADD or set(adder.operands) != set(arguments):
        return None
    if operand.element_type == "i1":
        return None
    # How many elements go into one element of the result.
    sizes = operand.static_shape
    if node.name == REDUCE:
        sizes = tuple(sizes[d] for d in node.integers("dimensions"))
    else:
        sizes = node.integers("window_dimensions")
    terms = prod(sizes)
    low, high = folded.hull()
    low, high = min(terms * low, 0), max(terms * high, 0)
    allowed = type_range(operand.element_type)
    if first.hull() != (0, 0):  # it may be added any number of times
        return None
    if allowed is None or not within((low, high), allowed):
        return None
    return uniform(like, (low, high)).because(Evidence.at(node, Code.SUMMED(terms, low, high), why))


# --- running sums: the `reduce_window` that a cumulative sum is, recognised, and the bounds of its elements ---
#
#     "stablehlo.reduce_window"(%x, %zero) <{padding = [[n - 1, 0]], window_dimensions = [n]}> ({ add })
#
# Element i is x[0] + ... + x[i]; with the padding behind it is x[i] + ... + x[n - 1].


MAX_WIDE = 1 << 16
"""Longest sum of 64-bit numbers that is bounded element by element; their bounds are Python integers."""


@dataclass(frozen=True)
class RunningSum:
    """A running sum in which nothing wraps around and nothing goes down.

    Attributes:
      dim: along which it runs.
      is_reversed: it runs from the last element to the first.
      step: from one element to the next it grows by at least so much.
      total: the most that it comes to.
    """

    dim: int
    is_reversed: bool
    step: int
    total: int


def running_dim(node: Node) -> tuple[int, bool] | None:
    """The dim along which a `reduce_window` is a running sum from 0, and whether it is reversed; or None."""
    if len(node.results) != 1 or not node.operand(0).is_static or not node.result().is_static:
        return None
    shape, window = node.operand(0).static_shape, node.integers("window_dimensions")
    for name in ("window_strides", "base_dilations", "window_dilations"):
        if any(v != 1 for v in node.integers(name, ())):
            return None
    body = node.blocks[0]
    adder = body.terminator.operand(0).node
    if adder is None or adder.name != ADD or set(adder.operands) != set(body.arguments):
        return None
    long = [d for d, size in enumerate(window) if size != 1]
    padding = node.attribute("padding")
    if len(long) != 1 or window[long[0]] != shape[long[0]] or padding is None or node.result().static_shape != shape:
        return None
    dim = long[0]
    sides = mlir.dense_value(padding, (len(shape), 2), "i64")
    if sides is None or any(int(n) for d in range(len(shape)) if d != dim for n in sides[d]):
        return None
    before, after = (int(n) for n in sides[dim])
    if (before, after) not in ((shape[dim] - 1, 0), (0, shape[dim] - 1)):
        return None
    return dim, before == 0


def running_bounds(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The interval of a running sum, element by element; None where a sum may leave the type.

    A sum of elements between their bounds lies between the sums of the bounds. Where every such sum is a number of the
    type no sum wraps around on the way either, in whatever order the elements are added: each partial sum is a sum of
    some of the elements, so it is bounded by the sums of the negative lower and the positive upper bounds.
    """
    found, element_type = running_dim(node), node.result().element_type
    allowed = type_range(element_type)
    if found is None or allowed is None or element_type == "i1" or node.operand(0).element_type != element_type:
        return None
    dim, is_reversed = found
    known, first = (ranges.of(site.to(v)) for v in node.operands)
    if first.hull() != (0, 0) or 0 in known.shape:
        return None
    if known.lo.dtype == object and known.shape[dim] > MAX_WIDE:
        return None
    low, high = (_spread(b, dim, known.shape[dim]) for b in (known.lo, known.hi))
    # np.min and not .min(): NumPy makes Python integers of 64-bit bounds where one is left.
    least, most = int(np.min(np.minimum(low, 0).sum(axis=dim))), int(np.max(np.maximum(high, 0).sum(axis=dim)))
    limit = _total_of_counts(ranges, site.to(node.operand(0)))
    if least < allowed[0] or (most if limit is None else min(most, limit)) > allowed[1]:
        return None
    sums = [_cumsum(b, dim, is_reversed=is_reversed) for b in (low, high)]
    if limit is not None:
        sums[1] = lesser(sums[1], limit)
    sums = [bounds.astype(bounds_dtype(element_type)) for bounds in sums]
    step = Evidence.at(node, Code.RUNNING_SUM(int(sums[1].max())), merge((known.evidence,)))
    return Interval(known.shape, element_type, sums[0], sums[1], step)


def _total_of_counts(ranges: Ranges, site: Site) -> int | None:
    """An upper bound of the sum of a vector's elements, where a scatter counted them; or None.

    A scatter that adds nonnegative numbers to nonnegative numbers adds each at most once, wherever it lands.
    """
    site = ranges.sources.resolve(site)
    value, node = site.value, site.node
    if node is None or node.name != SCATTER or len(node.results) != 1 or len(value.shape) != 1:
        return None
    if classify_region(node.blocks[0]).common is not Combiner.ADD or not all(v.is_static for v in node.operands):
        return None
    operand, _, updates = node.operands
    if len({v.element_type for v in (operand, updates, value, node.blocks[0].argument(0))}) != 1:
        return None
    known = [ranges.of(site.to(v)) for v in (operand, updates)]
    if any(t.hull()[0] < 0 for t in known):
        return None
    total = sum(int(np.broadcast_to(t.hi, t.shape).sum()) for t in known)
    allowed = type_range(value.element_type)
    return total if allowed is not None and total <= allowed[1] else None


def running_sum(ranges: Ranges, node: Node, site: Site) -> RunningSum | None:
    """A running sum whose elements are never negative and that never leaves its type, or None."""
    found, bounds = running_dim(node), running_bounds(ranges, node, site)
    if found is None or bounds is None:
        return None
    dim, is_reversed = found
    known = ranges.of(site.to(node.operand(0)))
    # The element that the sum begins with says nothing about a step.
    low = _spread(known.lo, dim, known.shape[dim])
    steps = np.take(low, range(low.shape[dim] - 1) if is_reversed else range(1, low.shape[dim]), axis=dim)
    step = int(steps.min()) if steps.size else 0
    return RunningSum(dim, is_reversed, step, bounds.hull()[1]) if step >= 0 else None


def _spread(bounds: Bounds, dim: int, size: int) -> Bounds:
    """Bounds at full size along one dim.

    Sums of them are exact: those of 64-bit types are Python integers, and those of at most 32 bits stay below 2^54 for
    as many elements as are tracked one by one.
    """
    shape = [size if d == dim else n for d, n in enumerate(bounds.shape)]
    return np.broadcast_to(bounds, shape)


def _cumsum(bounds: Bounds, dim: int, *, is_reversed: bool) -> Bounds:
    ordered = np.flip(bounds, dim) if is_reversed else bounds
    sums = np.cumsum(ordered, axis=dim, dtype=bounds.dtype)
    return np.asarray(np.flip(sums, dim) if is_reversed else sums)


# --- value ranges of what scatters write ---
#
# Value ranges of what scatters write: of an assignment, a maximum, a count, and of points whose places are known.
#
# Which updates land where is not asked. An element of the result is the operand's own element, or what the region made
# of it and of some updates; and an update that is dropped changes nothing.


MAX_POINTS = 1 << 16
"""Most points at known places that are applied one after the other."""


def scatter_range(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The interval of a result of a scatter, or None where no rule applies.

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
    known = _apply_points(ranges, node, site, before, written) if arity == 1 else None
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


def _apply_points(ranges: Ranges, node: Node, site: Site, before: Interval, written: Interval) -> Interval | None:
    """The result of a scatter of constant points into a constant vector; points outside are dropped."""
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
