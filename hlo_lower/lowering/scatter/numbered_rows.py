"""Rows that have numbers (`facts.scatter.flat`): the order of the writes, comparisons of rows with writes, searches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array

from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.combine import IDEMPOTENT, OPS, SUMS, identity, is_float_extreme
from hlo_lower.facts.scatter.facts import Offsets, Order, Strategy, Unique
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.axes import matrix_products, reduce_along, shift_along, sort_rows, take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.kind import ScatterLowering
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.loops import StructuredLoop, Values
from hlo_lower.lowering.scatter.many_windows import captured_by
from hlo_lower.lowering.scatter.one_window import READING, new_values, reads_current
from hlo_lower.ops.names import ADD, MAXIMUM, OR, SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS

Rule = Callable[..., Any]


def over_rows(rules: RuleList) -> "partial[Callable[[Rule], Rule]]":
    """Registers rules for many windows at places that are known at run time, in a list."""
    at_run_time = {Offsets.RUNTIME, Offsets.UNSOLVED}
    return partial(rules.lowers, SCATTER, subset=MANY_WINDOWS, offsets=at_run_time)


def sorted_numbers(op: ScatterLowering) -> tuple[Value, Value]:
    """The row numbers of the writes, ascending, those of one row in the order of the writes; and which writes they are.

    What is known to ascend is not sorted again.
    """
    numbers = op.flat.row_numbers(op.build)
    order = op.build.iota(numbers.static_shape, 1, numbers.element_type)
    if op.facts.is_sorted:
        return numbers, order
    rows, order = sort_rows(op.build, numbers, [order], by_both=True)
    return rows, order


def select_hit(op: ScatterLowering, values: Sequence[Value], hit: Value) -> list[Value]:
    """The region of the operands and these values where hit, and the operands elsewhere; all in the operand's shape."""
    operands = op.scatter.promoted_operands(op.build)
    proposed = new_values(op, op.build, operands if reads_current(op) else values, values)
    return [op.build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]


@dataclass(frozen=True)
class Found:
    """Where a search ended.

    Attributes:
      place: for each row [B, D] a place in [0, N).
      key: what stands there.
    """

    place: Value
    key: Value

    def hit(self, build: Builder) -> Value:
        """Whether what stands at its place is the row itself, [B, D]."""
        return build.compare(self.key, "EQ", build.iota(self.place.static_shape, 1, self.key.element_type))

    def count(self, build: Builder) -> Value:
        """How many keys are at most the row, [B, D]."""
        shape, element = self.place.static_shape, self.place.element_type
        through = build.add(self.place, build.constant(1, shape, element))
        reached = build.compare(self.key, "LE", build.iota(shape, 1, element))
        return build.select(reached, through, build.constant(0, shape, element))

    def of(self, build: Builder, values: Value) -> Value:
        """Of other values, [B, N, ...], what stands at the places."""
        return take_rows(build, values, self.place)


def last_at_most(build: Builder, keys: Value, rows: int) -> Found:
    """For each row d in [0, rows) the last place whose key is at most d; 0 where all keys are greater.

    Args:
      build: where to build.
      keys: [B, N], ascending along N; N is at least 1.
      rows: D.

    The place is built from its highest binary digit down: a digit is set if the place with it is still in [0, N) and
    its key at most d. Keys ascend, so all places up to one that is found have keys of at most d.
    """
    b, n = keys.static_shape
    element, shape = keys.element_type, (b, rows)
    own = build.iota(shape, 1, element)
    place = build.constant(0, shape, element)
    digit = 1 << max((n - 1).bit_length() - 1, 0)
    while digit and n > 1:
        further = build.add(place, build.constant(digit, shape, element))
        last = build.constant(n - 1, shape, element)
        within = build.compare(further, "LE", last)
        key = take_rows(build, keys, build.minimum(further, last))
        ahead = build.and_(within, build.compare(key, "LE", own))
        place = build.select(ahead, further, place)
        digit >>= 1
    return Found(place, take_rows(build, keys, place))


