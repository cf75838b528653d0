"""The loops of the second piece that count from 0 to a constant, and where the values in them come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.align.loops import counter_at
from hlo_lower.verify.parts.op_parts import shape_of
from hlo_lower.verify.parts.positions import LoopCounter, Position, RuntimeStart
from hlo_lower.verify.read.meanings import folded
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class CountedWhile:
    """A while whose counter begins at 0, grows by one, and stays below a constant.

    Attributes:
      op: the loop.
      counter: it, and how many iterations there are: at least one.
      place: where the counter is carried.
    """

    op: Op
    counter: LoopCounter
    place: int

    @property
    def body(self) -> Body:
        """One iteration."""
        return self.op.bodies[1]


class Scope:
    """Where the values of a module come from: loops, known tensors, and scalars as positions.

    Args:
      program: the module.
      numbers: of its own values of the outermost body, the value numbers.
      known: the tensors that are known, by value number.
    """

    def __init__(self, program: Program, numbers: dict[ValueId, int], known: dict[int, Array]) -> None:
        self._program, self._numbers, self._known_numbers = program, numbers, known
        self.loops: dict[Op, CountedWhile] = {}
        self._counters: dict[ValueId, LoopCounter] = {}
        self._arrays: dict[ValueId, Array | None] = {}
        self._positions: dict[ValueId, Position | None] = {}

    def enter(self, body: Body) -> None:
        """Read the loops of a body, those within them too; outer ones first."""
        for op in body.ops:
            if op.name == "stablehlo.while":
                self._read(op)
            for inner in op.bodies:
                self.enter(inner)

    def _read(self, op: Op) -> None:
        for place, argument in enumerate(op.bodies[1].arguments):
            found = counter_at(self._program, self.integer, op, place)
            if found is not None and found.start == 0 and found.step == 1 and found.trips:
                counter = LoopCounter(op.results[0], found.trips)
                self.loops[op] = CountedWhile(op, counter, place)
                self._counters[argument] = counter

    # --- values ---

    def maker(self, value: ValueId) -> Op | None:
        """The op that makes a value."""
        return self._program.makers[value]

    def number(self, value: ValueId) -> int | None:
        """The value number of what stands in no loop."""
        return self._numbers.get(value)

    def known(self, value: ValueId) -> Array | None:
        """A value that is the same whatever the arguments are, if it was found out."""
        if value in self._numbers:
            return self._known_numbers.get(self._numbers[value])
        if value not in self._arrays:
            op = self._program.makers[value]
            is_one = op is not None and len(op.results) == 1 and not op.bodies
            self._arrays[value] = folded(op.raw, [self.known(v) for v in op.inputs]) if op and is_one else None
        return self._arrays[value]

    def integer(self, value: ValueId) -> int | None:
        """A known scalar integer."""
        array = self.known(value)
        return int(array[()]) if array is not None and array.shape == () and array.dtype.kind in "iu" else None

    def start(self, value: ValueId, last: int) -> Position | None:
        """Where a slice begins that is read at a scalar, clamped to [0, last]; None where that is not known."""
        if last == 0:
            return Position()
        found = self.position(value)
        if found is not None:
            low, high = found.bounds
            if low >= 0 and high <= last:
                return found
            return Position(min(max(found.constant, 0), last)) if found.is_constant else None
        number = self.number(self.unclamped(value, last))
        return None if number is None else Position.of(RuntimeStart(number, last))

    def unclamped(self, value: ValueId, last: int | NDArray[Any]) -> ValueId:
        """What clamps read that clamp no more than a slice or gather: to [0, last], or the greatest of its type."""
        element = self._program.dtype_of(value)
        if element is None or element.kind not in "iu":
            return value
        most = np.minimum(last, int(np.iinfo(element).max))
        while (op := self.maker(value)) is not None and op.name == "stablehlo.clamp":
            low, high = self.known(op.inputs[0]), self.known(op.inputs[2])
            if low is None or high is None or low.any() or not (high == most).all():
                break
            value = op.inputs[1]
        return value

    def position(self, value: ValueId) -> Position | None:
        """A scalar integer as a position, where no step on the way wraps around."""
        if value not in self._positions:
            self._positions[value] = self._fitting(value, self._position(value))
        return self._positions[value]

    def _fitting(self, value: ValueId, position: Position | None) -> Position | None:
        element = self._program.dtype_of(value)
        if position is None or element is None or element.kind not in "iu":
            return None
        low, high = position.bounds
        limits = np.iinfo(element)
        return position if limits.min <= low and high <= limits.max else None

    def _position(self, value: ValueId) -> Position | None:
        if value in self._counters:
            return Position.of(self._counters[value])
        known = self.integer(value)
        if known is not None:
            return Position(known)
        op = self._program.makers[value]
        if op is None or not op.inputs or self._program.type_of(value) is None:
            return None
        if op.name == "stablehlo.convert":
            return self.position(op.inputs[0])
        operands = [self.position(v) for v in op.inputs[:2]]
        if len(op.inputs) != 2 or operands[0] is None or operands[1] is None:
            return None
        return _combined(op.short_name, operands[0], operands[1])


def sliced_at(program: Program, scope: Scope, value: ValueId) -> tuple[Position, ...] | None:
    """Where a slice without strides begins in what it is of; None of another value, and where that is not known."""
    op = scope.maker(value)
    if op is None or op.name not in ("stablehlo.slice", "stablehlo.dynamic_slice"):
        return None
    if op.name == "stablehlo.slice":
        strides = mlir.integers_of(op.raw.attributes["strides"])
        starts = mlir.integers_of(op.raw.attributes["start_indices"])
        return tuple(map(Position, starts)) if set(strides) <= {1} else None
    return starts_of(program, scope, op.inputs[0], op.results[0], op.inputs[1:])


def starts_of(
    program: Program, scope: Scope, whole: ValueId, part: ValueId, starts: Sequence[ValueId]
) -> tuple[Position, ...] | None:
    """Where a tile of a value begins that is read or written at some scalars."""
    extents, sizes = shape_of(program, whole), shape_of(program, part)
    found = [scope.start(v, n - s) for v, n, s in zip(starts, extents, sizes, strict=True)]
    given = tuple(start for start in found if start is not None)
    return given if len(given) == len(found) else None


def _combined(name: str, one: Position, other: Position) -> Position | None:
    """Two positions added, subtracted, or one of them multiplied by or cut off at a constant."""
    if name in ("add", "subtract"):
        return one.plus(other, 1 if name == "add" else -1)
    if other.is_constant:
        one, other = other, one
    if not one.is_constant:
        return None
    if name == "multiply":
        return other.times(one.constant)
    return other.at_most(one.constant) if name == "minimum" else None
