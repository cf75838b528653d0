"""Rules for what choices and remainders leave of distinct elements: normalised indices, drops, ring buffers.

Each function says in its docstring why what it returns is true.
"""

from collections.abc import Mapping

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.distinct.axis_facts import (
    UNKNOWN,
    AxisFacts,
    DistinctQueries,
    Entries,
    Monotonicity,
    Ranges,
    Rule,
    best,
    count_of,
    of_form,
    reach_of,
)
from hlo_lower.facts.forms.congruences import congruence
from hlo_lower.facts.forms.linear import Normalized
from hlo_lower.facts.ranges.transfer.booleans import MIRRORED, comparison_direction
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node
from hlo_lower.ops.names import COMPARE, REMAINDER, SELECT


def _select(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A choice. Four are looked into:

    - one whose predicate is known, so that it is one of its branches;
    - `select(x < 0, x + D, x)` of a permutation, which is never negative, so it is x;
    - the same of an even run of positions with reach r < D: two elements differ by d, with gap <= d <= r, modulo 2^w
      before and, once D is added to one of them, by d, d - D or d + D, and none of those is 0 modulo 2^w if D - r and
      2^w - r - D are positive;
    - a drop: `select(mask, x, c)`, whose elements are x's or lie in the range of c, which may repeat. It is for the
      scatter to show that what lies there is written nowhere.
    """
    predicate, on_true, on_false = map(entries.operand, node.operands)
    low, high = queries.hull(predicate.site)
    if low == high:
        return queries.of(on_true if low else on_false)
    kept = _kept_of_negative(queries, predicate.site, on_true.site, on_false.site)
    if kept is not None:
        found = queries.of(entries.to(kept.value))
        if found.covers:
            return found
    modular = best(_normalized(queries, entries), _congruent(queries, entries))
    if modular.gap:
        return modular
    known = UNKNOWN
    for x, c in ((on_true, on_false), (on_false, on_true)):
        low, high = queries.hull(c.site)
        if (low, high) == type_range(c.site.value.element_type):
            continue
        found = queries.of(x)
        if found.gap:
            step = Evidence.at(node, Code.DISTINCT_OR_WITHIN(low, high))
            repeats = tuple(dict.fromkeys((*found.repeats, (low, high))))
            dropped = AxisFacts(found.gap, repeats, evidence=(*found.evidence, step))
            known = dropped if not known.gap or _width(repeats) < _width(known.repeats) else known
    return known


def _kept_of_negative(queries: DistinctQueries, predicate: Site, on_true: Site, on_false: Site) -> Site | None:
    """For a choice by `x < 0` or `x >= 0` of which x is the branch for x >= 0: x."""
    node = predicate.node
    if node is None or node.name != COMPARE or type_range(node.operand(0).element_type) is None:
        return None
    direction = comparison_direction(node)
    x, bound = map(predicate.to, node.operands)
    if queries.hull(x) == (0, 0):
        x, bound, direction = bound, x, MIRRORED.get(direction, direction)
    kept = {"LT": on_false, "GE": on_true}.get(direction)
    return x if queries.hull(bound) == (0, 0) and kept == x else None


def _normalized(queries: DistinctQueries, entries: Entries) -> AxisFacts:
    """A normalised even run: see `_select`."""
    form, element = queries.forms.of(entries.entry), entries.site.value.element
    symbol = next(iter(form.terms), None)
    if not isinstance(symbol, Normalized) or form.constant or form.moved or list(form.terms.values()) != [1]:
        return UNKNOWN
    if form.width < symbol.width or element.is_unsigned or symbol.inner.width not in (0, symbol.width):
        return UNKNOWN
    known = of_form(symbol.inner, entries.axes, is_exact=False)
    if known is None:
        return UNKNOWN
    reach = reach_of(symbol.inner, entries.axes)
    gap = min(known.gap, symbol.offset - reach, (1 << symbol.width) - reach - symbol.offset)
    return AxisFacts(max(gap, 0), evidence=known.evidence) if gap > 0 else UNKNOWN


def _remainder(queries: DistinctQueries, node: Node, entries: Entries) -> AxisFacts:
    """A remainder of what is less than the divisor is that itself; of an even run see `_congruent`."""
    x, d = map(entries.to, node.operands)
    low, high = queries.hull(x.site)
    if low >= 0 and high < queries.hull(d.site)[0]:
        return queries.of(x)
    return _congruent(queries, entries)


def _congruent(queries: DistinctQueries, entries: Entries) -> AxisFacts:
    """What is congruent modulo m to an exact even run of reach r < m: two elements differ by d modulo m, with
    gap <= d <= r, so by at least min(gap, m - r). m of them that lie in [0, m - 1] are all of those."""
    found, axes = congruence(queries, entries.entry), entries.axes
    if found is None:
        return UNKNOWN
    known = of_form(found.form, axes, is_exact=True)
    gap = 0 if known is None else min(known.gap, found.modulus - reach_of(found.form, axes))
    if known is None or gap <= 0:
        return UNKNOWN
    low, high = queries.hull(entries.site)
    covers = count_of(axes) == found.modulus and low >= 0 and high < found.modulus
    return AxisFacts(gap, (), covers, Monotonicity.UNKNOWN, known.evidence)


def _width(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


CHOSEN: Mapping[str, Rule] = {SELECT: _select, REMAINDER: _remainder}
