"""Value ranges of what loops carry, each proved by induction.

To show that a carried value stays in an interval J: the value before the loop is in J, and if it is in J (and, in the
body, where the condition holds) then so is what the body returns. J is not searched for long: a few candidates follow
from the value before the loop, the condition and the body, and the first that the proof accepts is taken. That covers
counters with known bounds, ring buffers (`(i + 1) % n`) and everything that a clamp holds in each iteration.

JAX often counts twice, once for the condition and once for the body. So a value that grows by a known step is also
bounded by how often the loop can run, which another counter says: `i < n` with step s from a runs (n - a) / s times.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Protocol

import numpy as np

from hlo_lower.analysis.evidence import Evidence, merge
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.interval import Interval, type_range
from hlo_lower.analysis.transfer import MIRRORED, comparison_direction
from hlo_lower.causes import Code
from hlo_lower.graph import Block, Node, Value

MAX_NESTED = 2
"""How many assumptions a proof may rest on: a counter within a counter."""

MAX_FOLLOWED = 20
"""How many calls and conversions are followed to find a step."""

Key = tuple[Value, Frame | None]
Hull = tuple[int, int]


class Analysis(Protocol):
    """What gives intervals: `IndexAnalysis`."""

    @property
    def assumed(self) -> Mapping[Key, Interval]: ...

    def interval(self, value: Value, frame: Frame | None = None, depth: int = 0) -> Interval: ...

    def callee(self, call: Node) -> Block | None: ...

    def enter(self, call: Node, caller: Frame | None) -> Frame: ...

    def assuming(self, assumed: Mapping[Key, Interval]) -> "Analysis": ...


def carried(
    analysis: Analysis, loop: Node, number: int, frame: Frame | None, depth: int, inside: Block | None = None
) -> Interval | None:
    """The interval of a value that a while carries, or None where no candidate is proved.

    Args:
      analysis: gives the intervals.
      loop: the `stablehlo.while`.
      number: which of its values.
      frame: the call through which the loop is looked at.
      depth: how many producers have been followed so far.
      inside: the body, or the condition, whose argument is asked for; by default the loop's result.
    """
    condition, body = loop.blocks
    initial, argument = loop.operand(number), body.argument(number)
    returned = body.terminator.operand(number)
    tensor = initial.tensor_type
    if tensor is None or not tensor.is_static or type_range(tensor.element_name) is None:
        return None
    before = analysis.interval(initial, frame, depth + 1)
    if returned == argument:
        return before
    if len(analysis.assumed) >= MAX_NESTED or (argument, frame) in analysis.assumed or 0 in before.shape:
        return None

    def entering(hull: Hull) -> Interval:
        """The argument in the body: in the hull, and the condition holds."""
        return uniform(before, _where_true(analysis, condition, number, frame, depth, hull))

    @cache
    def following(hull: Hull) -> Hull:
        assumed = analysis.assuming({(argument, frame): entering(hull)})
        return assumed.interval(returned, frame, depth + 1).hull()

    is_body = inside is not None and inside == body
    whole = type_range(before.element_type)
    assert whole is not None
    counted = _counted(analysis, loop, number, before.hull(), frame, depth, in_body=is_body)
    if counted is not None and within(counted, whole):
        return uniform(before, counted).because(Evidence.at(loop, Code.COUNTED(*counted), merge((before.evidence,))))
    if before.hull() == whole and not (is_body and argument.shape == ()):
        return None  # no other candidate holds it
    for candidate in _candidates(before.hull(), following(whole), following(before.hull())):
        if within(following(candidate), candidate):
            told = entering(candidate) if is_body else uniform(before, candidate)
            if told.is_unbounded:
                return None
            return told.because(Evidence.at(loop, Code.KEPT_WITHIN(*told.hull()), merge((before.evidence,))))
    return None


def _counted(
    analysis: Analysis, loop: Node, number: int, before: Hull, frame: Frame | None, depth: int, *, in_body: bool
) -> Hull | None:
    """The hull of a value that grows by a known step, from how often the loop can run at most."""
    condition, body = loop.blocks
    step = _step(analysis, body, number, frame, depth)
    if step is None:
        return None
    most: int | None = None
    for n, counter in enumerate(condition.arguments):
        if counter.shape != () or counter.tensor_type is None or type_range(counter.element_type) is None:
            continue
        own = _step(analysis, body, n, frame, depth)
        if own is None or own[0] <= 0:
            continue
        first = analysis.interval(loop.operand(n), frame, depth + 1).hull()[0]
        whole = type_range(counter.element_type) or (0, 0)
        limit = _where_true(analysis, condition, n, frame, depth, whole)[1]
        # Up to the limit no sum may leave the type, or the counter would start again from below.
        if limit == whole[1] or limit + own[1] > whole[1]:
            continue
        times = max(0, (limit - first) // own[0] + 1)
        most = times if most is None else min(most, times)
    if most is None:
        return None
    times = max(most - 1, 0) if in_body else most
    return before[0] + min(0, times * step[0]), before[1] + max(0, times * step[1])


def _step(analysis: Analysis, body: Block, number: int, frame: Frame | None, depth: int) -> Hull | None:
    """The hull of what a loop's body adds to one of its values, or None where it does something else with it."""
    argument = body.argument(number)

    def is_argument(value: Value, own: Frame | None) -> bool:
        value, own = followed(analysis, value, own)
        return value == argument and own == frame

    returned, own = followed(analysis, body.terminator.operand(number), frame)
    node = returned.node
    if node is None or node.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    a, b = node.operands
    if node.name == "stablehlo.add" and is_argument(b, own):
        a, b = b, a
    if not is_argument(a, own) or returned.element_type == "i1":
        return None
    low, high = analysis.interval(b, own, depth + 1).hull()
    whole = type_range(returned.element_type)
    if (low, high) == whole:
        return None
    return (low, high) if node.name == "stablehlo.add" else (-high, -low)


