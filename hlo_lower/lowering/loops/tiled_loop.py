"""A loop over the steps of an axis, tile by tile: as `stablehlo.while`, or unrolled; tails that do not divide included.

The body is built once for each size of tile, from where the tile begins: a scalar in a `while`, an integer where it is
known. What it carries are results, into which tiles are written, and accumulators, which it reads and modifies.

    1,000 steps by 128, a smaller last tile:   while 7 times 128 steps; then 104 steps at 896
    1,000 steps by 128, a clamped last tile:   while 8 times 128 steps, the last ones at 872

A clamped tile computes some steps twice, which is right only where a step gives the same each time and writes it over
what it gave before: for results, not for accumulators.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop

Tail: TypeAlias = Literal["smaller", "clamped"]

TileBuilder: TypeAlias = Callable[[Builder, "int | Value", int, tuple[Value, ...], tuple[Value, ...]], Sequence[Value]]
"""Builds one tile from a builder, its first step, how many steps it has, the carried and the invariant values; returns
the next carried."""

COUNTER = "i32"


def rounded(wanted: int, steps: int) -> int:
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
        """The first step of a tile of the full size."""
        start = build.multiply(counter, build.constant(self.size, (), COUNTER))
        if self.count % self.size and self.tail == "clamped":
            start = build.minimum(start, build.constant(self.count - self.size, (), COUNTER))
        return start