PartBuilder: TypeAlias = Callable[[Builder, Value, Value, Sequence[Value]], Sequence[Value]]
"""Builds what a part of the writes comes to: from the mask [B, D, n] of which row each of n writes is for, the number
of the first, and what goes along with the writes, [B, n, ...]."""


def hits(build: Builder, flat: FlatScatter, numbers: Value) -> Value:
    """Whether each row is the one that a write is for: [B, D, n], from the row numbers of n writes [B, n]."""
    b, n = numbers.static_shape
    shape = (b, flat.rows, n)
    return build.compare(build.broadcast(numbers, shape, [0, 2]), "EQ", build.iota(shape, 1, numbers.element_type))


def over_writes(
    build: Builder,
    flat: FlatScatter,
    width: int,
    most: int,
    along: Sequence[Value],
    part: PartBuilder,
    merged: Sequence[str],
) -> list[Value]:
    """What all writes come to, for each row.

    Args:
      build: where to build.
      flat: the scatter.
      width: elements that the mask is spread over, for each row and write.
      most: elements that one mask may have; with more, the writes are taken in parts, by a loop. The last part is
        filled up with writes that are dropped.
      along: what goes along with the writes, [B, N, ...].
      part: builds the results of a part.
      merged: for each of them the op that two parts come to together, the one of earlier writes first.
    """
    numbers = flat.row_numbers(build)
    element = numbers.element_type
    parts = flat.parts(width, most)
    size = -(-flat.writes // parts)
    if parts == 1:
        return list(part(build, hits(build, flat, numbers), build.constant(0, (), element), along))
    spare = parts * size - flat.writes
    no_row = build.constant(flat.rows, (), element)
    numbers = build.pad(numbers, no_row, [0, 0], [0, spare])
    along = [_filled_up(build, value, spare) for value in along]
    invariant = [numbers, *along]

    def of_part(inner: Builder, first: Value, values: Sequence[Value]) -> list[Value]:
        zero = inner.constant(0, (), element)
        taken: list[Value] = []
        for value in values:
            b, _, *rest = value.static_shape
            taken.append(inner.dynamic_slice(value, [zero, first, *(zero for _ in rest)], [b, size, *rest]))
        return list(part(inner, hits(inner, flat, taken[0]), first, taken[1:]))

    def iteration(inner: Builder, counter: Value, carried: Values, kept: Values) -> Sequence[Value]:
        one = inner.add(counter, inner.constant(1, (), element))
        first = inner.multiply(one, inner.constant(size, (), element))
        pairs = zip(merged, carried, of_part(inner, first, kept), strict=True)
        return [inner.elementwise(name, one, other) for name, one, other in pairs]

    beginning = of_part(build, build.constant(0, (), element), invariant)
    return StructuredLoop(parts - 1, element).emit_while(build, beginning, invariant, iteration)


def _filled_up(build: Builder, value: Value, spare: int) -> Value:
    rest = len(value.static_shape) - 2
    filling = build.zero_of(value)
    return build.pad(value, filling, [0] * (rest + 2), [0, spare, *(0 for _ in range(rest))])


# --- each row looks up the last update that is for it: exact with duplicates, no loop ---


rules = RuleList()
lowers = over_rows(rules)


@lowers(
    combiner=ASSIGNING | IDEMPOTENT,
    strategy={Strategy.MASK},
    form="select(any(iota == row), body(operand, the one update), operand)",
)
def scatter_to_mask(op: ScatterLowering) -> Sequence[Value]:
    """Lower a scatter all of whose updates are the same.

        %hit = reduce or over n: iota over the rows == %row[n]
        %r   = select(%hit, region(%operand, %update), %operand)

    Equal: a row that several updates are for is given the same value by each. An assignment ends with it; minimum,
    maximum, and, or take it once as well as twice. A row that none is for keeps its value; a dropped write has the
    number of no row. Both policies. Compares each row with each write, and passes over the operand once.
    """
    build, flat = op.build, op.flat

    def part(inner: Builder, mask: Value, _first: Value, _along: Sequence[Value]) -> Sequence[Value]:
        return [reduce_along(inner, mask, inner.constant(0, (), "i1"), 2, OR)]

    [hit] = over_writes(build, flat, 1, op.facts.costs.mask_elements, [], part, [OR])
    shape = (flat.batches, flat.rows, flat.width)
    values: list[Value] = []
    for update in flat.updates(build):
        first = build.slice(update, [0, 0, 0], [flat.batches, 1, flat.width])
        spread = build.broadcast(build.reshape(first, (flat.batches, flat.width)), shape, [0, 2])
        values.append(flat.to_operand_shape(build, spread))
    return select_hit(op, values, flat.restored_mask(build, hit))


@lowers(
    combiner=ASSIGNING,
    strategy={Strategy.INVERSION},
    form="last = max over n of select(iota == row, n, -1); select(last != -1, gather(updates, last), operand)",
)
def scatter_to_last_writer(op: ScatterLowering) -> Sequence[Value]:
    """Lower assigned rows through the last write to each.

        %last  = reduce maximum over n: select(iota over the rows == %row[n], n, -1)
        %found = gather(%updates, max(%last, 0))
        %r     = select(%last != -1, %found, %operand)

    Equal: writes are numbered in the order in which the scatter applies them, so the greatest number that is for a row
    is the one that its value comes from in the end, and for all operands of a variadic scatter it is the same (trap
    17). A row without any keeps its value by the select, whatever the gather gives there; nothing is added or
    multiplied, so a NaN stays in its row. A dropped write has the number of no row. Both policies. Compares each row
    with each write, in parts where the mask would be large, and passes over the operand once.
    """
    return _of_numbers(op, _last_by_comparing(op))


@lowers(
    combiner=READING,
    unique={Unique.PROVED},
    strategy={Strategy.INVERSION},
    form="last_writer where each row is written at most once: select(last != -1, body(operand, gather), operand)",
)
def scatter_to_only_writer(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined, each at most once.

    Equal as `scatter_to_last_writer` is: the last write to a row is its only one, so that the region is applied to the
    row's current value and that update, as the scatter does, and to no other. Sums keep their order because there is
    none; nothing is added to a row without a write, so a -0.0 stays one.
    """
    return _of_numbers(op, _last_by_comparing(op))


@lowers(
    combiner=ASSIGNING,
    strategy={Strategy.SORTED_INVERSION},
    form="sort (row, n); binary search for each row's last; select(found, gather(updates, n), operand)",
)
def scatter_to_sorted_last_writer(op: ScatterLowering) -> Sequence[Value]:
    """Lower assigned rows through the last write to each, found by a binary search in the sorted row numbers.

        %rows, %ns = sort (%row, n) by both
        %at        = the last place with %rows[%at] <= row, for each row
        %r         = select(%rows[%at] == row, gather(%updates, %ns[%at]), %operand)

    Equal as `scatter_to_last_writer` is: among the writes to a row the sort puts the one with the greatest number last.
    The sort goes by both, so no two are equal and a sort that is not stable gives the same. Both policies. Costs a sort
    of the writes, as many gathers of row numbers as N has binary digits, and a pass over the operand.
    """
    return _of_numbers(op, _last_by_sorting(op))


@lowers(
    combiner=READING,
    unique={Unique.PROVED},
    strategy={Strategy.SORTED_INVERSION},
    form="sorted_last_writer where each row is written at most once, with the body",
)
def scatter_to_sorted_only_writer(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined, each at most once, through a sort.

    Equal as `scatter_to_only_writer` and `scatter_to_sorted_last_writer` are.
    """
    return _of_numbers(op, _last_by_sorting(op))


@lowers(
    unique={Unique.PROVED},
    strategy={Strategy.PERMUTATION},
    form="sort (row, n): update n of each row; body(operand, gather(updates, n))",
)
def scatter_to_permuted(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are written in the order of a permutation.

        %rows, %ns = sort (%row, n)        %rows is 0, 1, ..., D - 1
        %r         = region(%operand, gather(%updates, %ns))

    Equal: each row is written exactly once, by the update whose row number is its own, and sorting a permutation puts
    the number d at place d. No two keys are equal, so any sort gives this. Rows of one element go along with the sort,
    and nothing is gathered. Costs a sort and a pass over the operand.
    """
    build, flat = op.build, op.flat
    numbers = flat.row_numbers(build)
    updates = flat.updates(build)
    shape = (flat.batches, flat.rows, flat.width)
    if flat.width == 1:
        columns = [build.reshape(u, (flat.batches, flat.writes)) for u in updates]
        found = [build.reshape(v, shape) for v in sort_rows(build, numbers, columns)[1:]]
    else:
        order = build.iota(numbers.static_shape, 1, numbers.element_type)
        numbers_of = sort_rows(build, numbers, [order])[1]
        found = [take_rows(build, u, numbers_of) for u in updates]
    return _of_updates(op, found)


def _of_updates(op: ScatterLowering, found: Sequence[Value]) -> Sequence[Value]:
    values = [op.flat.to_operand_shape(op.build, v) for v in found]
    currents = op.scatter.promoted_operands(op.build) if reads_current(op) else values
    return new_values(op, op.build, currents, values)


def _of_numbers(op: ScatterLowering, last: Value) -> Sequence[Value]:
    """The result from the number of the last write to each row, [B, D]; -1 where there is none."""
    build, flat = op.build, op.flat
    if op.facts.claims is not None and op.facts.claims.is_permutation:
        return _of_updates(op, [take_rows(build, u, last) for u in flat.updates(build)])
    zero = build.constant(0, last.static_shape, last.element_type)
    hit = flat.restored_mask(build, build.compare(last, "NE", -1))
    number = build.maximum(last, zero)
    return select_hit(op, [flat.to_operand_shape(build, take_rows(build, u, number)) for u in flat.updates(build)], hit)


def _last_by_comparing(op: ScatterLowering) -> Value:
    flat = op.flat
    element = flat.number_type

    def part(inner: Builder, mask: Value, first: Value, _along: Sequence[Value]) -> Sequence[Value]:
        shape = mask.static_shape
        number = inner.add(inner.iota(shape, 2, element), inner.broadcast(first, shape))
        number = inner.select(mask, number, inner.constant(-1, shape, element))
        least = identity(inner, Combiner.MAX, element)  # -1 would do, but some compilers know only an op's own identity
        return [reduce_along(inner, number, least, 2, MAXIMUM)]

    return over_writes(op.build, flat, 1, op.facts.costs.mask_elements, [], part, [MAXIMUM])[0]


def _last_by_sorting(op: ScatterLowering) -> Value:
    build, flat = op.build, op.flat
    rows, order = sorted_numbers(op)
    found = last_at_most(build, rows, flat.rows)
    number = found.of(build, order)
    return build.select(found.hit(build), number, build.constant(-1, number.static_shape, number.element_type))


# --- updates of one row combined with each other first, where their order does not matter ---


COMBINING = frozenset(OPS)


# Of complex numbers also stablehlo.complex: not declared, or who has none would not be given the others either.
@lowers(
    combiner=COMBINING,
    order={Order.FREE},
    strategy={Strategy.REDUCTION},
    form="reduce over n of select(iota == row, updates, identity); body(operand, that)",
)
def scatter_to_compare_reduce(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined, each with all updates that are for it.

        %total = reduce over n: select(iota over the rows == %row[n], %updates[n], identity)
        %r     = region(%operand, %total)

    and for minima and maxima of floats, a `reduce` of which loses NaN or infinities in some compilers,

        %number = reduce over n: select(iota over the rows == %row[n] and %updates[n] == itself, %updates[n], identity)
        %total  = select(any update for the row is NaN, NaN, %number)
        %r      = select(any update is for the row, region(%operand, %total), %operand)

    Equal where the order does not matter (`hlo_lower.facts.scatter.combine.is_order_free`): what is for a row is
    combined, and with it the row's current value, once. What is for another row is replaced by the identity before it
    is combined, never multiplied by 0, so a NaN or Inf stays in its row; a row without any is combined with the
    identity, which leaves every value and the sign of 0, or keeps its value by the select. A NaN among the updates of
    a row makes the extreme NaN, whatever the others are. A dropped write has the number of no row. Both policies.
    Combines each element of the operand with each write, in parts where that would be large.
    """
    build, flat = op.build, op.flat
    combiners = op.facts.region.combiners
    updates = flat.updates(build)
    has_extreme = any(is_float_extreme(c, u.element_type) for c, u in zip(combiners, updates, strict=True))

    def part(inner: Builder, mask: Value, _first: Value, along: Sequence[Value]) -> Sequence[Value]:
        found = [_any(inner, mask)] if has_extreme else []
        return found + [_total(inner, combiner, mask, value) for value, combiner in zip(along, combiners, strict=True)]

    merged = [*([OR] if has_extreme else []), *(OPS[c] for c in combiners)]
    found = over_writes(build, flat, flat.width, op.facts.costs.mask_elements, updates, part, merged)
    if has_extreme:
        hit, *totals = found
        return select_hit(op, [flat.to_operand_shape(build, t) for t in totals], flat.restored_mask(build, hit))
    operands = op.scatter.promoted_operands(build)
    return new_values(op, build, operands, [flat.to_operand_shape(build, t) for t in found])


def _any(build: Builder, mask: Value) -> Value:
    return reduce_along(build, mask, build.constant(0, (), "i1"), 2, OR)


def _total(build: Builder, combiner: Combiner, mask: Value, updates: Value) -> Value:
    """What a part of the updates, [B, n, W], comes to for each row: [B, D, W]; the identity where none is for it."""
    b, d, n = mask.static_shape
    shape = (b, d, n, updates.static_shape[2])
    wide, values = build.broadcast(mask, shape, [0, 1, 2]), build.broadcast(updates, shape, [0, 2, 3])
    nothing = identity(build, combiner, updates.element_type)
    nothings = build.broadcast(nothing, shape)
    if not is_float_extreme(combiner, updates.element_type):
        return reduce_along(build, build.select(wide, values, nothings), nothing, 2, OPS[combiner])
    is_number = build.broadcast(build.compare(updates, "EQ", updates), shape, [0, 2, 3])
    numbers = build.select(build.and_(wide, is_number), values, nothings)
    total = reduce_along(build, numbers, nothing, 2, OPS[combiner])
    is_nan = build.broadcast(build.compare(updates, "NE", updates), shape, [0, 2, 3])
    nan = build.broadcast(build.constant_array(np.asarray(np.nan), updates.element_type), total.static_shape)
    return build.select(_any(build, build.and_(wide, is_nan)), nan, total)


@lowers(
    combiner=SUMS,
    order={Order.FREE},
    strategy={Strategy.DOT},
    form="dot_general of convert(iota == row) and the updates; body(operand, that) where any is for the row",
)
def scatter_to_one_hot_dot(op: ScatterLowering) -> Sequence[Value]:
    """Lower sums of rows to a matrix product.

        %one_hot = convert(iota over the rows == %row[n])                      [B, D, N]
        %total   = dot_general %one_hot, %updates                              [B, D, W]
        %r       = select(any %one_hot, region(%operand, %total), %operand)

    Equal for integers: 1 * u + 0 * v = u, and sums and products are exact modulo 2^width in any order. Floats come
    here only with reassociation, at the highest precision, and 16-bit ones are summed in 32. There 0 * v is 0 only if v
    is finite, so what is not is put into two more columns, which count what is Inf or NaN and what is -Inf or NaN; Inf
    and -Inf are added behind the product where a count is not 0, which makes NaN of both. So nothing reaches another
    row. A row without any update keeps its value, and the sign of 0, by the select. Both policies.
    """
    build, flat = op.build, op.flat
    shape = (flat.batches, flat.rows, flat.width)
    updates = flat.updates(build)
    columns = [_columns(build, value) for value in updates]

    def part(inner: Builder, mask: Value, _first: Value, along: Sequence[Value]) -> Sequence[Value]:
        return [_any(inner, mask), *(matrix_products(inner, inner.convert(mask, v.element_type), v) for v in along)]

    merged = [OR, *(ADD for _ in columns)]
    hit, *totals = over_writes(build, flat, 1, op.facts.costs.mask_elements, columns, part, merged)
    sums = [_sum(build, t, u, shape) for t, u in zip(totals, updates, strict=True)]
    return select_hit(op, [flat.to_operand_shape(build, value) for value in sums], flat.restored_mask(build, hit))


@lowers(
    combiner=COMBINING,
    order={Order.FREE},
    strategy={Strategy.SORTED_REDUCTION},
    form="sort (row, n); combine equal rows by doubling; body(operand, the last of each row)",
)
def scatter_to_sorted_segments(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined through the runs of their sorted updates.

        %rows, %ns = sort (%row, n) by both
        %sums      = gather(%updates, %ns)
        for s = 1, 2, 4, ... < N:
          %sums[k] = select(%rows[k - s] == %rows[k], combine(%sums[k - s], %sums[k]), %sums[k])
        %at        = the last place with %rows[%at] <= row, for each row
        %r         = select(%rows[%at] == row, region(%operand, %sums[%at]), %operand)

    Equal where the order does not matter: after the step s, %sums[k] is what the last 2s updates up to k come to, as
    far as they are for the row of k, because rows are sorted, so that all between two equal ones are equal. At the end
    the last place of a run holds all of it. What is for another row is never combined, so a NaN or Inf stays in its
    row. A row without any keeps its value by the select. Both policies. Costs a sort, log2(N) passes over the updates,
    and a pass over the operand.
    """
    build, flat = op.build, op.flat
    combiners = op.facts.region.combiners
    rows, order = sorted_numbers(op)
    sums = [take_rows(build, u, order) for u in flat.updates(build)]
    step = 1
    while step < flat.writes:
        no_row = build.constant(-1, (), rows.element_type)
        same = build.compare(shift_along(build, rows, step, no_row), "EQ", rows)
        sums = [_scan_step(build, c, same, v, step) for c, v in zip(combiners, sums, strict=True)]
        step *= 2
    found = last_at_most(build, rows, flat.rows)
    totals = [flat.to_operand_shape(build, found.of(build, v)) for v in sums]
    return select_hit(op, totals, flat.restored_mask(build, found.hit(build)))


def _scan_step(build: Builder, combiner: Combiner, same: Value, value: Value, step: int) -> Value:
    """Each place's value combined with that of step places before, where both are for the same row."""
    before = shift_along(build, value, step, identity(build, combiner, value.element_type))
    both = build.elementwise(OPS[combiner], before, value)
    return build.select(build.broadcast(same, value.static_shape, [0, 1]), both, value)


def _columns(build: Builder, value: Value) -> Value:
    """What the updates give to the product, [B, N, W]; of floats [B, N, 3W]: finite, Inf or NaN, -Inf or NaN."""
    element = value.element_type
    if element not in WIDE_FLOATS:
        return value
    value = build.convert(value, "f32" if element in HALF_FLOATS else element)
    return build.concatenate(on_each(build, _told_apart, value), 2)


def _told_apart(value: Array) -> tuple[Array, Array, Array]:
    is_finite, zero = jnp.isfinite(value), value.dtype.type(0)
    unusual, finite = jnp.where(is_finite, zero, 1.0), jnp.where(is_finite, value, 0.0)
    return finite, jnp.where(value < 0.0, 0.0, unusual), jnp.where(value > 0.0, 0.0, unusual)


def _sum(build: Builder, product: Value, update: Value, shape: tuple[int, int, int]) -> Value:
    """The sums [B, D, W] from the product with what `_columns` gave."""
    if update.element_type not in WIDE_FLOATS:
        return product
    b, d, w = shape
    parts = (build.slice(product, [0, 0, k * w], [b, d, (k + 1) * w]) for k in range(3))
    [total] = on_each(build, _put_together, *parts)
    return build.convert(total, update.element_type)


def _put_together(finite: Array, above: Array, below: Array) -> Array:
    # Where nothing is added, not even 0.0 is: -0.0 + 0.0 is 0.0.
    total = jnp.where(above > 0.0, finite + jnp.inf, finite)
    return jnp.where(below > 0.0, total + -jnp.inf, total)


# --- updates applied in rounds, to each row its next one: a row's order is kept, and the rows go side by side ---


@lowers(
    combiner=READING,
    strategy={Strategy.ROUNDS},
    form="sort (row, n); while any row has updates left: body(operand, its next update) where it has one",
)
def scatter_to_rounds(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined, one update of each row at a time.

        %rows, %ns = sort (%row, n) by both
        %count     = how many of %rows are this row, %first = where the first of them stands
        while (i < max %count)
          %u       = gather(%updates, %ns[%first + i])
          %operand = select(i < %count, region(%operand, %u), %operand)

    Equal: the sort puts the updates of a row together, in the order in which the scatter applies them, because it goes
    by both. Round i applies to each row that has so many its update i, to what the rounds before it left: the very
    operations of the scatter on each element, in its order, so that float sums keep every bit and any region will do.
    What one row is given touches no other. A row without any keeps its value by the select; a dropped write has the
    number of no row. Both policies. Costs a sort, a search, and as many passes over the operand as the row that is
    written most often has updates; each window alone would take one iteration for each.
    """
    build, flat = op.build, op.flat
    rows, order = sorted_numbers(op)
    updates = [take_rows(build, u, order) for u in flat.updates(build)]
    zero = build.constant(0, (), rows.element_type)
    # the number of updates up to this row; that up to the row before is where its own begin
    through = last_at_most(build, rows, flat.rows).count(build)
    first = shift_along(build, through, 1, zero)
    count = build.subtract(through, first)
    least = identity(build, Combiner.MAX, count.element_type)
    most = reduce_along(build, reduce_along(build, count, least, 1, MAXIMUM), least, 0, MAXIMUM)
    captured = captured_by(op.scatter.region)

    def iteration(inner: Builder, turn: Value, current: Values, invariant: Values) -> Sequence[Value]:
        own_first, own_count, *rest = invariant
        sources, taken = rest[: len(updates)], rest[len(updates) :]
        turns = inner.broadcast(turn, own_count.static_shape)
        hit = flat.restored_mask(inner, inner.compare(turns, "LT", own_count))
        last = inner.constant(flat.writes - 1, turns.static_shape, turns.element_type)
        place = inner.minimum(inner.add(own_first, turns), last)
        values = [flat.to_operand_shape(inner, take_rows(inner, s, place)) for s in sources]
        combined = new_values(op, inner, current, values, captured.inside(inner, taken))
        return [inner.select(hit, new, old) for new, old in zip(combined, current, strict=True)]

    operands = op.scatter.promoted_operands(build)
    loop = StructuredLoop(most, count.element_type)
    return loop.emit_while(build, operands, [first, count, *updates, *captured.carried], iteration)
