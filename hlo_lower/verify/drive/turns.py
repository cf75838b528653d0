"""Which integers the body of a loop meets, where constants and the turns of loops alone decide: by taking these turns.

    while (j < 4) { while (i < j) { ... x[j, j - 1 - i] ... } }

Here the inner body meets 1, 2, 3 for j and 0, 1, 2 for i. Nothing but integers is computed, so whatever depends on an
argument of the function is not known. Of a loop whose condition is not known, one turn stands for all, in which nothing
that it carries is known. What is said holds for every run, because each run takes the same turns, or turns that differ
in nothing that is said. A branch counts as taken in every turn around it.
"""

from collections.abc import Iterable, Mapping, Sequence

from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.counters import counters_of
from hlo_lower.verify.read.constant_folding import Array, settled
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

MOST_TURNS = 1 << 9
"""Turns that are taken, those of all loops together."""

LOOP = "stablehlo.while"

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
    if all(op.name != LOOP for op, _ in around):
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
        if op.name != LOOP:
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
        return settled(value, known, self._program.maker_of_scalar)
