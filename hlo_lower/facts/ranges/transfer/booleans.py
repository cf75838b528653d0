"""Transfer functions of comparisons, logic and choice."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.interval import Interval, greater, lesser, pick
from hlo_lower.facts.ranges.transfer.result import Transfer, result
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops.names import AND, COMPARE, NOT, OR, SELECT, XOR


def compare_outcome(direction: str, a: Interval, b: Interval) -> tuple[Any, Any]:
    """Arrays of booleans: where the comparison is surely true, and where it may be true."""
    if direction in ("LT", "GE"):
        sure, may = a.hi < b.lo, a.lo < b.hi
    elif direction in ("LE", "GT"):
        sure, may = a.hi <= b.lo, a.lo <= b.hi
    else:
        sure, may = (a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo), (a.lo <= b.hi) & (b.lo <= a.hi)
    return (~may, ~sure) if direction in ("GE", "GT", "NE") else (sure, may)


MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
"""The direction of a comparison whose operands change places; the others stay."""


_COMPARED: Mapping[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def comparison_direction(node: Node) -> str:
    """The direction of a `stablehlo.compare`: EQ, NE, GE, GT, LE or LT."""
    return mlir.enum_value(node.attribute("comparison_direction"))


def comparison_of(node: Node) -> Callable[..., Any]:
    """What a `stablehlo.compare` computes, of arrays; of floats as compare_type FLOAT, which is IEEE 754's."""
    return _COMPARED[comparison_direction(node)]


def _compare(node: Node, operands: Sequence[Interval]) -> Interval:
    sure, may = compare_outcome(comparison_direction(node), operands[0], operands[1])
    return result(node, np.asarray(sure).astype(np.int64), np.asarray(may).astype(np.int64), operands)


def both(node: Node, operands: Sequence[Interval]) -> Interval:
    """`and` of booleans, which is also their product."""
    a, b = operands
    return result(node, a.lo & b.lo, a.hi & b.hi, operands)


def _and(node: Node, operands: Sequence[Interval]) -> Interval | None:
    a, b = operands
    if a.element_type == "i1":
        return both(node, operands)
    # x & m with m >= 0 is in [0, m]: the mask of a power of two.
    masks = [m for m in (a, b) if np.all(m.lo >= 0)]
    if not masks:
        return None
    hi = masks[0].hi if len(masks) == 1 else lesser(masks[0].hi, masks[1].hi)
    return result(node, np.zeros_like(hi), hi, operands, Code.MASKED())


def either(node: Node, operands: Sequence[Interval]) -> Interval:
    """`or`, which is also the sum of booleans."""
    a, b = operands
    if a.element_type == "i1":
        return result(node, a.lo | b.lo, a.hi | b.hi, operands)
    return _below_power(node, a, b, at_least_either=True)


def _xor(node: Node, operands: Sequence[Interval]) -> Interval:
    """Of booleans: whether they differ."""
    a, b = operands
    if a.element_type == "i1":
        known = (a.lo == a.hi) & (b.lo == b.hi)
        return result(node, pick(known, a.lo ^ b.lo, 0), pick(known, a.lo ^ b.lo, 1), operands)
    return _below_power(node, a, b, at_least_either=False)


def _below_power(node: Node, a: Interval, b: Interval, *, at_least_either: bool) -> Interval:
    """`or` and `xor` of numbers that are not negative set no bit above their highest one; `or` clears none."""
    if not (np.all(a.lo >= 0) and np.all(b.lo >= 0)):
        return Interval.of_type(node.result().static_shape, a.element_type)
    most = (1 << max(a.hull()[1].bit_length(), b.hull()[1].bit_length())) - 1
    lo = greater(a.lo, b.lo) if at_least_either else np.zeros_like(a.lo)
    return result(node, lo, np.full_like(lo, most), (a, b))


def _not(node: Node, operands: Sequence[Interval]) -> Interval:
    a = operands[0]
    if a.element_type == "i1":
        return result(node, 1 - a.hi, 1 - a.lo, operands)
    # All bits turned round: -1 - x, or 2^n - 1 - x for an unsigned x.
    ones = -1 if element_type(a.element_type).is_signed else int(element_type(a.element_type).most)
    return result(node, ones - a.hi, ones - a.lo, operands)


def scalar_like(scalar: Interval, like: Interval) -> Interval:
    """A scalar's interval with the rank of another, to be compared with it element by element."""
    ones = (1,) * len(like.shape)
    return Interval(like.shape, scalar.element_type, scalar.lo.reshape(ones), scalar.hi.reshape(ones), scalar.evidence)


def choose(node: Node, predicate: Interval, on_true: Interval, on_false: Interval) -> Interval:
    """The interval of a `select` whose branches are known."""
    if len(predicate.shape) != len(on_true.shape):
        predicate = scalar_like(predicate, on_true)
    always, never = predicate.lo == 1, predicate.hi == 0
    lo = pick(always, on_true.lo, pick(never, on_false.lo, lesser(on_true.lo, on_false.lo)))
    hi = pick(always, on_true.hi, pick(never, on_false.hi, greater(on_true.hi, on_false.hi)))
    return result(node, lo, hi, (predicate, on_true, on_false))


def _select(node: Node, operands: Sequence[Interval]) -> Interval:
    return choose(node, operands[0], operands[1], operands[2])


BOOLEANS: Mapping[str, Transfer] = {COMPARE: _compare, AND: _and, OR: either, XOR: _xor, NOT: _not, SELECT: _select}
