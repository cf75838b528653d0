"""Between which numbers a value lies, as far as the ops say that make it.

    abs %x                    0 up to infinity
    minimum (abs %x), 3       0 up to 3
    add (multiply %x, %x), c  c up to infinity

Forms that a consumer gets wrong for some numbers only (large angles, a root of 0) are looked for with it. NaN is no
number: what is said holds of all others. The analysis of ranges (`hlo_lower.facts`) knows more, of integers.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, isnan

import numpy as np

from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import is_one_op
from hlo_lower.ops.origins import given_at_calls
from hlo_lower.ops.spec import LAYOUT, OPS

Ends = tuple[float, float]
"""The least and the greatest number, infinities included."""

MOST_VALUES = 60
"""Values behind one that are looked at."""

MOVES = LAYOUT | {names.SLICE}
"""Ops whose results are numbers of their operand."""


def ends_of(graph: Graph, value: Value) -> Ends:
    """The least and the greatest number that a value may hold, at all calls of its function.

    Where a select replaces the finite numbers above a limit, an infinity may be left beyond it. Results are rounded to
    the value's type, which keeps their order. An integer that may wrap around may be any of its
    type.
    """
    return _Bounds(graph).ends(value)


def largest_of(graph: Graph, value: Value) -> float:
    """How large the finite numbers of a value may be."""
    return max(map(abs, ends_of(graph, value)))


def source_of(value: Value) -> Value:
    """What is moved from place to place to be a value."""
    while value.node is not None and value.node.name in MOVES:
        value = value.node.operand(0)
    return value


def compared_with(predicate: Value, value: Value, direction: str) -> np.ndarray | None:
    """The constant with which a value is compared in a direction ("EQ"); None where it is not, or with no constant."""
    node = predicate.node
    if node is None or node.name != names.COMPARE or node.operand(0) != value:
        return None
    return node.operand(1).constant() if direction in str(node.attribute("comparison_direction")) else None


class _Bounds:
    """The ends of values, each found once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[Value, Ends] = {}

    def ends(self, value: Value) -> Ends:
        """The ends of a value; those of its type where it is too deep."""
        if value not in self._known:
            self._known[value] = widest = _ends_of_type(value)
            if value.is_tensor and len(self._known) < MOST_VALUES and (found := self._ends_found(value)):
                low, high = _rounded(found, value)
                self._known[value] = (low, high) if widest[0] <= low and high <= widest[1] else widest
        return self._known[value]

    def _ends_found(self, value: Value) -> Ends | None:
        """The ends by what makes a value, or of what it stands for at each call; None where nothing says them."""
        if given := given_at_calls(self._graph, value):
            return _around([self.ends(one) for one in given])
        return self._ends_made(value.node) if value.node is not None else None

    def _ends_made(self, node: Node) -> Ends:
        name, spec, element = node.name, OPS.get(node.name), node.result().element
        if name == names.CONSTANT:
            return _ends_of_numbers(node.constant())
        if name == names.IOTA and node.is_static:
            return 0, max(node.result().static_shape[node.integer("iota_dimension")] - 1, 0)
        if name == names.REDUCE:
            return (0, inf) if is_sum(node) and all(self.ends(v)[0] >= 0 for v in node.operands) else (-inf, inf)
        if name == names.SELECT:
            predicate, on_true, on_false = node.operands
            return _around([self.ends(on_true), self._ends_beside(predicate, on_false)])
        if name == names.MULTIPLY and node.operand(0) == node.operand(1):
            low, high = self.ends(node.operand(0))
            return (0 if low <= 0 <= high else min(low * low, high * high)), max(low * low, high * high)
        if name == names.POWER:
            exponent = source_of(node.operand(1)).constant()
            is_even = exponent is not None and bool((np.isfinite(exponent) & (exponent % 2 == 0)).all())
            return (0, inf) if is_even and element.is_float else (-inf, inf)
        if name == names.CONVERT and node.operand(0).element.is_float and not element.is_float:
            return -inf, inf  # of a NaN it is 0
        if name in RULES:
            return RULES[name]([self.ends(operand) for operand in node.operands])
        return spec.image if spec is not None and spec.image is not None and element.is_float else (-inf, inf)

    def _ends_beside(self, predicate: Value, value: Value) -> Ends:
        """The ends of a value where a predicate does not hold: that it is above a constant, and perhaps finite."""
        (low, high), node = self.ends(value), predicate.node
        if node is not None and node.name == names.AND and _limit(node.operand(1), value, "LE") == value.element.most:
            predicate = node.operand(0)
        limit = _limit(predicate, value, "GT")
        return low, high if limit is None else min(high, limit)


