"""Running sums: the `reduce_window` that a cumulative sum is, recognised, and the bounds of its elements.

    "stablehlo.reduce_window"(%x, %zero) <{padding = [[n - 1, 0]], window_dimensions = [n]}> ({ add })

Element i is x[0] + ... + x[i]; with the padding behind it is x[i] + ... + x[n - 1].
"""

from dataclasses import dataclass

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Bounds, Interval, bounds_dtype, lesser
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.region import Combiner, classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops.names import ADD, SCATTER

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
    limit = _counted(ranges, site.to(node.operand(0)))
    if least < allowed[0] or (most if limit is None else min(most, limit)) > allowed[1]:
        return None
    sums = [_summed(b, dim, is_reversed=is_reversed) for b in (low, high)]
    if limit is not None:
        sums[1] = lesser(sums[1], limit)
    sums = [bounds.astype(bounds_dtype(element_type)) for bounds in sums]
    step = Evidence.at(node, Code.RUNNING_SUM(int(sums[1].max())), merge((known.evidence,)))
    return Interval(known.shape, element_type, sums[0], sums[1], step)


def _counted(ranges: Ranges, site: Site) -> int | None:
    """The most that the elements of a vector come to together, where they are counts; or None.

    A scatter that adds numbers that are not negative to such numbers adds each at most once, wherever it lands.
    """
    site = ranges.sources.followed(site)
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


def _summed(bounds: Bounds, dim: int, *, is_reversed: bool) -> Bounds:
    ordered = np.flip(bounds, dim) if is_reversed else bounds
    sums = np.cumsum(ordered, axis=dim, dtype=bounds.dtype)
    return np.asarray(np.flip(sums, dim) if is_reversed else sums)
