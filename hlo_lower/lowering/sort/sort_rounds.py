"""Sorts of which the first rows are read: find the first row, leave it out, and find the next."""

from collections.abc import Sequence

from hlo_lower.base.element_types import type_range
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.sort.sort_facts import SortStrategy
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.sort.sort import SortLowering
from hlo_lower.ops.names import MAXIMUM, MINIMUM, SORT

rules = RuleList()


@rules.lowers(SORT, strategy={SortStrategy.ROUNDS}, form="k rounds: the least key, its first position, left out then")
def sort_to_rounds(op: SortLowering) -> Sequence[Value]:
    """Find the first of the rows that are left, once for each row that is read: top_k, argmax.

        %least = reduce minimum: select(%left, key, the greatest number)       maximum where keys go down
        %equal = %left & key == %least                                         the same with each further key
        %at    = reduce minimum: select(%equal, position, n)
        %left  = %left & position != %at

    Equal: the stable order has the row of the least first key first, of these the one of the least second key, and of
    equal rows the one that stood first; the next one is that of the rest. What fills the place of a row that is left
    out may equal a key: it counts for nothing, because rows are asked whether they are left. Costs a pass for each key
    and round.
    """
    build = op.build
    keys = [key.value for key in op.keys]
    left: Value | None = None
    found: list[list[Value]] = []
    for _ in range(op.sort.rows):
        if found:
            left = _without(build, op.positions, found[-1][-1], left)
        found.append(_round(build, keys, op.positions, op.ascending, left))
    *columns, order = (build.concatenate(rows, 1) for rows in zip(*found, strict=True))
    return op.results(order, columns)


@rules.lowers(
    SORT, strategy={SortStrategy.LOOPED_ROUNDS}, form="while over k rounds: the least key, its first position"
)
def sort_to_looped_rounds(op: SortLowering) -> Sequence[Value]:
    """The same rounds, in a loop.

        while r < k: %order[r] = position of the first row that is left; it is left out

    Equal: as the rounds one by one; each iteration writes a row of its own.
    """
    build, keys = op.build, [key.value for key in op.keys]
    (a, _, c), shape = op.sort.canonical_shape, op.positions.static_shape
    left = build.broadcast(build.constant(1, (), "i1"), shape)
    order = build.broadcast(build.constant(0, (), "i32"), (a, op.sort.rows, c))

    def iteration(inner: Builder, turn: Value, carried: Values, invariant: Values) -> Sequence[Value]:
        *columns, positions = invariant
        row = _round(inner, columns, positions, op.ascending, carried[0])
        zero = inner.constant(0, (), "i32")
        still = _without(inner, positions, row[-1], carried[0])
        return [still, inner.dynamic_update_slice(carried[1], row[-1], [zero, turn, zero])]

    loop = StructuredLoop(op.sort.rows, "i32")
    found = loop.emit_while(build, [left, order], [*keys, op.positions], iteration)
    return op.results(found[1])


def _round(
    build: Builder, keys: Sequence[Value], positions: Value, ascending: Sequence[bool], left: Value | None
) -> list[Value]:
    """One round: the keys and the position of the first row that is left, [A, 1, C] each.

    Args:
      build: where to build.
      keys, positions: [A, n, C].
      ascending: for each key whether it goes up.
      left: which rows are left; None for all.
    """
    shape, row = positions.static_shape, list[Value]()
    candidates = left
    for column, is_ascending in zip([*keys, positions], ascending, strict=True):
        end = _end(build, column, is_greatest=is_ascending)
        filled = column
        if candidates is not None:
            filled = build.select(candidates, column, build.broadcast(end, shape))
        least = reduce_along(build, filled, end, 1, MINIMUM if is_ascending else MAXIMUM)
        row.append(build.reshape(least, (shape[0], 1, shape[2])))
        if column is positions:
            break
        is_least = build.compare(column, "EQ", build.broadcast(least, shape, [0, 2]))
        candidates = is_least if candidates is None else build.and_(candidates, is_least)
    return row


def _without(build: Builder, positions: Value, gone: Value, left: Value | None) -> Value:
    """Which rows are left but for those at some positions, [A, 1, C]."""
    others = build.compare(positions, "NE", build.broadcast(gone, positions.static_shape, [0, 1, 2]))
    return others if left is None else build.and_(left, others)


def _end(build: Builder, column: Value, *, is_greatest: bool) -> Value:
    """The greatest or the least number of a column's type, a scalar."""
    limits = type_range(column.element_type)
    if limits is not None:
        return build.constant(limits[is_greatest], (), column.element_type)
    element = mlir.tensor_element(column.raw.type)
    return build.infinity(element, is_negative=not is_greatest)
