"""Value ranges of what loops carry, each proved by induction.

To show that a carried value stays in an interval J: the value before the loop is in J, and if it is in J (and, in the
body, where the condition holds) then so is what the body returns. J is not searched for long: a few candidates follow
from the value before the loop, the condition and the body, and the first that the proof accepts is taken. That covers
counters with known bounds, ring buffers (`(i + 1) % n`) and everything that a clamp holds in each iteration.

JAX often counts twice, once for the condition and once for the body. So a value that grows by a known step is also
bounded by how often the loop can run, which another counter says: `i < n` with step s from a runs (n - a) / s times.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried
from hlo_lower.ops.names import ADD, AND, COMPARE, CONVERT, SUBTRACT
from hlo_lower.ops.spec import MIRRORED

MAX_NESTED = 2
"""How many assumptions a proof may rest on: a counter within a counter."""

Hull = tuple[int, int]


def loop_range(ranges: Ranges, origin: Carried) -> Interval | None:
    """The interval of a value that a while carries, or None where no candidate is proved.

    Args:
      ranges: gives the intervals.
      origin: the loop, and which of its values; inside of it or behind.
    """
    initial, argument = origin.initial, origin.argument
    tensor = initial.value.tensor_type
    if tensor is None or not tensor.is_static or type_range(tensor.element_name) is None:
        return None
    before = ranges.of(initial)
    if origin.is_kept:
        return before
    if len(ranges.assumed) >= MAX_NESTED or argument in ranges.assumed or 0 in before.shape:
        return None

    def entering(hull: Hull) -> Interval:
        """The argument in the body: in the hull, and the condition holds."""
        return uniform(before, _where_true(ranges, origin, hull))

    @cache
    def following(hull: Hull) -> Hull:
        return ranges.assuming({argument: entering(hull)}).of(origin.following).hull()

    is_body = origin.inside is not None and origin.inside == argument.value.block
    whole = type_range(before.element_type)
    assert whole is not None
    counted = _counted_hull(ranges, origin, before.hull(), in_body=is_body)
    if counted is not None and within(counted, whole):
        step = Evidence.at(origin.loop, Code.COUNTED(*counted), merge((before.evidence,)))
        return uniform(before, counted).because(step)
    if not ranges.loop_ranges:
        return None
    if before.hull() == whole and not (is_body and argument.value.shape == ()):
        return None  # no other candidate holds it
    for candidate in _candidates(before.hull(), following(whole), following(before.hull())):
        if within(following(candidate), candidate):
            known = entering(candidate) if is_body else uniform(before, candidate)
            if known.is_unbounded:
                return None
            return known.because(Evidence.at(origin.loop, Code.KEPT_WITHIN(*known.hull()), merge((before.evidence,))))
    return None


def _counted_hull(ranges: Ranges, origin: Carried, before: Hull, *, in_body: bool) -> Hull | None:
    """The hull of a value that grows by a known step, from the most iterations that the loop can make."""
    step = _step(ranges, origin)
    most = None if step is None else most_trips(ranges, origin)
    if step is None or most is None:
        return None
    times = max(most - 1, 0) if in_body else most
    return before[0] + min(0, times * step[0]), before[1] + max(0, times * step[1])


def most_trips(ranges: Ranges, origin: Carried) -> int | None:
    """The most iterations that a loop can make, or None where no counter bounds them.

    Args:
      ranges: gives the intervals.
      origin: any of the values that the loop carries.
    """
    found = [_trips_of(ranges, origin.beside(n)) for n in range(len(origin.loop.operands))]
    return min((one for one in found if one is not None), default=None)


def _trips_of(ranges: Ranges, counter: Carried) -> int | None:
    """The most iterations, by one value that goes up to a limit in each of them, or down to one."""
    value = counter.in_condition.value
    whole = type_range(value.element_type) if value.shape == () and value.tensor_type is not None else None
    step = None if whole is None else _step(ranges, counter)
    if whole is None or step is None or step[0] <= 0 <= step[1]:
        return None
    (first, last), limits = ranges.of(counter.initial).hull(), _where_true(ranges, counter, whole)
    if step[0] < 0:  # downwards is upwards, of the negated numbers
        (first, last), step, whole = (-last, -first), (-step[1], -step[0]), (-whole[1], -whole[0])
        limits = -limits[1], -limits[0]
    limit = limits[1]
    # Up to the limit no sum may leave the type, or the counter would start again from below.
    if limit == whole[1] or limit + step[1] > whole[1]:
        return None
    return max(0, (limit - first) // step[0] + 1)


def _step(ranges: Ranges, origin: Carried) -> Hull | None:
    """The hull of what a loop's body adds to one of its values, or None where it does something else with it."""
    returned = ranges.sources.resolve(origin.following)
    node = returned.node
    if node is None or node.name not in (ADD, SUBTRACT):
        return None
    a, b = map(returned.to, node.operands)
    if node.name == ADD and ranges.sources.resolve(b) == origin.argument:
        a, b = b, a
    if ranges.sources.resolve(a) != origin.argument or returned.value.element_type == "i1":
        return None
    low, high = ranges.of(b).hull()
    whole = type_range(returned.value.element_type)
    if (low, high) == whole:
        return None
    return (low, high) if node.name == ADD else (-high, -low)


