"""The structured loop: one description of an iteration, emitted as the loop op that a target reads.

It is built as `stablehlo.while`, which every oracle runs; where the module leaves in linalg, a counted loop is read
back and becomes `scf.for`, or `scf.forall` where its iterations do not meet (`lowering/linalg`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops.names import ADD, COMPARE, CONSTANT, RETURN, WHILE

# --- counted loops among those of a module: of `StructuredLoop`, and every scan and fori_loop ---
#
#     %r:n = stablehlo.while(%i = %first, ...)
#       cond { return %i < %limit }
#       do   { ...; return %i + 1, ... }
#
# is `for (i = first; i < limit; i += 1)`, if the limit is a constant or a carried value that the body returns as it is.
# The counter cannot overflow: it is below the limit when one is added.

IN_CONDITION = (CONSTANT, COMPARE, RETURN)
"""All that the condition of a counted loop holds."""


@dataclass(frozen=True)
class CountedLoop:
    """What counts in a `stablehlo.while`.

    Attributes:
      counter: the position of the counter among the carried values.
      limit: the constant that it stays below, or None.
      limit_at: the position of the carried value that it stays below, or None.
      is_unsigned: whether the two are compared as unsigned numbers.
    """

    counter: int
    limit: int | None
    limit_at: int | None
    is_unsigned: bool


def read_counted(loop: Node) -> CountedLoop | None:
    """What counts in a `stablehlo.while`, or None where it is not such a loop."""
    condition, body = loop.blocks
    if any(node.name not in IN_CONDITION for node in condition.nodes):
        return None
    compared = condition.terminator.operand(0).node
    if compared is None or compared.name != COMPARE:
        return None
    if mlir.enum_value(compared.attribute("comparison_direction")) != "LT":
        return None
    low, high = compared.operands
    element = low.element
    if low.block != condition or element.name in ("ui64", "i1") or not element.is_integer:
        return None
    counter = low.number
    if not _counts_up(body, counter):
        return None
    if high.block == condition:
        at = high.number
        return CountedLoop(counter, None, at, element.is_unsigned) if _is_kept(body, at) else None
    limit = high.integer
    return None if limit is None else CountedLoop(counter, limit, None, element.is_unsigned)


def _counts_up(body: Block, counter: int) -> bool:
    added = body.terminator.operand(counter).node
    if added is None or added.name != ADD:
        return False
    argument = body.argument(counter)
    left, right = added.operands
    return (left == argument and right.integer == 1) or (right == argument and left.integer == 1)


def _is_kept(body: Block, position: int) -> bool:
    return body.terminator.operand(position) == body.argument(position)


Values: TypeAlias = tuple[Value, ...]

IterationBuilder: TypeAlias = Callable[[Builder, Value, Values, Values], Sequence[Value]]
"""Builds one iteration from a builder, the counter, the carried and the invariant values; returns the next carried."""


@dataclass(frozen=True)
class StructuredLoop:
    """A counted loop.

    Attributes:
      trip_count: number of iterations, or a scalar of the counter's type that holds it at run time.
      counter_type: integer type of the counter; it holds the trip count.
    """

    trip_count: int | Value
    counter_type: str

    def emit_while(
        self, build: Builder, carried: Sequence[Value], invariant: Sequence[Value], body: IterationBuilder
    ) -> list[Value]:
        """Emit the loop as `stablehlo.while` and return the carried values after the last iteration."""
        initial = [build.constant(0, (), self.counter_type), *carried, *invariant]
        if isinstance(self.trip_count, Value):
            initial.append(self.trip_count)
        types = [value.raw.type for value in initial]
        loop = build.op(WHILE, initial, types, regions=2)
        split = 1 + len(carried)

        def condition(inner: Builder, arguments: tuple[Value, ...]) -> Sequence[Value]:
            if isinstance(self.trip_count, Value):
                return [inner.compare(arguments[0], "LT", arguments[-1])]
            return [inner.compare(arguments[0], "LT", inner.constant(self.trip_count, (), self.counter_type))]

        def iteration(inner: Builder, arguments: tuple[Value, ...]) -> Sequence[Value]:
            counter, kept = arguments[0], arguments[split:]
            following = body(inner, counter, arguments[1:split], kept[: len(invariant)])
            one = inner.constant(1, (), self.counter_type)
            return [inner.add(counter, one), *following, *kept]

        build.region(loop, 0, types, condition)
        build.region(loop, 1, types, iteration)
        return list(loop.results[1:split])


# --- a loop over the steps of an axis, tile by tile: as `stablehlo.while`, or unrolled ---
#
# The body is built once for each size of tile, from where the tile begins: a scalar in a `while`, an integer where that
# is known. It carries results, into which tiles are written, and accumulators, which it reads and modifies.
#
#     1,000 steps by 128, a smaller last tile:   while 7 times 128 steps; then 104 steps at 896
#     1,000 steps by 128, a clamped last tile:   while 8 times 128 steps, the last ones at 872
#
# A clamped tile computes some steps twice, which is right only where a step gives the same each time and writes it over
# what it gave before: for results, not for accumulators.


Tail: TypeAlias = Literal["smaller", "clamped"]

TileBuilder: TypeAlias = Callable[[Builder, "int | Value", int, tuple[Value, ...], tuple[Value, ...]], Sequence[Value]]
"""Builds one tile from a builder, its first step, how many steps it has, the carried and the invariant values; returns
the next carried."""

COUNTER = "i32"


def tile_size_near(wanted: int, steps: int) -> int:
    """A size of tile near a wanted one: one that divides the steps where it is no less than half, else a power of 2."""
    divisor = next(size for size in range(wanted, 0, -1) if steps % size == 0)
    return divisor if 2 * divisor > wanted else 1 << (wanted.bit_length() - 1)


@dataclass(frozen=True)
class TiledLoop:
    """A loop over the steps of an axis.

    Attributes:
      count: all steps, at least 1.
      size: steps of a tile, from 1 to `count`.
      tail: what becomes of steps that are left over.
      is_unrolled: whether each tile is built by itself.
    """

    count: int
    size: int
    tail: Tail = "smaller"
    is_unrolled: bool = False

    def __post_init__(self) -> None:
        assert 1 <= self.size <= self.count, (self.size, self.count)

    @property
    def rest(self) -> int:
        """Steps of a smaller last tile; 0 where there is none."""
        return self.count % self.size if self.tail == "smaller" else 0

    @property
    def trips(self) -> int:
        """Tiles of the full size."""
        return -(-(self.count - self.rest) // self.size)

    def emit(
        self, build: Builder, carried: Sequence[Value], invariant: Sequence[Value], body: TileBuilder
    ) -> list[Value]:
        """Build the loop, and give the carried values behind it."""
        values, given = list(carried), tuple(invariant)
        if self.is_unrolled or self.trips == 1:
            for trip in range(self.trips):
                start = min(trip * self.size, self.count - self.size)
                values = list(body(build, start, self.size, tuple(values), given))
        else:
            loop = StructuredLoop(self.trips, COUNTER)
            values = loop.emit_while(
                build,
                values,
                given,
                lambda inner, counter, mine, its: body(inner, self._start(inner, counter), self.size, mine, its),
            )
        if self.rest:
            values = list(body(build, self.count - self.rest, self.rest, tuple(values), given))
        return values

    def _start(self, build: Builder, counter: Value) -> Value:
        start = build.multiply(counter, build.constant(self.size, (), COUNTER))
        if self.count % self.size and self.tail == "clamped":
            start = build.minimum(start, build.constant(self.count - self.size, (), COUNTER))
        return start
