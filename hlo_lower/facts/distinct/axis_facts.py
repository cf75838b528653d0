"""What is known of the elements of a tensor along some positions: whether they differ, and whether they go up.

An `AxisFacts` speaks of the elements at a place whose positions along the axes vary, while all else stays as it is.
Nothing in it is a guess: `UNKNOWN` is what is left where nothing is proved.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from hlo_lower.facts.forms.linear import Linear, Position, positions
from hlo_lower.facts.forms.places import Entry, Place
from hlo_lower.facts.ranges.interval import Bounds
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node, Value

if TYPE_CHECKING:
    from hlo_lower.facts.distinct.distinctness import Distinctness


Ranges = tuple[tuple[int, int], ...]


class Monotonicity(IntEnum):
    """How elements go from one position to the next, in row-major order of the axes."""

    UNKNOWN = 0
    NON_DECREASING = 1
    INCREASING = 2


@dataclass(frozen=True, slots=True)
class AxisFacts:
    """Facts of the elements along some positions.

    Attributes:
      gap: any two elements outside of `repeats` are at least so far apart, in whole numbers; 0 says nothing.
      repeats: ranges of values, ends included, that any number of positions may hold.
      covers: the elements are 0, 1, ..., n - 1, each once, for n positions; then nothing repeats.
      order: how they go from one position to the next.
      evidence: the operations that say so.
    """

    gap: int = 0
    repeats: Ranges = ()
    covers: bool = False
    order: Monotonicity = Monotonicity.UNKNOWN
    evidence: tuple[Evidence, ...] = field(default=(), compare=False)

    @property
    def is_distinct(self) -> bool:
        """Whether any two elements differ."""
        return self.gap > 0 and not self.repeats

    def because(self, *evidence: Evidence | None) -> "AxisFacts":
        """The same with these steps as well."""
        return AxisFacts(self.gap, self.repeats, self.covers, self.order, merge((*self.evidence, *evidence)))

    def without_order(self) -> "AxisFacts":
        """The same elements in some other order."""
        return AxisFacts(self.gap, self.repeats, self.covers, Monotonicity.UNKNOWN, self.evidence)

    def monotone(self) -> "AxisFacts":
        """The facts that survive a monotone function."""
        return AxisFacts(order=min(self.order, Monotonicity.NON_DECREASING), evidence=self.evidence)


UNKNOWN = AxisFacts()
"""Nothing is known."""

ONE = AxisFacts(1 << 80, (), False, Monotonicity.INCREASING)
"""A single position."""

UNIFORM = AxisFacts(order=Monotonicity.NON_DECREASING)
"""Every position holds the same element."""


def best(a: AxisFacts, b: AxisFacts) -> AxisFacts:
    """Two facts of the same elements as one: both are true."""
    better = max(a, b, key=lambda x: (x.covers, x.gap > 0, not x.repeats, x.gap))
    order = max(a.order, b.order)
    if better.is_distinct and order is Monotonicity.NON_DECREASING:
        order = Monotonicity.INCREASING
    return AxisFacts(better.gap, better.repeats, better.covers, order, merge((*a.evidence, *b.evidence)))


def one_of(facts: Iterable[AxisFacts]) -> AxisFacts:
    """The facts that hold whichever of several tensors it is."""
    found: AxisFacts | None = None
    for fact in facts:
        if found is None:
            found = fact
            continue
        repeats = tuple(dict.fromkeys((*found.repeats, *fact.repeats)))
        covers, order = found.covers and fact.covers, min(found.order, fact.order)
        found = AxisFacts(min(found.gap, fact.gap), repeats, covers, order, merge((*found.evidence, *fact.evidence)))
    return found or UNKNOWN


def of_form(form: Linear, axes: Sequence[Position], *, is_exact: bool) -> AxisFacts | None:
    """The facts of a linear form's elements along the axes; None where it depends on them in another way.

    Digits: with the strides in ascending order, two places that differ in the one of stride c, and in none of a longer
    stride, are at least c minus the reach of the shorter ones apart. Where the sum may have wrapped around modulo 2^w,
    two elements still differ by d modulo 2^w for some gap <= d <= reach, so by at least min(gap, 2^w - reach).

    Args:
      form: the element at the place.
      axes: the positions that vary, the slowest first.
      is_exact: the sum is known not to wrap around.
    """
    varying = {axis.dim for axis in axes}
    for symbol in form.terms:
        if not isinstance(symbol, Position) and positions([Linear(0, {symbol: 1})]) & varying:
            return None
    strides = [(form.terms.get(axis, 0), axis.size) for axis in axes if axis.size > 1]
    gap, reach, is_dense = 1 << 80, 0, True
    for stride, size in sorted(((abs(c), n) for c, n in strides)):
        gap = min(gap, stride - reach)
        is_dense &= stride == reach + 1
        reach += stride * (size - 1)
    exact = is_exact or form.width == 0
    if not exact:
        gap = min(gap, (1 << form.width) - reach)
    gap = max(gap, 0)
    order = Monotonicity.INCREASING if exact else Monotonicity.UNKNOWN
    inner = 0
    for stride, size in reversed(strides):
        if stride < inner:
            order = Monotonicity.UNKNOWN
        elif stride == inner:
            order = min(order, Monotonicity.NON_DECREASING)
        inner += stride * (size - 1)
    others = any(not (isinstance(s, Position) and s.dim in varying) for s in form.terms)
    least = form.constant + sum(min(0, c * (n - 1)) for c, n in strides)
    covers = exact and is_dense and least == 0 and not others
    if not any(c for c, _ in strides) and strides:  # the same everywhere, whatever wraps around
        order = Monotonicity.NON_DECREASING
    return AxisFacts(gap, (), covers and gap > 0, order).because(form.evidence)


def reach_of(form: Linear, axes: Sequence[Position]) -> int:
    """The greatest value of a form's moving part along the axes, less its least."""
    return sum(abs(form.terms.get(axis, 0)) * (axis.size - 1) for axis in axes)


