"""Structural value numbers: two values of the same number are computed alike from values of the same numbers.

The number of an operation is that of its name, its attributes, its result types, the numbers of its operands and of its
regions; known tensors are numbered by value (`hlo_lower.verify.read.meanings`). Order of pure operations,
names, locations, duplicates and dead code do not enter. An operation with effects has a number of its own, by its
body's depth and its place among those with effects there, so that it equals only the one at the same place of the
other module.

Sound by induction over a body: values of one number are equal whenever the values numbered as inputs are. The arguments
of a region are numbered by depth and place, so two regions of one number are one function of what they capture.
"""

from collections.abc import Callable, Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, MIRRORED
from hlo_lower.verify.read.meanings import fold_constant, identity
from hlo_lower.verify.read.program import Body, Op, Program, ValueId

Number = int
"""A value number: equal ones, of two modules that share a table, are equal values."""

_COMMUTATIVE = COMBINING - {names.MAXIMUM, names.MINIMUM}
"""Ops whose operands may be exchanged, also where a compiler takes the first of two zeros for the greater one."""


class Table:
    """The numbers of both modules, which have to be of one context.

    Args:
      is_left_out: whether an attribute of an operation does not count.

    Attributes:
      known: the tensors that are known, by number.
    """

    def __init__(self, is_left_out: Callable[[Op, str], bool] | None = None) -> None:
        self._numbers: dict[Hashable, Number] = {}
        self._kinds: dict[tuple[Op, bool], Number] = {}
        self._folded: dict[tuple[Number, tuple[Number, ...]], Number | None] = {}
        self._with_bodies: dict[Hashable, list[Number]] = {}
        self._is_left_out = is_left_out
        self.known: dict[Number, NDArray[np.generic]] = {}

    def of(self, key: Hashable) -> Number:
        """The number of a key, a new one where it is new."""
        return self._numbers.setdefault(key, len(self._numbers))

    def argument(self, depth: int, place: int, raw_type: mlir.RawType) -> Number:
        """The number of a body's argument."""
        return self.of(("argument", depth, place, raw_type))

    def results(
        self,
        program: Program,
        op: Op,
        numbers: Mapping[ValueId, Number],
        depth: int,
        effect: int | None,
        true: frozenset[Number] = frozenset(),
    ) -> list[Number]:
        """The numbers of an operation's results.

        Args:
          program: its module.
          op: the operation.
          numbers: those of what it reads.
          depth: of the body that it stands in.
          effect: its place among the operations with effects, None for one without.
          true: predicates that hold wherever that body is run.
        """
        inputs = tuple([numbers[v] for v in op.inputs])
        if op.bodies:  # whatever is assumed, they are numbered anew only where what they read from around has changed
            key = op, inputs, tuple([numbers[v] for v in op.captured.values()]), depth, effect, true
            if key not in self._with_bodies:
                self._with_bodies[key] = self._results(program, op, inputs, numbers, depth, effect, true)
            return self._with_bodies[key]
        if len(op.results) == 1 and self.known.keys() >= set(inputs):
            key = self._kind(program, op, is_mirrored=False), inputs
            if key not in self._folded:
                self._folded[key] = self._fold(program, op, inputs)
            if (number := self._folded[key]) is not None:
                return [number]
        return self._results(program, op, inputs, numbers, depth, effect, true)

    def _fold(self, program: Program, op: Op, inputs: tuple[Number, ...]) -> Number | None:
        """The number of what an operation makes of known tensors, None where that is not known."""
        value = fold_constant(op.raw, [self.known[number] for number in inputs])
        if value is None:
            return None
        number = self.of(("known", program.types[op.results[0]], *identity(value)))
        self.known.setdefault(number, value)
        return number

    def _results(
        self,
        program: Program,
        op: Op,
        inputs: tuple[Number, ...],
        numbers: Mapping[ValueId, Number],
        depth: int,
        effect: int | None,
        true: frozenset[Number],
    ) -> list[Number]:
        if op.name == names.SORT and _sorts_one(program, op):
            return list(inputs)
        if op.name == names.SELECT and inputs[0] in true:
            return [inputs[1]]
        is_mirrored = op.name == names.COMPARE and inputs[0] > inputs[1]
        if is_mirrored or (op.name in _COMMUTATIVE and len(inputs) == 2):
            inputs = (min(inputs), max(inputs))
        regions = tuple(
            [
                self.region(program, body, numbers, depth + 1, true | self.true_in(program, body, numbers, depth + 1))
                for body in op.bodies
            ]
        )
        kind = self._kind(program, op, is_mirrored=is_mirrored)
        own = self.of((kind, inputs, regions, effect if effect is None else (depth, effect)))
        return [self.of((own, i)) for i in range(len(op.results))] if len(op.results) != 1 else [own]

    def _kind(self, program: Program, op: Op, *, is_mirrored: bool) -> Number:
        """The number of an operation's name, attributes and types; of a comparison, with its operands as they are or
        exchanged."""
        found = self._kinds.get((op, is_mirrored))
        if found is None:
            attributes, types = self._attributes_that_count(op), tuple(program.types[r] for r in op.results)
            if op.name == names.COMPARE:
                attributes = _with_direction(attributes, mirrored=is_mirrored)
            found = self._kinds[op, is_mirrored] = self.of(("kind", op.name, attributes, types))
        return found

    def _attributes_that_count(self, op: Op) -> tuple[tuple[str, Hashable], ...]:
        if self._is_left_out is None:
            return op.attributes
        return tuple((name, value) for name, value in op.attributes if not self._is_left_out(op, name))

    def true_in(self, program: Program, body: Body, around: Mapping[ValueId, Number], depth: int) -> frozenset[Number]:
        """What holds wherever a body is run: of a loop's body its condition, of the same arguments.

        Arguments of both regions are numbered alike, so that the condition, computed again in the body, has its number.
        Two loops whose conditions are equal, and whose bodies are where these hold, are equal.
        """
        if body.owner is None or body.owner.name != names.WHILE or body is not body.owner.bodies[1]:
            return frozenset()
        condition = body.owner.bodies[0]
        numbers, effects = self.within(program, condition, around, depth)
        return frozenset() if effects else frozenset({numbers[condition.returned[0]]})

    def region(
        self,
        program: Program,
        body: Body,
        around: Mapping[ValueId, Number],
        depth: int,
        true: frozenset[Number] = frozenset(),
    ) -> Number:
        """The number of a region as a function of what it captures, wherever some predicates hold."""
        numbers, effects = self.within(program, body, around, depth, true)
        types = tuple(program.types[a] for a in body.arguments)
        return self.of(("region", types, tuple(numbers[v] for v in body.returned), effects))

    def within(
        self,
        program: Program,
        body: Body,
        around: Mapping[ValueId, Number],
        depth: int,
        true: frozenset[Number] = frozenset(),
    ) -> tuple[dict[ValueId, Number], tuple[Number, ...]]:
        """The numbers of the values within a region, and those of its effects."""
        numbers = _Within(around)
        for place, argument in enumerate(body.arguments):
            numbers[argument] = self.argument(depth, place, program.types[argument])
        effects: list[Number] = []
        for op in body.ops:
            found = self.results(program, op, numbers, depth, len(effects) if op.has_effects else None, true)
            if op.has_effects:
                effects.append(
                    self.of(
                        ("effect", *found, *(numbers[v] for v in op.inputs), op.name, self._attributes_that_count(op))
                    )
                )
            numbers.update(zip(op.results, found, strict=True))
        return numbers, tuple(effects)


class _Within(dict[ValueId, Number]):
    """Numbers of a region, and behind them those of what stands around it."""

    def __init__(self, around: Mapping[ValueId, Number]) -> None:
        super().__init__()
        self._around = around

    def __missing__(self, value: ValueId) -> Number:
        return self._around[value]


def _sorts_one(program: Program, op: Op) -> bool:
    """Whether a sort sorts one element at a time, and so gives what it takes: that of the one expert of each token."""
    tensor = program.type_of(op.inputs[0]) if op.inputs else None
    dim = next((mlir.integer_of(value) for name, value in op.attributes if name == "dimension"), None)
    return tensor is not None and tensor.is_static and dim is not None and int(tensor.shape[dim] or 0) <= 1


def _with_direction(
    attributes: tuple[tuple[str, Hashable], ...], *, mirrored: bool
) -> tuple[tuple[str, Hashable], ...]:
    """The attributes of a comparison with its direction as text, that of exchanged operands where they are."""
    direction = next(mlir.enum_value(value) for name, value in attributes if name == "comparison_direction")
    told = MIRRORED[direction] if mirrored else direction
    return tuple((name, told if name == "comparison_direction" else value) for name, value in attributes)
