"""Loops of the judge's own reading: their counters, and the integers that their turns have."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import BodyPair, Region, Side
from hlo_lower.verify.read.meanings import find_constant
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, ops_within

# --- counters ---
#
# Loop counters: which values an argument of a loop's body takes, by the judge's own reading.
#
#     while (i = c) cond: i < n  body: ..., i + s
#
# with constants c, n and s > 0: in the body i is one of c, c + s, ... below n, and no sum on the way wraps around as
# long as n + s is a number of the type. In the condition the first value that is not below n comes, too. What else
# begins at a constant and grows by one in each iteration goes along: JAX carries a second counter beside the one that
# is compared. Where the condition asks for more than that (i < n and not all are done), the loop may end earlier.

Array = NDArray[Any]

MOST_TRIPS = 1 << 8
"""Trips of a loop up to which it is read as its trips."""

_BEFORE_END = {"LT": 0, "LE": 1}


@dataclass(frozen=True)
class Counter:
    """A counter's values: start, step, its end, which it does not reach in the body, None where not constant; the
    largest number of its type; and whether nothing else ends the loop."""

    start: int
    step: int
    end: int | None
    largest: int
    is_alone: bool = True

    @property
    def trips(self) -> int:
        """How many iterations it counts, or at most; 0 where its end is not a constant."""
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
    if op.name != names.WHILE:
        return {}
    is_condition = pair.first.body is op.bodies[0]
    program, integer = outer.first.program, _scalars(outer.first)
    counters = ((place, counter_at(program, integer, op, place)) for place in range(len(op.inputs)))
    counted = {place: counter for place, counter in counters if counter is not None}
    found = {place: counter.values(in_condition=is_condition) for place, counter in counted.items()}
    trips = max((counter.trips for counter in counted.values()), default=0)
    for place in range(len(op.inputs)) if trips else ():
        along = along_at(program, integer, op, place, trips + is_condition)
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
    tests = _tests(program, condition.returned[0])
    test = next((test for test in tests if _is_end_of(test, condition.arguments[place])), None)
    if start is None or step is None or step < 1 or test is None:
        return None
    end, dtype = integer(test.inputs[1]), program.dtype_of(loop.inputs[place])
    if dtype is None or dtype.kind not in "iu":
        return None
    largest = int(np.iinfo(dtype).max)
    if end is not None:
        end += _BEFORE_END[_direction(test)]
        if end + step > largest:
            return None
    return Counter(start, step, end, largest, is_alone=len(tests) == 1)


def _tests(program: Program, value: ValueId) -> list[Op]:
    """The operations that have to give true for a value to be true, as far as an `and` is made of them."""
    maker = program.makers[value]
    if maker is None:
        return []
    return [maker] if maker.name != names.AND else [test for part in maker.inputs for test in _tests(program, part)]


def _direction(test: Op) -> str:
    return next(mlir.enum_value(value) for name, value in test.attributes if name == "comparison_direction")


def _is_end_of(test: Op, counter: ValueId) -> bool:
    """Whether an operation asks if a counter is below an end."""
    return test.name == names.COMPARE and test.inputs[0] == counter and _direction(test) in _BEFORE_END


def integer_scalar(known: NDArray[Any] | None) -> int | None:
    """The number that a known scalar is, if it is an integer."""
    return int(known[()]) if known is not None and known.shape == () and known.dtype.kind in "iu" else None


def _scalars(side: Side) -> Callable[[ValueId], int | None]:
    """What tells known integer scalars of a body, and of the regions within, whose constants have no number here."""

    def scalar(value: ValueId) -> int | None:
        maker, number = side.program.makers[value], side.numbers.get(value)
        if number is not None:
            known = side.table.known.get(number)
        else:
            known = mlir.constant_value(maker.raw) if maker is not None and maker.name == names.CONSTANT else None
        return integer_scalar(known)

    return scalar


def trips_of(program: Program, loop: Op) -> int:
    """The trips of a loop that counts from a known number to a known number; 0 of any other."""
    known: Known = {}

    def integer(value: ValueId) -> int | None:
        found = find_constant(value, known, program.maker_of_scalar) if _is_integer(program, value) else None
        return None if found is None else int(found[()])

    counters = (counter_at(program, integer, loop, place) for place in range(len(loop.inputs)))
    return max((counter.trips for counter in counters if counter is not None and counter.is_alone), default=0)


def written_out(loops: frozenset[int]) -> Callable[[Program, Op], int] | None:
    """What tells a program the trips of the loops that are read as their trips, by their numbers."""
    return (
        (lambda program, op: trips_of(program, op) if program.loop_numbers[op.raw] in loops else 0) if loops else None
    )


def only_on_one_side(regions: Iterable[Region]) -> tuple[frozenset[int], frozenset[int]]:
    """The loops of either version, by number, that count so many trips as no loop of the other one does.

    Only loops of regions are looked for, and none that is too long to be written out.
    """
    found: tuple[set[int], set[int]] = (set(), set())
    for region in regions:
        loops = [
            {op.raw: trips_of(side.program, op) for op in ops_within(ops) if op.name == names.WHILE}
            for side, ops in region.sides
        ]
        for (side, _), own, mine, others in zip(region.sides, found, loops, loops[::-1], strict=True):
            numbers = side.program.loop_numbers
            found_here = {raw for raw, trips in mine.items() if 0 < trips <= MOST_TRIPS}
            own.update(numbers[raw] for raw in found_here if mine[raw] not in others.values())
    return frozenset(found[0]), frozenset(found[1])


def may_not_end(side: Side, ops: Sequence[Op]) -> bool:
    """Whether a loop among operations, or in their regions, is none that counts from a constant to a constant, or to
    what is at most a small one."""
    return any(
        (op.name == names.WHILE and not _is_counted(side, op)) or any(may_not_end(side, body.ops) for body in op.bodies)
        for op in ops
    )


def _is_counted(side: Side, loop: Op) -> bool:
    integer = _scalars(side)
    counters = (counter_at(side.program, integer, loop, place) for place in range(len(loop.inputs)))
    most = _greatest_end(side.program, integer, loop)
    return any(
        counter is not None
        and (counter.end is not None or (most is not None and most - counter.start <= MOST_TRIPS * counter.step))
        for counter in counters
    )


def _greatest_end(program: Program, integer: Callable[[ValueId], int | None], loop: Op) -> int | None:
    """What a loop's counter is compared with at most: the minimum of something and a constant, which it may carry."""
    condition, body = loop.bodies
    test = program.makers[condition.returned[0]]
    end = None if test is None or test.name != names.COMPARE else test.inputs[1]
    if end in condition.arguments:
        place = condition.arguments.index(end)
        end = loop.inputs[place] if body.returned[place] == body.arguments[place] else None
    maker = None if end is None else program.makers[end]
    if maker is None or maker.name != names.MINIMUM:
        return None
    return min((known for known in map(integer, maker.inputs) if known is not None), default=None)