def _candidates(before: Hull, after_any: Hull, after_first: Hull) -> Iterator[Hull]:
    yield before
    yield min(before[0], after_first[0]), max(before[1], after_first[1])
    yield before[0], max(before[1], after_any[1])
    yield min(before[0], after_any[0]), before[1]
    yield min(before[0], after_any[0]), max(before[1], after_any[1])


def within(inner: Hull, outer: Hull) -> bool:
    """Whether a hull lies in another one."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def keeps_within(ranges: Ranges, hull: Hull, arguments: Sequence[Site], returned: Site) -> bool:
    """Whether a region that is given scalars in a hull is proved to return one in the same hull: so does any number of
    its applications."""
    if len(ranges.assumed) >= MAX_NESTED:
        return False
    scalar = Interval.of_type((), returned.value.element_type)
    return within(ranges.assuming({at: uniform(scalar, hull) for at in arguments}).of(returned).hull(), hull)


def uniform(like: Interval, hull: Hull) -> Interval:
    """The same tensor, every element within a hull."""
    low, high = (np.full((1,) * len(like.shape), bound, like.lo.dtype) for bound in hull)
    return Interval(like.shape, like.element_type, low, high)


def _where_true(ranges: Ranges, origin: Carried, hull: Hull) -> Hull:
    """A hull of a scalar carried value, cut to where the loop's condition holds."""
    argument = origin.in_condition.value
    low, high = hull
    pending = [origin.loop.blocks[0].terminator.operand(0)]
    while pending:
        node = pending.pop().node
        if node is None:
            continue
        if node.name == AND or (node.name == CONVERT and node.result().element_type == "i1"):
            pending.extend(o for o in node.operands if o.element_type == "i1")
        elif node.name == COMPARE and node.operand(0).element_type == "i1":
            left, right = node.operands
            if comparison_direction(node) == "NE" and ranges.of(origin.initial.to(right)).hull() == (0, 0):
                pending.append(left)
        elif node.name == COMPARE and argument in node.operands and argument.shape == ():
            direction = comparison_direction(node)
            left, right = node.operands
            if right == argument:
                direction, left, right = MIRRORED[direction], right, left
            if right == argument:
                continue
            limit = ranges.of(origin.initial.to(right)).hull()
            if direction in ("LT", "LE"):
                high = min(high, limit[1] - (direction == "LT"))
            elif direction in ("GT", "GE"):
                low = max(low, limit[0] + (direction == "GT"))
    return (low, high) if low <= high else hull