def _limit(predicate: Value, value: Value, direction: str) -> float | None:
    """The constant with which a value is compared so, if it is."""
    limit = compared_with(predicate, value, direction)
    return float(np.max(limit)) if limit is not None and limit.size else None


def _ends_of_type(value: Value) -> Ends:
    element = value.element if value.is_tensor else None
    return (element.least, element.most) if element is not None and element.is_integer else (-inf, inf)


def _ends_of_numbers(numbers: np.ndarray | None) -> Ends:
    if numbers is None or numbers.dtype.kind not in "iufV":
        return -inf, inf
    wide = numbers.astype(np.float64)
    wide = wide[~np.isnan(wide)]
    return (float(wide.min()), float(wide.max())) if wide.size else (-inf, inf)


def _rounded(ends: Ends, value: Value) -> Ends:
    """Ends as numbers of a float type; what is not known is infinite."""
    low, high = (end if not isnan(end) else side for end, side in zip(ends, (-inf, inf), strict=True))
    dtype = value.element.dtype
    if not value.element.is_float or dtype is None:
        return low, high
    with np.errstate(over="ignore"):
        return float(dtype.type(low)), float(dtype.type(high))


def is_sum(reduce: Node) -> bool:
    """Whether a reduction adds up one operand."""
    [body] = reduce.blocks
    return len(reduce.results) == 1 and is_one_op(body) and next(iter(body.nodes)).name == names.ADD


def _around(ends: Sequence[Ends]) -> Ends:
    """The ends of what is one of several."""
    lows, highs = zip(*ends, strict=True)
    return min(lows), max(highs)


def _of_products(ends: Sequence[Ends]) -> Ends:
    found = [a * b if a and b else 0.0 for a, b in product(*ends)]  # 0 times an infinity is NaN
    return min(found), max(found)


def _of_quotients(ends: Sequence[Ends]) -> Ends:
    return (0, inf) if min(low for low, _ in ends) >= 0 else (-inf, inf)


def _of_clamp(ends: Sequence[Ends]) -> Ends:
    low, high = (min(max(least, number), most) for least, number, most in zip(*ends, strict=True))
    return low, high


RULES: dict[str, Callable[[list[Ends]], Ends]] = {
    **dict.fromkeys((*MOVES, names.CONVERT, names.OPTIMIZATION_BARRIER), lambda ends: ends[0]),
    names.ABS: lambda ends: (max(0.0, ends[0][0], -ends[0][1]), max(map(abs, ends[0]))),
    names.NEGATE: lambda ends: (-ends[0][1], -ends[0][0]),
    names.ADD: lambda ends: (ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]),
    names.SUBTRACT: lambda ends: (ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]),
    names.MULTIPLY: _of_products,
    names.DIVIDE: _of_quotients,
    names.MAXIMUM: lambda ends: (max(ends[0][0], ends[1][0]), max(ends[0][1], ends[1][1])),
    names.MINIMUM: lambda ends: (min(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])),
    names.CLAMP: _of_clamp,
    names.CONCATENATE: _around,
}
"""The ends of what an op gives by those of its operands."""
