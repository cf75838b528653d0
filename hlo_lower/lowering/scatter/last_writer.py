"""Each row looks up the last update that is for it, instead of each update its row: exact with duplicates, no loop."""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.combine import IDEMPOTENT, identity
from hlo_lower.facts.scatter.facts import Strategy, Unique
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.axes import reduce_along, sort_rows, take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.numbered_rows import chosen, last_at_most, over_rows, over_writes, sorted_numbers
from hlo_lower.lowering.scatter.window import READING, new_values, reads_current
from hlo_lower.ops.names import MAXIMUM, OR

rules = RuleList()
lowers = over_rows(rules)


@lowers(
    combiner=ASSIGNING | IDEMPOTENT,
    strategy={Strategy.MASK},
    form="select(any(iota == row), region(operand, the one update), operand)",
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
        values.append(flat.restored(build, spread))
    return chosen(op, values, flat.restored_mask(build, hit))


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
    form="the same where each row is written at most once: select(last != -1, region(operand, gather), operand)",
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
    form="the same where each row is written at most once, with the region",
)
def scatter_to_sorted_only_writer(op: ScatterLowering) -> Sequence[Value]:
    """Lower rows that are combined, each at most once, through a sort.

    Equal as `scatter_to_only_writer` and `scatter_to_sorted_last_writer` are.
    """
    return _of_numbers(op, _last_by_sorting(op))


@lowers(
    unique={Unique.PROVED},
    strategy={Strategy.PERMUTATION},
    form="sort (row, n): update n of each row; region(operand, gather(updates, n))",
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
    """The result from the one update of each row."""
    values = [op.flat.restored(op.build, v) for v in found]
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
    return chosen(op, [flat.restored(build, take_rows(build, u, number)) for u in flat.updates(build)], hit)


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
