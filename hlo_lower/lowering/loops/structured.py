"""A counted loop over positions whose body yields new values for what it carries.

The body says what an iteration reads and writes in terms of subsets (`hlo_lower.ops.axes`); this file only says how the
iterations are strung together. The loop is emitted as `stablehlo.while`, of which `hlo_lower.lowering.linalg.scf_for`
makes `scf.for` where the module leaves in linalg, and `hlo_lower.lowering.linalg.scf_forall` the parallel
`scf.forall`:

    %counter = stablehlo.constant dense<0>
    %r:n = stablehlo.while(%i = %counter, %c = %carried, %v = %invariant)
      cond { return %i < trip_count }
      do   { %next = body(%i, %c, %v); return %i + 1, %next, %v }

Invariant values go through the loop unchanged, because some consumers refuse a region that captures them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import WHILE

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
