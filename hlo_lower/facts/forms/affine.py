"""Affine index facts: walk from an element of an index tensor to what it is made of, as a linear form.

The walk asks what the element at a symbolic place is. Ops that move elements (broadcast, reshape, transpose, slice,
concatenate, reverse) change the place, sums change the form, and whatever cannot be looked into becomes a symbol. A
symbol that does not depend on a position is a base: the same runtime number for every row of a run. So `base + iota`
is recognised wherever the base comes from, and an unknown op in the middle costs only what it touches.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.forms.linear import Element, Linear, Normalized, Position, Start, Symbol, origin, positions
from hlo_lower.facts.forms.places import Entry, Place, source_entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis, is_tracked
from hlo_lower.facts.ranges.interval import Bounds, wrapped_number
from hlo_lower.facts.ranges.transfer import ELEMENTWISE, comparison_direction
from hlo_lower.facts.values.budget import FORMS, Budget
from hlo_lower.facts.values.evidence import Evidence, merge, plain_name, source_of
from hlo_lower.facts.values.provider import Provider
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried, OneOf, Same
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops import names

MAX_TERMS = 64
"""Most symbols of a form; what is the sum of more is a symbol itself."""

MAX_ASSUMED = 3
"""Most values of loops that are looked into one within the other; another one is a symbol."""


class _Growth(NamedTuple):
    """What a loop's body adds to an element of an argument that it carries: it is kept beside the forms of entries."""

    argument: Entry