def _step(program: Program, integer: Callable[[ValueId], int | None], body: Body, place: int) -> int | None:
    """What a body adds to an argument that it carries on, or None."""
    adder = program.makers[body.returned[place]]
    if adder is None or adder.name != names.ADD:
        return None
    return next((integer(b) for a, b in (adder.inputs, adder.inputs[::-1]) if a == body.arguments[place]), None)


# --- turns ---

MOST_TURNS = 1 << 9
"""Turns that are taken, those of all loops together."""


Known = dict[ValueId, Array | None]


class _TooManyError(Exception):
    """There are more turns than are taken."""


def values_of(region: Region) -> dict[Number, range | tuple[int, ...]]:
    """The values that integers among the inputs of a region take: what turns show, else what counters alone do."""
    side = region.pair.first
    counters = {side.numbers[side.body.arguments[k]]: values for k, values in counters_of(region.pair).items()}
    return {**counters, **integers_met(region)}


def integers_met(region: Region) -> dict[Number, tuple[int, ...]]:
    """For those inputs of a region in a loop that are integers and depend on no argument, all values that they take."""
    side, pair = region.pair.first, region.pair
    around: list[tuple[Op, Body]] = []
    while pair.around is not None:
        around.insert(0, (pair.around[1], pair.first.body))
        pair = pair.around[0]
    if all(op.name != names.WHILE for op, _ in around):
        return {}
    inputs = {number: side.value_of[number] for number in region.inputs if number in side.value_of}
    scalars = {number: value for number, value in inputs.items() if _is_integer(side.program, value)}
    if not scalars:
        return {}
    turns = _Turns(side.program, scalars.values())
    try:
        turns.take(around, {})
    except _TooManyError:
        return {}
    return {n: tuple(sorted(turns.met[v])) for n, v in scalars.items() if v not in turns.unknown and turns.met[v]}


def _is_integer(program: Program, value: ValueId) -> bool:
    tensor, dtype = program.type_of(value), program.dtype_of(value)
    return tensor is not None and tensor.shape == () and dtype is not None and dtype.kind in "iu"


class _Turns:
    """Turns of loops within one another, and what some values are in the innermost body."""

    def __init__(self, program: Program, wanted: Iterable[ValueId]) -> None:
        self._program, self._left = program, MOST_TURNS
        self.met: dict[ValueId, set[int]] = {value: set() for value in wanted}
        self.unknown: set[ValueId] = set()

    def take(self, around: Sequence[tuple[Op, Body]], known: Mapping[ValueId, Array | None]) -> None:
        """Go through the turns of what stands around the innermost body, from the outside.

        Raises:
          _TooManyError: they are too many.
        """
        if not around:
            self._note(dict(known))
            return
        (op, entered), within = around[0], around[1:]
        if op.name != names.WHILE:
            self.take(within, known)
            return
        condition, body = op.bodies
        here = dict(known)
        carried = [self._value(value, here) for value in op.inputs]
        while True:
            asked = {**known, **dict(zip(condition.arguments, carried, strict=True))}
            if entered is condition:
                self.take(within, asked)
            goes_on = self._value(condition.returned[0], asked)
            if goes_on is None:  # any turn: what it carries is not known
                self.take(within, known)
                return
            if not goes_on:
                return
            if self._left == 0:
                raise _TooManyError
            self._left -= 1
            there: Known = {**known, **dict(zip(body.arguments, carried, strict=True))}
            if entered is body:
                self.take(within, there)
            carried = [self._value(value, there) for value in body.returned]

    def _note(self, known: Known) -> None:
        for value, met in self.met.items():
            found = self._value(value, known)
            if found is None:
                self.unknown.add(value)
            else:
                met.add(int(found[()]))

    def _value(self, value: ValueId, known: Known) -> Array | None:
        return find_constant(value, known, self._program.maker_of_scalar)
