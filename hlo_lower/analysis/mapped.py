"""Rules for what arithmetic leaves of distinct or sorted elements.

Each function says in its docstring why what it returns is true. Sums and products are exact where the bounds of the
operands show that nothing leaves the type; where it may, only what holds modulo 2^width is kept.
"""

from collections.abc import Mapping
from dataclasses import replace

from hlo_lower.analysis.along import UNKNOWN, Along, Order, best, count_of
from hlo_lower.analysis.asked import Asked, Entries, Rule
from hlo_lower.analysis.evidence import merge
from hlo_lower.analysis.interval import type_range
from hlo_lower.graph import Node

Hull = tuple[int, int]


def _convert(asked: Asked, node: Node, entries: Entries) -> Along:
    """A conversion to a type that holds all of the operand's values changes none of them."""
    operand, element_type = node.operand(0), node.result().element_type
    whole = type_range(element_type)
    if type_range(operand.element_type) is None or whole is None:
        return UNKNOWN
    found = asked.of(entries.to(operand))
    low, high = asked.hull(entries.site.to(operand))
    is_held = (whole[0] <= low and high <= whole[1]) or (found.covers and count_of(entries.axes) - 1 <= whole[1])
    return found if is_held and element_type != "i1" else UNKNOWN


def _add(asked: Asked, node: Node, entries: Entries) -> Along:
    """`x + c` where c stays along the axes: the distances stay, and so does the order.

    Where the sum may wrap around it is still one-to-one modulo 2^width, so elements that differ still differ, by 1.
    Where both operands move they may be digits: see `_digits`.
    """
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        if asked.moves_with(entries.operand(c)):
            continue
        found, added, whole = asked.of(entries.to(x)), asked.hull(entries.site.to(c)), _type(node)
        low, high = _hull(asked, entries.to(x), found)
        if low + added[0] < whole[0] or high + added[1] > whole[1]:
            return Along(1, evidence=found.evidence) if found.is_distinct else UNKNOWN
        repeats = tuple((a + added[0], b + added[1]) for a, b in found.repeats)
        covers = found.covers and added == (0, 0)
        return Along(found.gap, repeats, covers, found.order, found.evidence)
    x, y = map(entries.to, node.operands)
    return best(_digits(asked, x, y, _type(node)), _digits(asked, y, x, _type(node)))


def _digits(asked: Asked, x: Entries, y: Entries, whole: Hull) -> Along:
    """`x + y` where x moves along some axes alone, in steps that y never reaches across: two positions that differ in
    those are at least (x's gap - y's reach) apart; two that agree in them differ as y does along the others."""
    axes, slow = x.axes, asked.moves_with(x)
    fast = tuple(axis for axis in axes if axis not in slow)
    if not slow or not fast:
        return UNKNOWN
    x, y = x._replace(axes=slow), y._replace(axes=fast)
    first, second = asked.of(x), asked.of(y)
    (x_low, x_high), (low, high) = _hull(asked, x, first), _hull(asked, y, second)
    if not (first.is_distinct and second.is_distinct) or x_low + low < whole[0] or x_high + high > whole[1]:
        return UNKNOWN
    gap = min(first.gap - (high - low), second.gap)
    if gap <= 0:
        return UNKNOWN
    is_sorted = axes == (*slow, *fast) and first.order is Order.INCREASING and second.order is Order.INCREASING
    order = Order.INCREASING if is_sorted else Order.UNKNOWN
    return Along(gap, (), False, order, merge((*first.evidence, *second.evidence)))


def _subtract(asked: Asked, node: Node, entries: Entries) -> Along:
    """`x - c` is a sum; `c - x` mirrors: distances stay, the order turns round, and n - 1 - perm is a permutation."""
    if node.result().element_type == "i1":
        return UNKNOWN
    a, b = map(entries.operand, node.operands)
    whole = _type(node)
    if not asked.moves_with(b):
        found, (low, high) = asked.of(a), asked.hull(b.site)
        least, most = _hull(asked, a, found)
        if least - high < whole[0] or most - low > whole[1]:
            return Along(1, evidence=found.evidence) if found.is_distinct else UNKNOWN
        repeats = tuple((x - high, y - low) for x, y in found.repeats)
        return Along(found.gap, repeats, found.covers and (low, high) == (0, 0), found.order, found.evidence)
    if asked.moves_with(a):
        return UNKNOWN
    found, (low, high) = asked.of(b), asked.hull(a.site)
    least, most = _hull(asked, b, found)
    if low - most < whole[0] or high - least > whole[1]:
        return Along(1, evidence=found.evidence) if found.is_distinct else UNKNOWN
    repeats = tuple((low - y, high - x) for x, y in found.repeats)
    covers = found.covers and low == high == count_of(entries.axes) - 1
    return Along(found.gap, repeats, covers, Order.UNKNOWN, found.evidence)


