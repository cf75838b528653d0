"""Compare every row of the operand with every write to it: at once, or in parts where the mask would be too large."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop, Values

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
