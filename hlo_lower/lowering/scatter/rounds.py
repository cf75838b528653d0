"""Updates applied in rounds, to each row its next one: a row's order is kept, and the rows go side by side."""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.combine import identity
from hlo_lower.facts.scatter.facts import Strategy
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.axes import reduce_along, shift_along, take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.scatter.loop import captured_by
from hlo_lower.lowering.scatter.numbered_rows import last_at_most, over_rows, sorted_numbers
from hlo_lower.lowering.scatter.window import READING, new_values
from hlo_lower.ops.names import MAXIMUM

rules = RuleList()
lowers = over_rows(rules)


@lowers(
    combiner=READING,
    strategy={Strategy.ROUNDS},
    form="sort (row, n); while any row has updates left: region(operand, its next update) where it has one",
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
        values = [flat.restored(inner, take_rows(inner, s, place)) for s in sources]
        combined = new_values(op, inner, current, values, captured.inside(inner, taken))
        return [inner.select(hit, new, old) for new, old in zip(combined, current, strict=True)]

    operands = op.scatter.promoted_operands(build)
    loop = StructuredLoop(most, count.element_type)
    return loop.emit_while(build, operands, [first, count, *updates, *captured.carried], iteration)
