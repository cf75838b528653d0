"""Rows that have numbers (`facts.scatter.flat`): the order of the writes, comparisons of rows with writes, searches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Offsets
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import sort_rows, take_rows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.scatter.window import new_values, reads_current
from hlo_lower.ops.names import SCATTER
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


def chosen(op: ScatterLowering, values: Sequence[Value], hit: Value) -> list[Value]:
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
    filling = build.zero(mlir.tensor_element(value.raw.type))
    return build.pad(value, filling, [0] * (rest + 2), [0, spare, *(0 for _ in range(rest))])
