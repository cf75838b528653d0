"""Updates of one row combined with each other first, where their order does not matter: no loop over the windows."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.combine import OPS, SUMS, identity, is_float_extreme
from hlo_lower.facts.scatter.facts import Order, Strategy
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.axes import matrix_products, reduce_along, shift_along, take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.scatter.numbered_rows import chosen, last_at_most, over_rows, over_writes, sorted_numbers
from hlo_lower.lowering.scatter.window import new_values
from hlo_lower.ops.names import ADD, OR

rules = RuleList()
lowers = over_rows(rules)

COMBINING = frozenset(OPS)


# Of complex numbers also stablehlo.complex: not declared, or who has none would not be given the others either.
@lowers(
    combiner=COMBINING,
    order={Order.FREE},
    strategy={Strategy.REDUCTION},
    form="reduce over n of select(iota == row, updates, identity); region(operand, that)",
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
        return chosen(op, [flat.restored(build, t) for t in totals], flat.restored_mask(build, hit))
    operands = op.scatter.promoted_operands(build)
    return new_values(op, build, operands, [flat.restored(build, t) for t in found])


def _any(build: Builder, mask: Value) -> Value:
    """Whether anything is for a row: [B, D, ...] from the mask [B, D, n, ...]."""
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
    nan = build.broadcast(_number(build, np.nan, updates.element_type), total.static_shape)
    return build.select(_any(build, build.and_(wide, is_nan)), nan, total)


@lowers(
    combiner=SUMS,
    order={Order.FREE},
    strategy={Strategy.DOT},
    form="dot_general of convert(iota == row) and the updates; region(operand, that) where any is for the row",
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
    return chosen(op, [flat.restored(build, value) for value in sums], flat.restored_mask(build, hit))


@lowers(
    combiner=COMBINING,
    order={Order.FREE},
    strategy={Strategy.SORTED_REDUCTION},
    form="sort (row, n); combine runs of equal rows by doubling; region(operand, the end of each row's run)",
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
        sums = [_joined(build, c, same, v, step) for c, v in zip(combiners, sums, strict=True)]
        step *= 2
    found = last_at_most(build, rows, flat.rows)
    totals = [flat.restored(build, found.of(build, v)) for v in sums]
    return chosen(op, totals, flat.restored_mask(build, found.hit(build)))


def _joined(build: Builder, combiner: Combiner, same: Value, value: Value, step: int) -> Value:
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


def _number(build: Builder, value: float, element: str) -> Value:
    return build.constant_array(np.asarray(value), element)
