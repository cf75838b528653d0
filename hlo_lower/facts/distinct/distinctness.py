"""Whether elements of an index tensor differ from one position to the next, and whether they go up.

The walk goes from an element at a symbolic place to what holds it, as `affine` does: ops that move elements change the
place, calls are looked through with their own arguments. Where the element is a linear form, `of_form` tells; for
what makes distinct elements otherwise there is a rule each (`distinct_rules`). What no rule speaks of is unknown. The
flags of an op are claims, and are not looked at.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause
from hlo_lower.facts.distinct.axis_facts import (
    ONE,
    UNIFORM,
    UNKNOWN,
    Axes,
    AxisFacts,
    Entries,
    Rule,
    best,
    compose,
    count_of,
    of_bounds,
    of_form,
    one_of,
)
from hlo_lower.facts.distinct.distinct_rules import CHOSEN, MAPPED, REORDERED
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Linear, Position, positions
from hlo_lower.facts.forms.places import source_entry
from hlo_lower.facts.ranges.index_facts import is_tracked
from hlo_lower.facts.ranges.interval import Bounds
from hlo_lower.facts.values.budget import DISTINCTNESS, MAX_POSITIONS, Budget
from hlo_lower.facts.values.provider import Provider
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import OneOf, Same
from hlo_lower.ir.view import Node

FIRST_FRESH = 1 << 20
"""Numbers of positions that stand for none of the caller's: above every dim."""


class Distinctness(Provider[Entries, AxisFacts]):
    """Facts of elements along positions, for the integer tensors of static shape of one graph.

    Args:
      forms: gives the linear forms of elements, and what those build on the intervals.
    """

    def __init__(self, forms: AffineAnalysis) -> None:
        super().__init__(Budget.of(DISTINCTNESS, stack=forms.budget.stack))
        self.ranges = forms.ranges
        self.forms = forms
        self._counted_positions = 0
        self._fresh = FIRST_FRESH

    def fresh(self, size: int) -> Position:
        """A position of its own, of this size."""
        self._fresh += 1
        return Position(self._fresh, size)

    def moves_with(self, entries: Entries) -> Axes:
        """The axes that an element depends on, as far as is known; on no other one does it depend."""
        dims = positions([self.forms.of(entries.entry)])
        return tuple(axis for axis in entries.axes if axis.dim in dims)

    def hull(self, site: Site) -> tuple[int, int]:
        """The least and the greatest value of any element of a tensor."""
        return self.ranges.of(site).hull()

    def whole_dim(self, entries: Entries, dim: int) -> tuple[AxisFacts, Position] | None:
        """The facts of a tensor along one of its dims, at a place that moves along that one alone."""
        place, value = entries.place, entries.site.value
        if positions([c for d, c in enumerate(place) if d != dim]) & entries.varying:
            return None
        row = self.fresh(value.static_shape[dim])
        at = (*place[:dim], Linear(0, {row: 1}) if row.size > 1 else Linear(0), *place[dim + 1 :])
        return self.of(entries.to(value, at, (row,))), row

    def at_coordinate(self, whole: AxisFacts, coordinate: Linear, size: int, axes: Axes) -> AxisFacts:
        """The facts of the elements at a coordinate of a dim of this size; `whole` are the facts of the whole dim."""
        at = of_form(coordinate, axes, is_exact=True)
        return UNKNOWN if at is None else compose(whole, at, size, count_of(axes))

    # --- the walk ---

    def _unknown(self, key: Entries, why: Cause) -> AxisFacts:
        return UNKNOWN

    def _elsewhere(self, key: Entries) -> AxisFacts | None:
        value = key.site.value
        if all(axis.size == 1 for axis in key.axes):
            return ONE
        is_known = is_tracked(value) and 0 not in value.static_shape and count_of(key.axes) > 0
        return None if is_known else UNKNOWN

    def _compute(self, key: Entries) -> AxisFacts:
        key = key._replace(axes=tuple(axis for axis in key.axes if axis.size != 1))
        counted = self._from_bounds(key)
        form = self.forms.of(key.entry)
        if not positions([form]) & key.varying:
            return best(UNIFORM, counted)
        told = of_form(form, key.axes, is_exact=self.forms.is_exact(form, key.site.value))
        if told is not None and told.gap and (told.order or told.covers):
            return best(told, counted)
        return best(best(counted, told or UNKNOWN), self._from_source(key))

    def _from_bounds(self, entries: Entries) -> AxisFacts:
        """The facts that the bounds of single elements prove, for constants and other tensors with such bounds.

        It evaluates the place at every position, and gives up where a place has other symbols than positions.
        """
        site, place, axes = entries
        told = self.ranges.of(site)
        if told.lo.size == 1 and told.hi.size == 1:
            return UNKNOWN
        found = {s.dim: s for c in place for s in c.terms if isinstance(s, Position)}
        if any(not isinstance(s, Position) or (s.size < 1) for c in place for s in c.terms):
            return UNKNOWN
        order = [s for dim, s in found.items() if dim not in entries.varying] + list(axes)
        total = prod(s.size for s in order)
        self._counted_positions += total
        if total > MAX_POSITIONS or self._counted_positions > 4 * MAX_POSITIONS:
            return UNKNOWN
        grid: dict[Position, Bounds] = {
            s: np.arange(s.size, dtype=np.int64).reshape([-1 if t is s else 1 for t in order]) for s in order
        }
        at: list[Bounds] = []
        for coordinate, size in zip(place, told.shape, strict=True):
            number: Bounds = np.full([1] * len(order), coordinate.constant, np.int64)
            for symbol, stride in coordinate.terms.items():
                if isinstance(symbol, Position):
                    number = number + stride * grid[symbol]
            if number.min() < 0 or number.max() >= size:
                return UNKNOWN
            at.append(number)

        def at_places(bounds: Bounds) -> Bounds:
            index = tuple(n if size > 1 else np.zeros_like(n) for n, size in zip(at, bounds.shape, strict=True))
            return np.broadcast_to(bounds[index], [s.size for s in order]).reshape(-1, count_of(axes))

        evidence = () if told.evidence is None else (told.evidence,)
        return of_bounds(at_places(told.lo), at_places(told.hi)).because(*evidence)

    def _from_source(self, entries: Entries) -> AxisFacts:
        match self.ranges.sources.of(entries.site):
            case Same(site):
                return self.of(entries._replace(site=site))
            case OneOf(sites):
                return one_of(self.of(entries._replace(site=site)) for site in sites)
            case Node() as node:
                source, rule = source_entry(node, entries.entry), RULES.get(node.name)
                if source is not None:
                    return self.of(entries.of(source))
                return UNKNOWN if rule is None else rule(self, node, entries)
            case _:
                return UNKNOWN


RULES: Mapping[str, Rule] = {**REORDERED, **MAPPED, **CHOSEN}