class AffineAnalysis(Provider[Entry, Linear]):
    """Linear forms of the elements of integer tensors of static shape of one graph.

    Args:
      ranges: gives the intervals of what is not looked into.
    """

    settles_circles = True

    def __init__(self, ranges: IndexAnalysis) -> None:
        super().__init__(Budget.of(FORMS, stack=ranges.budget.stack))
        self.ranges = ranges
        self._assumed: list[Value] = []
        self._inner: dict[Linear, Linear] = {}

    def counted_dim(self, site: Site) -> int | None:
        """The dim along which each element of a tensor of integers is its own position, as in an iota; None without."""
        shape, limits = site.value.static_shape, type_range(site.value.element_type)
        if limits is None:
            return None
        found = self.of(Entry(site, tuple(Linear(0, {Position(d, size): 1}) for d, size in enumerate(shape))))
        dims = [d for d in range(len(shape)) if dict(found.terms) == {Position(d): 1}]
        if not dims or found.constant or limits[1] < shape[dims[0]] - 1:
            return None
        return dims[0] if not found.width or shape[dims[0]] <= 1 << (found.width - 1) else None

    def _compute(self, key: Entry) -> Linear:
        why = None
        match self.ranges.sources.of(key.site):
            case Same(site):
                found = self.of(key.of(site))
            case OneOf(sites):
                found = self._common_form(key, sites)
            case Carried() as origin:
                found = self._loop_value(key, origin)
            case Node() as node:
                found = self._op_result(node, key)
                if found is None and node.name in ELEMENTWISE:
                    key = self._canonical_entry(node, key)
            case _:
                found = None
        if found is not None and len(found.terms) > MAX_TERMS:
            found, why = None, Code.TOO_MANY_TERMS(MAX_TERMS)
        return found or self._unknown(key, why)

    def _canonical_entry(self, node: Node, entry: Entry) -> Entry:
        """The entry at position 0 of the dims along which the operands of an elementwise op are constant."""
        if not all(is_tracked(operand) for operand in node.operands):
            return entry
        moving = positions(self.of(_operand(entry, operand)) for operand in node.operands)
        return Entry(entry.site, tuple(origin(c) if not positions([c]) & moving else c for c in entry.place))

    def _unknown(self, key: Entry, why: Cause | None) -> Linear:
        """The element as a symbol, or its number where its range holds only one."""
        value, node = key.site.value, key.site.node
        if is_tracked(value):
            interval = self.ranges.of(key.site)
            low, high = interval.hull()
            if low == high:
                return Linear(low, {}, value.element.integer_bits, evidence=interval.evidence)
        if why is None:
            why = source_of(self.ranges.graph, value) if node is None else Code.RESULT_OF(plain_name(node.name))
        source = None if node is None else Evidence.at(node, why)
        return Linear(0, {Element(key.site, key.place, why, source): 1}, value.element.integer_bits, evidence=source)

    # --- what an operation gives ---

    def _op_result(self, node: Node, entry: Entry) -> Linear | None:
        source = source_entry(node, entry)
        if source is not None:
            return self.of(source)
        match node.name:
            case names.CONSTANT:
                return of_constant(node, entry.place)
            case names.IOTA:
                value, dim = entry.site.value, node.integer("iota_dimension")
                step = Evidence.at(node, Code.IOTA(value.static_shape[dim] - 1))
                return entry.place[dim].in_width(value.element.integer_bits).because(step)
            case names.ADD | names.SUBTRACT:
                return self._sum(node, entry, 1 if node.name == names.ADD else -1)
            case names.NEGATE:
                inner = self.of(entry.to(node.operand(0)))
                return inner.times(-1) if inner.width in (0, entry.site.value.element.integer_bits) else None
            case names.MULTIPLY:
                return self._product(node, entry)
            case names.CONVERT:
                return self._convert(node, entry)
            case names.SELECT:
                return self._select(node, entry)
            case names.CLAMP | names.MINIMUM | names.MAXIMUM:
                kept = self._idle_clamp_operand(node, entry.site)
                return None if kept is None else self.of(entry.to(kept))
            case _:
                return None

    def _sum(self, node: Node, entry: Entry, sign: int) -> Linear | None:
        a, b = map(self.of, map(entry.to, node.operands))
        width = node.result().element.integer_bits
        if width <= 1:
            return None
        narrow = [f for f in (a, b) if f.terms and 0 < f.width < width]
        if not narrow:
            return a.plus(b, sign).in_width(width)
        # What wrapped around in a narrower type stays in that type's range; only constants may be added to it.
        if a in narrow and b.is_constant:
            return a.plus_in_wider_type(b.times(sign))
        if b in narrow and a.is_constant and sign == 1:
            return b.plus_in_wider_type(a)
        return None

    def _product(self, node: Node, entry: Entry) -> Linear | None:
        a, b = map(self.of, map(entry.to, node.operands))
        width = node.result().element.integer_bits
        factor, form = (a, b) if a.is_constant else (b, a)
        if not factor.is_constant or width <= 1 or (form.terms and 0 < form.width < width):
            return None
        return form.times(factor.constant).in_width(width)

    def _convert(self, node: Node, entry: Entry) -> Linear | None:
        """To fewer bits the form holds modulo those; to more it holds as long as nothing has wrapped around.

        An element that is not looked into holds a number of its own type, and so may have wrapped around as well where
        the operand's type is another: i32 to i8 to i32 is the identity only for what fits in i8.
        """
        operand, result = node.operand(0), node.result()
        before, after = type_range(operand.element_type), type_range(result.element_type)
        if before is None or after is None or result.element_type == "i1":
            return None
        inner = self.of(entry.to(operand))
        old, new = operand.element.integer_bits, result.element.integer_bits
        is_wider = after[0] <= before[0] and before[1] <= after[1]
        if inner.is_constant:
            constant = wrapped_number(inner.constant, *before)
            return Linear(wrapped_number(constant, *after), {}, new, evidence=inner.evidence)
        if not is_wider:
            return inner.in_width(new) if new <= old else None
        if self.is_exact(inner, operand):
            return Linear(inner.constant, inner.terms, new, 0, inner.evidence)
        # What was added after an earlier conversion must not have wrapped around in its turn.
        stays = inner.width == old or (inner.width and (1 << (inner.width - 1)) + inner.drift <= 1 << (old - 1))
        return inner if before[0] < 0 and stays else None

    def _select(self, node: Node, entry: Entry) -> Linear | None:
        predicate, on_true, on_false = node.operands
        condition = self.ranges.of(entry.site.to(predicate))
        if bool(np.all(condition.lo == 1)):
            return self.of(entry.to(on_true))
        if bool(np.all(condition.hi == 0)):
            return self.of(entry.to(on_false))
        a, b = (self.of(entry.to(v)) for v in (on_true, on_false))
        if a == b:
            return a
        if predicate.shape != on_true.shape or not positions([self.of(entry.to(predicate))]):
            return self._common_form(entry, [entry.site.to(v) for v in (on_true, on_false)])
        compared = self._compared_with_zero(entry.to(predicate), on_true.element_type)
        if compared is None:
            return None
        subject, is_negative_true = compared
        raised, kept = (a, b) if is_negative_true else (b, a)
        width, whole = node.result().element.integer_bits, type_range(node.result().element_type)
        offset = raised.above(kept, width)
        if offset is None or whole is None or whole[0] == 0 or subject != kept:
            return None
        offset = wrapped_number(offset, *whole)
        if offset <= 0:
            return None
        step = Evidence.at(node, Code.MOVED_UP(offset), merge((kept.evidence,)))
        # Its value is a number of the type, so whatever wrapped around inside is settled.
        inner = self._inner.setdefault(kept, kept)  # one object, so that equal forms are compared by identity
        return Linear(0, {Normalized(inner, offset, width): 1}, width, evidence=step)

    def _compared_with_zero(self, predicate: Entry, element_type: str) -> tuple[Linear, bool] | None:
        """For `x < 0` or `x >= 0` of elements of a type: x, and whether the predicate is true where x is negative."""
        node = predicate.site.node
        if node is None or node.name != names.COMPARE or node.operand(0).element_type != element_type:
            return None
        direction = comparison_direction(node)
        if direction not in ("LT", "GE"):
            return None
        x, bound = (self.of(predicate.to(v)) for v in node.operands)
        if not bound.is_constant or bound.constant != 0:
            return None
        return x, direction == "LT"

    def _idle_clamp_operand(self, node: Node, site: Site) -> Value | None:
        """The operand of a clamp, minimum or maximum that changes nothing; an index that may be cut is no run."""

        def hull(value: Value) -> tuple[int, int]:
            return self.ranges.of(site.to(value)).hull()

        if node.name == names.CLAMP:
            low, x, high = node.operands
            return x if hull(low)[1] <= hull(x)[0] and hull(x)[1] <= hull(high)[0] else None
        a, b = node.operands
        for x, bound in ((a, b), (b, a)):
            if (hull(x)[1] <= hull(bound)[0]) if node.name == names.MINIMUM else (hull(x)[0] >= hull(bound)[1]):
                return x
        return None

    # --- through functions, branches and loops ---

    def _common_form(self, entry: Entry, sites: Sequence[Site]) -> Linear | None:
        """The form of a value that is one of several (trap 40): what depends on the position has to be the same in all
        of them, and be nothing but the position; the rest is a base of its own, the value's element at position 0.

        Where a narrower type may have wrapped around, all have to have had the same added since: then
        `wrap_w(rest - m + moving) + m` is `wrap_w(base - m + moving) + m`, for each of them."""
        forms = [self.of(entry.of(site)) for site in sites if site.value.is_static]
        if not forms or len(forms) < len(sites):
            return None
        if all(form == forms[0] for form in forms):
            return forms[0]
        moving, _ = forms[0].split()
        width, moved = forms[0].width, forms[0].moved
        if any(form.split()[0] != moving for form in forms) or any((f.width, f.moved) != (width, moved) for f in forms):
            return None
        if not all(isinstance(symbol, Position) for symbol in moving):
            return None
        base = Element(entry.site, tuple(map(origin, entry.place)))
        return Linear(0, {**moving, base: 1}, width, moved, forms[0].evidence)

    def _loop_value(self, entry: Entry, carried: Carried) -> Linear | None:
        """A value that a while carries: the same as before the loop where the body returns it as it is; where it adds
        the same number to all elements, their distances stay."""
        initial = self.of(entry.of(carried.initial))
        if carried.is_kept:
            return initial
        moving, _ = initial.split()
        width = entry.site.value.element.integer_bits
        if not all(isinstance(symbol, Position) for symbol in moving) or initial.width not in (0, width):
            return None
        step = self._growth(entry.of(carried.argument), entry.of(carried.following))
        if step is None or step.width not in (0, width) or positions([step]):
            return None
        base = Element(entry.site, tuple(map(origin, entry.place)))
        return Linear(0, {**moving, base: 1}, width, evidence=initial.evidence)

    def _growth(self, argument: Entry, following: Entry) -> Linear | None:
        """The form that a loop's body adds to an element of an argument; None beyond the limits.

        Found once, for the value in the body as for the loop's result. Meanwhile the value is a symbol of its own.
        """
        value = argument.site.value
        known = self.memo.get(_Growth(argument))
        if known is not None or self.budget.depth > self.budget.deepest // 2:
            return known
        if value in self._assumed or len(self._assumed) >= MAX_ASSUMED:
            # Looked into once what is assumed is settled: what is found until then rests on it.
            self.memo.note(self._assumed.index(value) + 1 if value in self._assumed else self.memo.level)
            return None
        cuts = self.budget.cuts
        self.memo.begin()
        self.memo.assume()
        self._assumed.append(value)
        after = self.of(following)
        self._assumed.pop()
        self.memo.settle()
        step = after.plus(Linear(0, {Element(*argument): 1}, after.width), -1)
        if cuts == self.budget.cuts:
            self.memo.keep(_Growth(argument), step)
        else:
            self.memo.drop()
        return step

    # --- ranges ---

    def is_exact(self, form: Linear, value: Value) -> bool:
        """Whether a form of elements of a value holds in whole numbers, too: no sum can leave the type."""
        allowed = type_range(value.element_type)
        if allowed is None or form.width not in (0, value.element.integer_bits):
            return False
        low = high = form.constant
        for symbol, coefficient in form.terms.items():
            interval = self._range(symbol)
            if interval is None:
                return False
            ends = (coefficient * interval[0], coefficient * interval[1])
            low, high = low + min(ends), high + max(ends)
        return allowed[0] <= low and high <= allowed[1]

    def _range(self, symbol: Symbol) -> tuple[int, int] | None:
        match symbol:
            case Position():
                return 0, symbol.size - 1
            case Element():
                return self.ranges.of(symbol.site).hull()
            case Start():
                return 0, symbol.last
            case Normalized():
                return -(1 << (symbol.width - 1)), (1 << (symbol.width - 1)) - 1


