"""What a predicate tells of a value: its interval where the predicate is true, and where it is false.

A predicate is a comparison or made of some: `and`, `or`, `not`, and one that is compared with a constant. Where
nothing is told, the interval stays what it is.
"""

import numpy as np

from hlo_lower.facts.ranges.interval import Interval, greater, lesser, pick
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.spec import MIRRORED

MAX_DEPTH = 8
"""Nested predicates that are looked into."""


def subjects(predicate: Value, depth: int = 0) -> list[Value]:
    """The integer tensors of the predicate's shape that it compares, each once."""
    node = predicate.node
    if node is None or depth > MAX_DEPTH:
        return []
    found: list[Value] = []
    for operand in node.operands:
        tensor = operand.tensor_type
        if tensor is None or tensor.shape != predicate.shape:
            continue
        if tensor.element_name == "i1":
            found += subjects(operand, depth + 1)
        elif node.name == names.COMPARE:
            found.append(operand)
    return list(dict.fromkeys(found))


def refine_by(ranges: Ranges, predicate: Value, truth: bool, subject: Site, nested: int = 0) -> Interval:
    """The interval of a value where a predicate is true, or false; it may leave an element no value (lo > hi).

    Args:
      ranges: gives the intervals.
      predicate: an i1 tensor of the subject's shape, looked at in the same way.
      truth: which of its values is given.
      subject: one of its `subjects`.
      nested: how many predicates this one is a part of.
    """
    known = ranges.of(subject)
    node = predicate.node
    if node is None or nested > MAX_DEPTH:
        return known

    def part(number: int, truth: bool) -> Interval:
        return refine_by(ranges, node.operand(number), truth, subject, nested + 1)

    match node.name:
        case names.COMPARE if node.operand(0).element_type == "i1":
            for neutral, other in ((0, 1), (1, 0)):
                value = ranges.of(subject.to(node.operand(neutral)))
                direction = comparison_direction(node)
                if direction in ("EQ", "NE") and value.lo.size and value.hull()[0] == value.hull()[1]:
                    same = bool(value.hull()[0]) == (direction == "EQ")
                    return part(other, truth == same)
            return known
        case names.COMPARE:
            return _refine_by_comparison(ranges, node, truth, subject, known)
        case names.NOT:
            return part(0, not truth)
        case names.AND | names.OR:
            both = truth == (node.name == names.AND)
            a, b = part(0, truth), part(1, truth)
            return _intersection(a, b) if both else _union(a, b)
        case _:
            return known


def _refine_by_comparison(ranges: Ranges, node: Node, truth: bool, subject: Site, known: Interval) -> Interval:
    """The subject where `subject < bound`, or another comparison, is true or false."""
    left, right = node.operands
    direction = comparison_direction(node)
    if left != subject.value:
        if right != subject.value:
            return known
        left, right = right, left
        direction = MIRRORED[direction]
    limit = ranges.of(subject.to(right))
    if not truth:
        direction = _NEGATED[direction]
    match direction:
        case "LT":
            return known.between(known.lo, lesser(known.hi, limit.hi - 1))
        case "LE":
            return known.between(known.lo, lesser(known.hi, limit.hi))
        case "GT":
            return known.between(greater(known.lo, limit.lo + 1), known.hi)
        case "GE":
            return known.between(greater(known.lo, limit.lo), known.hi)
        case "EQ":
            return known.between(greater(known.lo, limit.lo), lesser(known.hi, limit.hi))
        case _:  # not equal to one number: it may be an end of the interval
            is_number = np.asarray(limit.lo == limit.hi)
            lo = pick(is_number & np.asarray(known.lo == limit.lo), known.lo + 1, known.lo)
            hi = pick(is_number & np.asarray(known.hi == limit.hi), known.hi - 1, known.hi)
            return known.between(lo, hi)


_NEGATED = {"LT": "GE", "GE": "LT", "LE": "GT", "GT": "LE", "EQ": "NE", "NE": "EQ"}


def _intersection(a: Interval, b: Interval) -> Interval:
    return a.between(greater(a.lo, b.lo), lesser(a.hi, b.hi))


def _union(a: Interval, b: Interval) -> Interval:
    """The hull of two intervals, of which one may be empty."""
    no_a, no_b = np.asarray(a.lo > a.hi), np.asarray(b.lo > b.hi)
    lo = pick(no_a, b.lo, pick(no_b, a.lo, lesser(a.lo, b.lo)))
    hi = pick(no_a, b.hi, pick(no_b, a.hi, greater(a.hi, b.hi)))
    return a.between(lo, hi)