def _multiply(asked: Asked, node: Node, entries: Entries) -> Along:
    """A product with a number that is known: the distances grow by it, where nothing leaves the type."""
    if node.result().element_type == "i1":
        return UNKNOWN
    for x, c in (node.operands, node.operands[::-1]):
        low, high = asked.hull(entries.site.to(c))
        if low != high or low == 0:
            continue
        found, whole = asked.of(entries.to(x)), _type(node)
        ends = [low * end for end in _hull(asked, entries.to(x), found)]
        if min(ends) < whole[0] or max(ends) > whole[1]:
            return UNKNOWN
        repeats = tuple((min(low * a, low * b), max(low * a, low * b)) for a, b in found.repeats)
        order = found.order if low > 0 else Order.UNKNOWN
        return Along(found.gap * abs(low), repeats, found.covers and low == 1, order, found.evidence)
    return UNKNOWN


def _divide(asked: Asked, node: Node, entries: Entries) -> Along:
    """Division by a positive number that stays never goes down where the dividend goes up."""
    x, d = map(entries.to, node.operands)
    if asked.moves_with(d) or asked.hull(d.site)[0] < 1:
        return UNKNOWN
    return asked.of(x).monotone()


def _clipped(asked: Asked, node: Node, entries: Entries) -> Along:
    """clamp, minimum and maximum: an element stays what it is or becomes one of the bounds.

    So distinct elements are distinct except for the values of the bounds, which may repeat; a bound that no element
    goes beyond changes nothing. Between bounds that stay, the result never goes down where the operand goes up.
    """
    name = node.name.removeprefix("stablehlo.")
    candidates: tuple[tuple[Entries, Entries | None, Entries | None], ...]
    if name == "clamp":
        low, x, high = map(entries.operand, node.operands)
        candidates = ((x, low, high),)
    else:
        a, b = map(entries.operand, node.operands)
        candidates = ((a, None, b), (b, None, a)) if name == "minimum" else ((a, b, None), (b, a, None))
    found = UNKNOWN
    for x, low, high in candidates:
        bounds = [bound for bound in (low, high) if bound is not None]
        inner = asked.of(x)
        if inner == UNKNOWN:
            continue
        least, most = _hull(asked, x, inner)
        changed: list[Hull] = []
        if low is not None and least < asked.hull(low.site)[1]:
            changed.append(asked.hull(low.site))
        if high is not None and most > asked.hull(high.site)[0]:
            changed.append(asked.hull(high.site))
        if low is not None and high is not None and asked.hull(low.site)[1] > asked.hull(high.site)[0]:
            changed.append(asked.hull(high.site))  # a low bound above the high one becomes the high one
        if not changed:
            found = best(found, inner)
            continue
        stay = not any(map(asked.moves_with, bounds))
        order = min(inner.order, Order.NON_DECREASING) if stay else Order.UNKNOWN
        repeats = tuple(dict.fromkeys((*inner.repeats, *changed)))
        found = best(found, Along(inner.gap, repeats if inner.gap else (), False, order, inner.evidence))
    return found


def _negate(asked: Asked, node: Node, entries: Entries) -> Along:
    """-x: distances stay. Only the least number of the type has no opposite, and it stays what it is."""
    x = entries.to(node.operand(0))
    found = asked.of(x)
    if asked.hull(x.site)[0] <= _type(node)[0] or x.site.value.element_type.startswith("u"):
        return Along(1, evidence=found.evidence) if found.is_distinct else UNKNOWN
    repeats = tuple((-b, -a) for a, b in found.repeats)
    return replace(found, repeats=repeats, covers=False, order=Order.UNKNOWN)


def _type(node: Node) -> Hull:
    return type_range(node.result().element_type) or (0, 0)


def _hull(asked: Asked, entries: Entries, found: Along) -> Hull:
    """The hull of an operand; n elements that are 0 to n - 1 lie in that range whatever else is known."""
    return (0, count_of(entries.axes) - 1) if found.covers else asked.hull(entries.site)


MAPPED: Mapping[str, Rule] = {
    "convert": _convert,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "negate": _negate,
    "clamp": _clipped,
    "minimum": _clipped,
    "maximum": _clipped,
}