def followed(analysis: Analysis, value: Value, frame: Frame | None) -> tuple[Value, Frame | None]:
    """A value as it comes out of calls, as an argument goes into them, and through conversions to its own type."""
    for _ in range(MAX_FOLLOWED):
        node = value.node
        if node is None:
            block = value.block
            if frame is None or block is None or block.owner.name != "func.func":
                return value, frame
            value, frame = frame.call.operand(value.number), frame.caller
        elif node.name == "func.call" and (callee := analysis.callee(node)) is not None:
            value, frame = callee.terminator.operand(value.number), analysis.enter(node, frame)
        elif node.name == "stablehlo.convert" and node.operand(0).raw.type == value.raw.type:
            value = node.operand(0)
        else:
            return value, frame
    return value, frame


def _candidates(before: Hull, after_any: Hull, after_first: Hull) -> Iterator[Hull]:
    yield before
    yield min(before[0], after_first[0]), max(before[1], after_first[1])
    yield before[0], max(before[1], after_any[1])
    yield min(before[0], after_any[0]), before[1]
    yield min(before[0], after_any[0]), max(before[1], after_any[1])


def within(inner: Hull, outer: Hull) -> bool:
    """Whether a hull lies in another one."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def uniform(like: Interval, hull: Hull) -> Interval:
    """The same tensor, every element within a hull."""
    low, high = (np.full((1,) * len(like.shape), bound, like.lo.dtype) for bound in hull)
    return Interval(like.shape, like.element_type, low, high)


def _where_true(analysis: Analysis, condition: Block, number: int, frame: Frame | None, depth: int, hull: Hull) -> Hull:
    """A hull of a scalar carried value, cut to where the loop's condition holds."""
    argument = condition.argument(number)
    low, high = hull
    pending = [condition.terminator.operand(0)]
    while pending:
        node = pending.pop().node
        if node is None:
            continue
        if node.name == "stablehlo.and" or (node.name == "stablehlo.convert" and node.result().element_type == "i1"):
            pending.extend(o for o in node.operands if o.element_type == "i1")
        elif node.name == "stablehlo.compare" and node.operand(0).element_type == "i1":
            left, right = node.operands
            if comparison_direction(node) == "NE" and analysis.interval(right, frame, depth + 1).hull() == (0, 0):
                pending.append(left)
        elif node.name == "stablehlo.compare" and argument in node.operands and argument.shape == ():
            direction = comparison_direction(node)
            left, right = node.operands
            if right == argument:
                direction, left, right = MIRRORED.get(direction, direction), right, left
            if right == argument:
                continue
            limit = analysis.interval(right, frame, depth + 1).hull()
            if direction in ("LT", "LE"):
                high = min(high, limit[1] - (direction == "LT"))
            elif direction in ("GT", "GE"):
                low = max(low, limit[0] + (direction == "GT"))
    return (low, high) if low <= high else hull
