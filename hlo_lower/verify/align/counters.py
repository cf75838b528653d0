"""Loop counters: which values an argument of a loop's body takes, by the judge's own reading.

    while (i = c) cond: i < n  body: ..., i + s

with constants c, n and s > 0: in the body i is one of c, c + s, ... below n, and no sum on the way wraps around as long
as n + s is a number of the type. In the condition the first value that is not below n comes, too. What else begins at a
constant and grows by one in each iteration goes along: JAX carries a second counter beside the one that is compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import BodyPair, Side
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

_BEFORE_END = {"LT": 0, "LE": 1}


@dataclass(frozen=True)
class Counter:
    """A counter's values: start, step, its end, which it does not reach in the body, None where not constant; and the
    largest number of its type."""

    start: int
    step: int
    end: int | None
    largest: int

    @property
    def trips(self) -> int:
        """How many iterations it counts; 0 where its end is not a constant."""
        return 0 if self.end is None else len(range(self.start, self.end, self.step))

    def values(self, *, in_condition: bool = False) -> range:
        """Its values in the body, or in the condition, which sees the first one in any case."""
        last = self.largest - self.step if self.end is None else self.end
        count = len(range(self.start, last, self.step)) + in_condition
        return range(self.start, self.start + count * self.step, self.step)


def counters_of(pair: BodyPair) -> dict[int, range]:
    """The values of those arguments of a pair of bodies that count an enclosing loop's iterations, by place."""
    if pair.around is None:
        return {}
    outer, op, _ = pair.around
    if op.name != "stablehlo.while":
        return {}
    is_condition = pair.first.body is op.bodies[0]
    counters = ((place, _counter_of(outer.first, op, place)) for place in range(len(op.inputs)))
    counted = {place: counter for place, counter in counters if counter is not None}
    found = {place: counter.values(in_condition=is_condition) for place, counter in counted.items()}
    trips = max((counter.trips for counter in counted.values()), default=0)
    for place in range(len(op.inputs)) if trips else ():
        along = along_at(outer.first.program, _scalars(outer.first), op, place, trips + is_condition)
        if place not in found and along is not None:
            found[place] = along
    return found


def along_at(
    program: Program, integer: Callable[[ValueId], int | None], loop: Op, place: int, count: int
) -> range | None:
    """So many values of what a loop adds a constant to in each iteration; None where it is no such value."""
    start = integer(loop.inputs[place])
    step = _step(program, integer, loop.bodies[1], place)
    dtype = program.dtype_of(loop.inputs[place])
    if start is None or not step or dtype is None or dtype.kind not in "iu":
        return None
    values, info = range(start, start + count * step, step), np.iinfo(dtype)
    ends = (values[0], values[-1]) if values else ()  # it may be long
    return values if all(info.min <= end <= info.max for end in ends) else None


def counter_at(program: Program, integer: Callable[[ValueId], int | None], loop: Op, place: int) -> Counter | None:
    """The counter that a loop carries at a place, or None.

    Args:
      program: the module.
      integer: a value of it that is a known integer scalar, None where it is none.
      loop, place: the loop, and the place.
    """
    condition, body = loop.bodies
    start, step = integer(loop.inputs[place]), _step(program, integer, body, place)
    test = program.makers[condition.returned[0]]
    if start is None or step is None or step < 1 or test is None or test.name != "stablehlo.compare":
        return None
    direction = next(mlir.enum_value(value) for name, value in test.attributes if name == "comparison_direction")
    if test.inputs[0] != condition.arguments[place] or direction not in _BEFORE_END:
        return None
    end, dtype = integer(test.inputs[1]), program.dtype_of(loop.inputs[place])
    if dtype is None or dtype.kind not in "iu":
        return None
    largest = int(np.iinfo(dtype).max)
    if end is not None:
        end += _BEFORE_END[direction]
        if end + step > largest:
            return None
    return Counter(start, step, end, largest)


def _counter_of(side: Side, loop: Op, place: int) -> Counter | None:
    return counter_at(side.program, _scalars(side), loop, place)


def _scalars(side: Side) -> Callable[[ValueId], int | None]:
    return lambda value: _scalar_of(side, value)


def may_not_end(side: Side, ops: Sequence[Op]) -> bool:
    """Whether a loop among operations, or in their regions, is none that counts to a constant from a constant."""
    return any(
        (op.name == "stablehlo.while" and not _is_counted(side, op))
        or any(may_not_end(side, body.ops) for body in op.bodies)
        for op in ops
    )


def _is_counted(side: Side, loop: Op) -> bool:
    counters = (_counter_of(side, loop, place) for place in range(len(loop.inputs)))
    return any(counter is not None and counter.end is not None for counter in counters)


def _step(program: Program, integer: Callable[[ValueId], int | None], body: Body, place: int) -> int | None:
    """What a body adds to an argument that it carries on, or None."""
    adder = program.makers[body.returned[place]]
    if adder is None or adder.name != "stablehlo.add":
        return None
    return next((integer(b) for a, b in (adder.inputs, adder.inputs[::-1]) if a == body.arguments[place]), None)


def _scalar_of(side: Side, value: ValueId) -> int | None:
    """A known integer scalar."""
    known = side.table.known.get(side.numbers[value]) if value in side.numbers else _folded(side, value)
    return int(known[()]) if known is not None and known.shape == () and known.dtype.kind in "iu" else None


def _folded(side: Side, value: ValueId) -> np.ndarray[Any, Any] | None:
    """A constant within a region, which has no number here."""
    maker = side.program.makers[value]
    return mlir.constant_value(maker.raw) if maker is not None and maker.name == "stablehlo.constant" else None