def of_bounds(lo: Bounds, hi: Bounds) -> AxisFacts:
    """The facts that bounds of single elements prove, [cases, positions], in every case.

    Sorted by their lower bounds, elements whose ranges do not meet differ, by at least the distance between them.
    """
    if lo.shape[1] <= 1:
        return ONE
    order = np.argsort(lo, axis=1, kind="stable")
    low, high = np.take_along_axis(lo, order, 1), np.take_along_axis(hi, order, 1)
    # A range may reach over several that follow it: what counts is the furthest end so far.
    gap = int((low[:, 1:] - np.maximum.accumulate(high, axis=1)[:, :-1]).min())
    step = int((lo[:, 1:] - hi[:, :-1]).min())
    # n different numbers of which the least is 0 and the greatest n - 1.
    is_known, n = not bool(np.any(lo != hi)), lo.shape[1]
    covers = gap == 1 and is_known and int(low[:, 0].min()) == 0 and int(low[:, -1].max()) == n - 1
    order = Monotonicity.INCREASING if step > 0 else Monotonicity.NON_DECREASING if step == 0 else Monotonicity.UNKNOWN
    return AxisFacts(max(gap, 0), (), covers, order)


def compose(outer: AxisFacts, inner: AxisFacts, size: int, count: int) -> AxisFacts:
    """The facts of `outer[inner[p]]`: elements of a dim of this size, read at places inside it.

    Different places give elements that outer says differ; all places, each once, give all of them; and what goes up at
    places that go up goes up.
    """
    order = Monotonicity.UNKNOWN
    if outer.order and inner.order:
        order = min(outer.order, inner.order)
    gap = outer.gap if inner.is_distinct else 0
    covers = outer.covers and inner.covers and size == count
    return AxisFacts(gap, outer.repeats if gap else (), covers, order, merge((*outer.evidence, *inner.evidence)))


def count_of(axes: Sequence[Position]) -> int:
    """How many positions the axes make."""
    return prod(axis.size for axis in axes)


Axes: TypeAlias = tuple[Position, ...]


class Entries(NamedTuple):
    """Elements of a tensor.

    Attributes:
      site: the tensor.
      place: where in it: a form for each of its dims.
      axes: the positions that vary, the slowest first; the others, and whatever else is in the place, stay.
    """

    site: Site
    place: Place
    axes: Axes

    @property
    def entry(self) -> Entry:
        """One of them."""
        return Entry(self.site, self.place)

    @property
    def varying(self) -> set[int]:
        """The numbers of the positions that vary."""
        return {axis.dim for axis in self.axes}

    def to(self, value: Value, place: Place | None = None, axes: Axes | None = None) -> "Entries":
        """Elements of another tensor of the same function; at the same place, along the same axes."""
        return Entries(self.site.to(value), self.place if place is None else place, self.axes if axes is None else axes)

    def of(self, entry: Entry) -> "Entries":
        """Elements at another entry, along the same axes."""
        return Entries(*entry, self.axes)

    def operand(self, value: Value) -> "Entries":
        """The elements of an operand of an elementwise op; a scalar has one for all."""
        return self.to(value) if value.shape else self.to(value, ())


DistinctQueries: TypeAlias = "Distinctness"

Rule: TypeAlias = Callable[[DistinctQueries, Node, Entries], AxisFacts]
"""What is known of elements of an op's result: the analysis, the node, the elements."""
