"""Sorts of short axes: count for each row those in front of it; its rank is where it goes."""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.sort.key_columns import comes_first
from hlo_lower.facts.sort.sort_facts import SortStrategy
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.view import Value
from hlo_lower.lowering.sort.sort import SortLowering, chosen
from hlo_lower.ops.names import ADD, SORT

rules = RuleList()


@rules.lowers(SORT, strategy={SortStrategy.RANKS}, form="rank = number of rows in front, by all pairs; rows by rank")
def sort_to_ranks(op: SortLowering) -> Sequence[Value]:
    """Compare all pairs of rows, count those in front of each row, and put it there.

        %before = (key[j] < key[i]) | (key[j] == key[i] & j < i)     [A, i, j, C]
        %rank   = reduce add over j: convert %before                 [A, n, C]
        %order  = for each row r that is read the i with %rank[i] == r
        %r      = operands' rows at %order

    Equal: the comparator is a strict weak order of keys, so with the position behind them no two rows compare equal;
    the rows in front of one are then exactly those that the stable order has before it, and each rank is taken once.
    No element is computed with: it is gathered, or chosen as the integer of its bits. Costs n comparisons for each row.
    """
    build, sort = op.build, op.sort
    a, n, c = sort.canonical_shape
    pairs = (a, n, n, c)
    columns = [*(key.value for key in op.keys), op.positions]
    rows = [build.broadcast(column, pairs, [0, 1, 3]) for column in columns]
    others = [build.broadcast(column, pairs, [0, 2, 3]) for column in columns]
    before = comes_first(build, others, rows, op.ascending)
    zero = build.constant(0, (), "i32")
    rank = reduce_along(build, build.convert(before, "i32"), zero, 2, ADD)

    wide = (a, sort.rows, n, c)
    number = build.iota(wide, 1, "i32")
    if sort.first:
        number = build.add(number, build.constant(sort.first, wide, "i32"))
    hit = build.compare(build.broadcast(rank, wide, [0, 2, 3]), "EQ", number)
    columns_found = {
        k: chosen(build, hit, sort.column(build, k))
        for k in sort.wanted
        if k not in op.facts.gathered and not sort.is_numbering(k)
    }
    order = None if len(columns_found) == len(sort.wanted) else chosen(build, hit, op.positions)
    return op.results(order, columns=columns_found)
