"""What a law is asked: an op of each piece, of which one gives a part of what the other gives; and what it answers."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.parts.positions import ZERO, Position
from hlo_lower.verify.read.program import Op, Program, ValueId

Run: TypeAlias = tuple[Position, int]
"""Where a run of positions begins, and how many there are."""


@dataclass(frozen=True)
class Part:
    """A part of a value of the first piece: as many positions of each dim as the value that is compared with it has.

    Attributes:
      value: the value.
      offsets: where the part begins in each dim.
      summed: of a sum the runs of what is summed, for each summed dim; () for all of it, and where nothing is summed.
      dropped: dims of one position that the value which is compared does not have.
    """

    value: ValueId
    offsets: tuple[Position, ...]
    summed: tuple[Run, ...] = ()
    dropped: tuple[int, ...] = ()

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """How many positions of each dim a value of a shape has; None where that is not of as many dims."""
        if len(shape) + len(self.dropped) != len(self.offsets):
            return None
        left = iter(shape)
        return tuple(1 if d in self.dropped else next(left) for d in range(len(self.offsets)))


Goal: TypeAlias = tuple[ValueId, Part]
"""A value of the second piece, and the part that it is to be."""


@dataclass(frozen=True)
class OpParts:
    """Two ops of one name, of which the second is to give a part of what the first gives.

    Attributes:
      programs: the modules of the two.
      first, second: the ops.
      part: the part of the first one's result.
      is_same_body: whether the region at a place is one function in both.
      unclamped: what starts are before they are clamped to [0, last], where the op that reads them clamps them so, too;
        of the module of a number, 0 or 1.
    """

    programs: tuple[Program, Program]
    first: Op
    second: Op
    part: Part
    is_same_body: Callable[[int], bool]
    unclamped: Callable[[int, ValueId, int | NDArray[Any]], ValueId]

    def shape(self, number: int) -> tuple[int, ...]:
        """The shape of the first op's operand."""
        return shape_of(self.programs[0], self.first.inputs[number])

    def its_shape(self, number: int) -> tuple[int, ...]:
        """The shape of the second op's operand."""
        return shape_of(self.programs[1], self.second.inputs[number])

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the first op's result."""
        return shape_of(self.programs[0], self.part.value)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the second op's result."""
        return shape_of(self.programs[1], self.second.results[self.first.results.index(self.part.value)])

    def types_of_results(self, number: int) -> tuple[mlir.RawType, ...]:
        """The types of all results of the op of a module, 0 or 1."""
        op = (self.first, self.second)[number]
        return tuple(self.programs[number].types[value] for value in op.results)

    def run(self, dim: int) -> Run:
        """What of a dim of the result is computed."""
        return self.part.offsets[dim], self.sizes[dim]

    def takes_all(self, dim: int) -> bool:
        """Whether that is all of the dim."""
        return self.sizes[dim] == self.result[dim] and self.part.offsets[dim] == ZERO

    def has_same_attributes(self, *others: str) -> bool:
        """Whether the attributes are the same, but for these."""
        first, second = (without(op, others) for op in (self.first, self.second))
        return first == second

    def goal(self, number: int, runs: Mapping[int, Run] | None = None, dropped: tuple[int, ...] = ()) -> Goal | None:
        """An operand of the second op is some runs of that of the first, all of the other dims; None where its shape
        tells otherwise."""
        shape, given = self.shape(number), runs or {}
        expected = tuple(given[d][1] if d in given else n for d, n in enumerate(shape))
        part = Part(
            self.first.inputs[number],
            tuple(given[d][0] if d in given else ZERO for d in range(len(shape))),
            dropped=dropped,
        )
        return (self.second.inputs[number], part) if part.sizes(self.its_shape(number)) == expected else None

    def start(self, number: int, last: int) -> Goal:
        """A start that is clamped to [0, last] by both ops is the same one."""
        return self.starts((self.second.inputs[number], Part(self.first.inputs[number], ())), last)

    def starts(self, goal: Goal, last: int | NDArray[Any]) -> Goal:
        """The same of starts that are to be a part of those of the first op."""
        its, part = goal
        return self.unclamped(1, its, last), replace(part, value=self.unclamped(0, part.value, last))


def shape_of(program: Program, value: ValueId) -> tuple[int, ...]:
    """The shape of a value of static shape; of others one that fits none."""
    tensor = program.type_of(value)
    return (-1,) if tensor is None or not tensor.is_static else tuple(int(n or 0) for n in tensor.shape)


def without(op: Op, names: Sequence[str]) -> tuple[tuple[str, Hashable], ...]:
    """The attributes of an op but for some."""
    return tuple((name, value) for name, value in op.attributes if name not in names)


def integers(op: Op, name: str) -> tuple[int, ...]:
    """Integers of an attribute."""
    return tuple(mlir.integers_of(op.raw.attributes[name]))


def all_goals(goals: Sequence[Goal | None]) -> list[Goal] | None:
    """The goals, if there is one for each operand."""
    found = [goal for goal in goals if goal is not None]
    return found if len(found) == len(goals) else None


Law: TypeAlias = Callable[[OpParts], list[Goal] | None]
"""What the operands of the second op have to be for its result to be the part; None where the law does not say."""