def _operand(entry: Entry, operand: Value) -> Entry:
    """The element of an operand of an elementwise op that makes an element of its result; scalars have one for all."""
    return entry.to(operand) if operand.shape else Entry(entry.site.to(operand), ())


# --- constants that go up or down evenly: base and strides recovered from a table of numbers (trap 33) ---


MAX_PART = 1 << 20
"""Most elements of a constant that are looked at together: 1 Mi, 8 MiB."""


def of_constant(node: Node, place: Place) -> Linear | None:
    """An element of a constant: a number where the place is known, else what `fit_strides` recovers."""
    values = node.constant()
    width, step = node.result().element.integer_bits, Evidence.at(node, Code.CONSTANT())
    if values is None or values.size == 0:
        return None
    known = values[tuple(p.constant if p.is_constant else slice(None) for p in place)]
    found = fit_strides(known)
    if found is None:
        return None
    form = Linear(found[0])
    for coordinate, stride in zip([p for p in place if not p.is_constant], found[1], strict=True):
        form = form.plus(coordinate.times(stride))
    return form.in_width(width).because(step)


def fit_strides(values: Bounds) -> tuple[int, tuple[int, ...]] | None:
    """Base and strides of an integer array that is `base + sum of stride * index`, or None where it is not.

    Along a dim in which it is one and the same memory (a splat, a broadcast) it is looked at in one place, and the rest
    in parts, so nothing of its shape is made.
    """
    if values.size == 0:
        return None
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides)
    looked_at: Bounds = np.asarray(values[once], values.dtype)  # at rank 0 an index gives a number
    origin = (0,) * looked_at.ndim
    base = int(looked_at[origin])
    strides = tuple(
        int(looked_at[(*origin[:d], 1, *origin[d + 1 :])]) - base if size > 1 else 0
        for d, size in enumerate(looked_at.shape)
    )
    last = tuple(size - 1 for size in looked_at.shape)
    ends = [stride * n for stride, n in zip(strides, last, strict=True)]
    if int(looked_at[last]) != base + sum(ends):
        return None
    low, high = base + sum(min(0, end) for end in ends), base + sum(max(0, end) for end in ends)
    if low < 0 and looked_at.dtype.kind == "u":
        return None
    is_narrow = low >= -(1 << 62) and high < 1 << 62  # so that every difference is one of 64 bits, too
    return (base, strides) if _is_even(looked_at, base, strides, np.int64 if is_narrow else object) else None


def _is_even(values: Bounds, base: int, strides: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array is `base + sum of stride * index`, all of which are numbers of this dtype; part by part."""
    dim = max(range(values.ndim), key=lambda d: values.shape[d], default=0)
    length = values.shape[dim] if values.ndim else 1
    rows = max(1, MAX_PART * length // values.size)
    for begin in range(0, length, rows):
        own = tuple(slice(begin, begin + rows) if d == dim else slice(None) for d in range(values.ndim))
        part: Bounds = np.asarray(values[own], values.dtype)
        rebuilt: Bounds = np.full((1,) * values.ndim, base + (strides[dim] * begin if values.ndim else 0), dtype)
        for d, (stride, size) in enumerate(zip(strides, part.shape, strict=True)):
            along: Bounds = np.arange(size, dtype=np.int64).astype(dtype) * stride
            rebuilt = rebuilt + along.reshape([size if other == d else 1 for other in range(values.ndim)])
        # An unsigned number of 2^63 and more becomes a negative one here, of which its form has none.
        exact: Bounds = part if part.dtype == object else np.asarray(part.astype(dtype), dtype)
        if not bool(np.all(rebuilt == exact)):
            return False
    return True
