"""Rules for what arithmetic leaves of distinct or sorted elements.

Each function says in its docstring why what it returns is true. Sums and products are exact where the bounds of the
operands show that nothing leaves the type; where it may, only what holds modulo 2^width is kept.
"""

from collections.abc import Mapping
from dataclasses import replace

from hlo_lower.base.element_types import type_range
from hlo_lower.facts.distinct.axis_facts import (
    UNKNOWN,
    AxisFacts,
    DistinctQueries,
    Entries,
    Monotonicity,
    Rule,
    best,
    count_of,
)
from hlo_lower.facts.values.evidence import merge
from hlo_lower.ir.view import Node
from hlo_lower.ops import names

Hull = tuple[int, int]


def _convert(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A conversion to a type that holds all of the operand's values changes none of them."""
    operand, element_type = node.operand(0), node.result().element_type
    whole = type_range(element_type)
    if type_range(operand.element_type) is None or whole is None:
        return UNKNOWN
    found = queries.of(entries.to(operand))
    low, high = queries.hull(entries.site.to(operand))
    is_held = (whole[0] <= low and high <= whole[1]) or (found.covers and count_of(entries.axes) - 1 <= whole[1])
    return found if is_held and element_type != "i1" else UNKNOWN


def _add(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`x + c` where c stays along the axes: the distances stay, and so does the order.

    Where the sum may wrap around it is still one-to-one modulo 2^width, so elements that differ still differ, by 1.
    Where both operands move they may be digits: see `_digits`.
    """
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        if not queries.moves_with(entries.operand(c)):
            return _moved(queries, entries.to(x), queries.hull(entries.site.to(c)), _type(node))
    x, y = map(entries.to, node.operands)
    return best(_digits(queries, x, y, _type(node)), _digits(queries, y, x, _type(node)))


def _moved(queries: DistinctQueries, x: Entries, added: Hull, whole: Hull) -> AxisFacts:
    """`x + c`, c a number in a hull that stays along the axes; see `_add`."""
    found = queries.of(x)
    low, high = _hull(queries, x, found)
    if low + added[0] < whole[0] or high + added[1] > whole[1]:
        return _modulo(found)
    repeats = tuple((a + added[0], b + added[1]) for a, b in found.repeats)
    return replace(found, repeats=repeats, covers=found.covers and added == (0, 0))


def _modulo(found: AxisFacts) -> AxisFacts:
    """What is left of elements that are mapped one-to-one modulo 2^width: those that differ still do, by 1."""
    return AxisFacts(1, evidence=found.evidence) if found.is_distinct else UNKNOWN


def _digits(queries: DistinctQueries, x: Entries, y: Entries, whole: Hull) -> AxisFacts:
    """`x + y` where x moves along some axes alone, in steps that y never reaches across: two positions that differ in
    those are at least (x's gap - y's reach) apart; two that agree in them differ as y does along the others."""
    axes, slow = x.axes, queries.moves_with(x)
    fast = tuple(axis for axis in axes if axis not in slow)
    if not slow or not fast:
        return UNKNOWN
    x, y = x._replace(axes=slow), y._replace(axes=fast)
    first, second = queries.of(x), queries.of(y)
    (x_low, x_high), (low, high) = _hull(queries, x, first), _hull(queries, y, second)
    if not (first.is_distinct and second.is_distinct) or x_low + low < whole[0] or x_high + high > whole[1]:
        return UNKNOWN
    gap = min(first.gap - (high - low), second.gap)
    if gap <= 0:
        return UNKNOWN
    is_sorted = (
        axes == (*slow, *fast) and first.order is Monotonicity.INCREASING and second.order is Monotonicity.INCREASING
    )
    order = Monotonicity.INCREASING if is_sorted else Monotonicity.UNKNOWN
    return AxisFacts(gap, (), False, order, merge((*first.evidence, *second.evidence)))


def _subtract(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """`x - c` is a sum; `c - x` mirrors: distances stay, the order turns round, and n - 1 - perm is a permutation."""
    if node.result().element_type == "i1":
        return UNKNOWN
    a, b = map(entries.operand, node.operands)
    whole = _type(node)
    if not queries.moves_with(b):
        low, high = queries.hull(b.site)
        return _moved(queries, a, (-high, -low), whole)
    if queries.moves_with(a):
        return UNKNOWN
    found, (low, high) = queries.of(b), queries.hull(a.site)
    least, most = _hull(queries, b, found)
    if low - most < whole[0] or high - least > whole[1]:
        return _modulo(found)
    repeats = tuple((low - y, high - x) for x, y in found.repeats)
    covers = found.covers and low == high == count_of(entries.axes) - 1
    return AxisFacts(found.gap, repeats, covers, Monotonicity.UNKNOWN, found.evidence)


def _multiply(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A product with a number that is known: the distances grow by it, where nothing leaves the type."""
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        low, high = queries.hull(entries.site.to(c))
        if low != high or low == 0:
            continue
        found, whole = queries.of(entries.to(x)), _type(node)
        ends = [low * end for end in _hull(queries, entries.to(x), found)]
        if min(ends) < whole[0] or max(ends) > whole[1]:
            return UNKNOWN
        repeats = tuple((min(low * a, low * b), max(low * a, low * b)) for a, b in found.repeats)
        order = found.order if low > 0 else Monotonicity.UNKNOWN
        return AxisFacts(found.gap * abs(low), repeats, found.covers and low == 1, order, found.evidence)
    return UNKNOWN


def _divide(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """Division by a positive number that stays never goes down where the dividend goes up."""
    x, d = map(entries.to, node.operands)
    if queries.moves_with(d) or queries.hull(d.site)[0] < 1:
        return UNKNOWN
    return queries.of(x).monotone()


def _clipped(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """clamp, minimum and maximum: an element stays what it is or becomes one of the bounds.

    So distinct elements are distinct except for the values of the bounds, which may repeat; a bound that no element
    goes beyond changes nothing. Between bounds that stay, the result never goes down where the operand goes up.
    """
    candidates: tuple[tuple[Entries, Entries | None, Entries | None], ...]
    if node.name == names.CLAMP:
        low, x, high = map(entries.operand, node.operands)
        candidates = ((x, low, high),)
    else:
        a, b = map(entries.operand, node.operands)
        candidates = ((a, None, b), (b, None, a)) if node.name == names.MINIMUM else ((a, b, None), (b, a, None))
    found = UNKNOWN
    for x, low, high in candidates:
        bounds = [bound for bound in (low, high) if bound is not None]
        inner = queries.of(x)
        if inner == UNKNOWN:
            continue
        least, most = _hull(queries, x, inner)
        changed: list[Hull] = []
        if low is not None and least < queries.hull(low.site)[1]:
            changed.append(queries.hull(low.site))
        if high is not None and most > queries.hull(high.site)[0]:
            changed.append(queries.hull(high.site))
        if low is not None and high is not None and queries.hull(low.site)[1] > queries.hull(high.site)[0]:
            changed.append(queries.hull(high.site))  # a low bound above the high one becomes the high one
        if not changed:
            found = best(found, inner)
            continue
        stay = not any(map(queries.moves_with, bounds))
        order = min(inner.order, Monotonicity.NON_DECREASING) if stay else Monotonicity.UNKNOWN
        repeats = tuple(dict.fromkeys((*inner.repeats, *changed)))
        found = best(found, AxisFacts(inner.gap, repeats if inner.gap else (), False, order, inner.evidence))
    return found


def _negate(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """-x: distances stay. Only the least number of the type has no opposite, and it stays what it is."""
    x = entries.to(node.operand(0))
    found = queries.of(x)
    if queries.hull(x.site)[0] <= _type(node)[0] or x.site.value.element.is_unsigned:
        return _modulo(found)
    repeats = tuple((-b, -a) for a, b in found.repeats)
    return replace(found, repeats=repeats, covers=False, order=Monotonicity.UNKNOWN)


def _type(node: Node) -> Hull:
    return type_range(node.result().element_type) or (0, 0)


def _hull(queries: DistinctQueries, entries: Entries, found: AxisFacts) -> Hull:
    """The hull of an operand; n elements that are 0 to n - 1 lie in that range whatever else is known."""
    return (0, count_of(entries.axes) - 1) if found.covers else queries.hull(entries.site)


MAPPED: Mapping[str, Rule] = {
    names.CONVERT: _convert,
    names.ADD: _add,
    names.SUBTRACT: _subtract,
    names.MULTIPLY: _multiply,
    names.DIVIDE: _divide,
    names.NEGATE: _negate,
    names.CLAMP: _clipped,
    names.MINIMUM: _clipped,
    names.MAXIMUM: _clipped,
}
