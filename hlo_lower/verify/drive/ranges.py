"""Between which numbers values lie, whatever the inputs are: what a comparison cannot come out as no run need show.

An interval for each value of a piece, by a law for each operation; integers wrap, so a law that leaves the type's range
gives all of it. NaN lies in no interval, and compares as nothing. Of a choice by a comparison with a known number each
branch is looked at under what the comparison says there (`select(i < 0, i + n, i)`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isinf, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, python_integers, type_range
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import LAYOUT, MIRRORED, OPPOSITE, OPS, PICKS
from hlo_lower.verify.align.loops import along_at, counter_at
from hlo_lower.verify.align.piece import module_of
from hlo_lower.verify.bounds.compare import is_inexact
from hlo_lower.verify.drive import ties
from hlo_lower.verify.drive.sample_sizes import compute_integers
from hlo_lower.verify.patience import LateError, patience
from hlo_lower.verify.read.meanings import DIVISIONS, MOVES
from hlo_lower.verify.read.program import Op, Program, ValueId, ops_within
from hlo_lower.verify.run import Executable

Number: TypeAlias = int | float
Interval: TypeAlias = tuple[Number, Number]

DEEP = 6
"""Operations behind a branch that are looked at again under what its condition says."""

MOST_UNDER = 200
"""Operations that are looked at under what choices say, for one value: choices within choices are many ways."""

TURNS = 2
"""Turns of a loop in which intervals grow by what the body returns; then those that still do become the type's."""

TURNED = 20_000
"""Operations that are looked at in turns of loops, for one module; then a loop carries all of a type at first."""

SLACK = 2.0**-6
"""What rounding moves a float by at most, of itself: of types of one byte, too."""

SMALLEST = 1e-37
"""Floats of a smaller magnitude may be flushed to zero."""

TRUTH = 0, 1
_SAME = LAYOUT | PICKS

NUMBER_STEPS = 8
"""Operations behind a value that are looked at for NaN."""

KEEPS_NUMBERS = LAYOUT | {names.ABS, names.NEGATE, names.MAXIMUM, names.MINIMUM, names.SELECT}
"""Operations that give NaN for NaN alone."""

EXTREMES = (names.MAXIMUM, names.MINIMUM)
"""Of some elements and a start no less, or no more, than each."""


@dataclass
class Ranges:
    """The intervals of a module's values, found when they are asked for.

    Args:
      program: the module.
      counters: all that some arguments of its function may be, in order, by place; the ends are enough.
      sorts: whether it sorts, or stands in the place of what does: which elements of a tensor are compared with each
        other is the network's matter then, and some always come in one order.
      no_nan: whether runs with NaN are left out, so that what only these have is not asked for.
      function: the public function whose values are asked for.
    """

    program: Program
    counters: Mapping[int, Sequence[float]]
    sorts: bool = False
    no_nan: bool = False
    function: str = "main"

    def __post_init__(self) -> None:
        self._known: dict[ValueId, Interval] = {}
        self._under_left = 0
        self._turned_left = TURNED
        self._moved: dict[Op, frozenset[ValueId]] = {}
        self._tables = Tables(self.program, self._integer)
        body = self.program.entries[self.function]
        self._roots: dict[ValueId, frozenset[ValueId]] = {}
        for op in ops_within(body.ops):
            for value in op.results:
                moved = op.inputs[1:] if op.name == names.SELECT else op.inputs if op.name in MOVES else ()
                roots = (self._roots.get(v, frozenset({v})) for v in moved)
                self._roots[value] = frozenset[ValueId]().union(*roots) if moved else frozenset({value})
        self._arguments = frozenset(body.arguments)
        for place, values in self.counters.items():
            if len(values):
                self._known[body.arguments[place]] = values[0], values[-1]

    def _is_exchange(self, value: ValueId) -> bool:
        """Whether a truth value tells the order of elements of one tensor, and of their numbers."""
        maker = self.program.makers[value]
        if maker is None:
            return False
        if maker.name in (names.AND, names.OR, names.NOT):
            return all(map(self._is_exchange, maker.inputs))
        roots = [self._roots.get(v, frozenset({v})) for v in maker.inputs]
        return maker.name == names.COMPARE and roots[0] == roots[1]

    def know_constants(self) -> None:
        """Compute what depends on no input.

        Raises:
          CannotRunError: it is not run.
        """
        own_ops = self.program.entries[self.function].ops
        ops = [op for op in own_ops if not any(v in self.program.varying for v in op.reads)]
        read = {v for op in ops_within(own_ops) for v in op.reads}
        values = [v for op in ops for v in op.results if v in read and self._dtype(v) is not None]
        if not values:
            return
        own = {value: value for value in range(len(self.program.types))}
        module = module_of(self.program, ops, {}, own, values, [])
        found = (_interval(array) for array in Executable(module, "quick").run([]))
        told = {value: interval for value, interval in zip(values, found, strict=True) if interval is not None}
        self._known = {v: k for v, k in self._known.items() if v in self._arguments} | told
        self._tables = Tables(self.program, self._integer)

    def _dtype(self, value: ValueId) -> np.dtype[Any] | None:
        tensor = self.program.type_of(value)
        return self.program.dtype_of(value) if tensor is not None and tensor.is_static else None

    # --- what may be ---

    def may_be(self, op: Op, outcome: str) -> bool:
        """Whether an operation may come out so, and does not in every run: what depends on no input is always alike."""
        if not any(value in self.program.varying for value in op.inputs) and op.name != names.WHILE:
            return False
        truth = {names.COMPARE: op.results, names.SELECT: op.inputs}.get(op.name, (None,))[0]
        if self.sorts and truth is not None and self._is_exchange(truth):
            return False
        if outcome in ties.TIES:
            return ties.may_be(op, outcome, self.program, self.of)
        match op.name:
            case names.COMPARE | names.MAXIMUM | names.MINIMUM:
                return self._compare(op.inputs[0], op.inputs[1], outcome)
            case names.CLAMP:
                return self._compare(op.inputs[1], op.inputs[0 if outcome == "less" else 2], outcome)
            case names.SELECT:
                return (outcome == "true") in self._truths(op.inputs[0])
            case names.IF:
                return (outcome == "0") in self._truths(op.inputs[0])
            case names.CASE:
                low, high = self.of(op.inputs[0])
                last = len(op.bodies) - 1
                return low <= int(outcome) <= high or (int(outcome) == last and (low < 0 or high > last))
            case names.WHILE:
                return self._is_entered(op)
            case _:
                return True

    def _is_entered(self, loop: Op) -> bool:
        """Whether a loop may be entered: none that counts from a constant to one that is not greater."""
        counters = (counter_at(self.program, self._integer, loop, place) for place in range(len(loop.inputs)))
        return not any(c is not None and c.end is not None and not c.trips for c in counters)

    def _truths(self, value: ValueId) -> set[bool]:
        low, high = self.of(value)
        return {bool(low), bool(high)}

    def _compare(self, first: ValueId, second: ValueId, outcome: str) -> bool:
        if first == second or self._is_clamped(first, second) or self._is_clamped(second, first):
            return outcome == "equal" or (outcome == "different" and self._is_float(first))
        (a, b), (c, d) = self.of(first), self.of(second)
        if outcome == "equal" and (self._is_nan_apart(first, second) or self._is_nan_apart(second, first)):
            return False
        may_be = {
            "less": a < d,
            "greater": b > c,
            "equal": a <= d and c <= b,
            "different": not a == b == c == d,
        }[outcome]
        signs = {"less": (-1,), "greater": (1,), "equal": (0,), "different": (-1, 1)}[outcome]
        return may_be and any(self._tables.may_be(first, second, sign) for sign in signs)

    def _is_clamped(self, value: ValueId, number: ValueId) -> bool:
        """Whether a value is a number clamped to bounds between which that lies anyway."""
        maker = self.program.makers[value]
        if maker is None or maker.name != names.CLAMP or maker.inputs[1] != number:
            return False
        (_, least), (most, _) = self.of(maker.inputs[0]), self.of(maker.inputs[2])
        low, high = self.of(number)
        return least <= low and high <= most

    def _is_nan_apart(self, bits: ValueId, number: ValueId) -> bool:
        """Whether integers are the bits of floats of which one NaN alone may be among them, and a number another NaN.

        So sorts and total orders are written: `select(x != x, nan, x)`, as bits, is no NaN but this one.
        """
        maker, wanted, dtype = self.program.makers[bits], self._integer(number), self._dtype(bits)
        if maker is None or maker.name != names.BITCAST_CONVERT or wanted is None or dtype is None:
            return False
        choice, kind = self.program.makers[maker.inputs[0]], self._dtype(maker.inputs[0])
        if choice is None or choice.name != names.SELECT or kind is None or kind.itemsize != dtype.itemsize:
            return False
        test, nan = self.program.makers[choice.inputs[0]], self._splat(choice.inputs[1])
        if test is None or test.name != names.COMPARE or nan is None or not self._is_float(maker.inputs[0]):
            return False
        is_nan = (
            test.inputs[0] == test.inputs[1] and mlir.enum_value(test.raw.attributes["comparison_direction"]) == "NE"
        )
        if not is_nan or not self._is_or_zero(choice.inputs[2], test.inputs[0]):
            return False
        seen = np.asarray([wanted]).astype(dtype).view(kind)
        return bool(seen[0] != seen[0]) and seen.tobytes() != nan.tobytes()

    def _is_or_zero(self, value: ValueId, of: ValueId) -> bool:
        """Whether a value's elements are those of another one, or a constant that is no NaN."""
        maker = self.program.makers[value]
        if value == of or maker is None or maker.name != names.SELECT:
            return value == of
        other = self._splat(maker.inputs[1])
        return maker.inputs[2] == of and other is not None and bool(np.all(other == other))

    def _splat(self, value: ValueId) -> NDArray[Any] | None:
        """The one number that a constant is, broadcast or not."""
        found = self.program.constant_behind(value)
        if found is None or not found.size:
            return None
        first = found.reshape(-1)[:1]
        return first if found.tobytes() == first.tobytes() * found.size else None

    # --- intervals ---

    def of(self, value: ValueId) -> Interval:
        """The interval of a value.

        Raises:
          LateError: the deadline of the verification is over; what was taken to hold until then is forgotten.
        """
        try:
            return self._interval_of(value)
        except LateError:
            self._known.clear()
            raise

    def _interval_of(self, value: ValueId) -> Interval:
        pending = [value]
        while pending:  # long chains of operations, without recursion
            last = pending[-1]
            maker = self.program.makers[last]
            missing = [v for v in maker.inputs if v not in self._known] if maker is not None else []
            if last in self._known or not missing:
                pending.pop()
                if last not in self._known:
                    self._known[last] = self._find_interval(last)
            else:
                pending += missing
        return self._known[value]

    def _find_interval(self, value: ValueId) -> Interval:
        patience().deadline.check()
        maker = self.program.makers[value]
        if maker is None:
            return self._of_argument(value)
        self._under_left = MOST_UNDER
        return self._by_law(maker, value, [self._known[v] for v in maker.inputs], {})

    def _type(self, value: ValueId) -> Interval:
        """All that the type of a value holds."""
        tensor = self.program.type_of(value)
        return (None if tensor is None else type_range(tensor.element_name)) or (-inf, inf)

    def _is_float(self, value: ValueId) -> bool:
        tensor = self.program.type_of(value)
        return tensor is None or not element_type(tensor.element_name).is_integer

    def _of_argument(self, value: ValueId) -> Interval:
        """An argument of the function or of a body: of a loop's counter its values; else what went in or came out."""
        body = self.program.homes[value]
        loop = body.owner
        if loop is None or loop.name != names.WHILE or value not in body.arguments:
            return self._type(value)
        place = body.arguments.index(value)
        if _stays(loop, place):
            return self.of(loop.inputs[place])
        if self._is_float(value):
            return self._type(value)
        self._know_loop(loop)
        return self._known[value]

    def _know_loop(self, loop: Op) -> None:
        """Find the intervals of the integers that a loop carries: what counts its turns, and the others by induction,
        all at once.

        Intervals grow from those of the initial values until what the body returns lies within them, those that do not
        stop to the whole type. What the body returns then, with the initial values, is not more.
        """
        own = range(len(loop.inputs))
        places = [k for k in own if not self._is_float(loop.inputs[k]) and not _stays(loop, k)]
        first, everything = ({k: of(loop.inputs[k]) for k in places} for of in (self.of, self._type))
        before = dict(self._known)
        self._know_carried(loop, everything)
        met = [{k: self._met(loop, k, in_condition=inside) or () for k in places} for inside in (True, False)]
        self._known = before
        for body, values in zip(loop.bodies, met, strict=True):
            self._known |= {body.arguments[k]: _ends(values[k] or told) for k, told in met[0].items() if told}
        found, turn = {k: first[k] for k in places if not met[0][k]}, 0
        if self._turned_left <= 0:
            found = {k: everything[k] for k in found}
        while True:
            returned = self._returned_of(loop, found)
            grown = {k: _hull([interval, returned[k]]) for k, interval in found.items()}
            if grown == found:
                break
            if turn >= TURNS or self._turned_left <= 0:
                grown = {k: found[k] if grown[k] == found[k] else everything[k] for k in found}
            found, turn = grown, turn + 1
        self._know_carried(loop, {k: _hull([first[k], returned[k]]) for k in found})

    def _returned_of(self, loop: Op, carried: Mapping[int, Interval]) -> dict[int, Interval]:
        """What a body returns where it is given values in some intervals; nothing else is known by that then."""
        before = dict(self._known)
        self._know_carried(loop, carried)
        returned = {k: self.of(loop.bodies[1].returned[k]) for k in carried}
        moved = self._moved_by(loop)
        self._turned_left -= len(moved)
        self._known = before | {v: interval for v, interval in self._known.items() if v not in moved}
        return returned

    def _moved_by(self, loop: Op) -> frozenset[ValueId]:
        """What depends on what a loop carries, within its bodies, and what the loops in these carry."""
        if loop not in self._moved:
            moved = {argument for body in loop.bodies for argument in body.arguments}
            for op in ops_within([op for body in loop.bodies for op in body.ops]):
                moved.update(argument for body in op.bodies for argument in body.arguments)
                if op.bodies or not moved.isdisjoint(op.inputs):
                    moved.update(op.results)
            self._moved[loop] = frozenset(moved)
        return self._moved[loop]

    def _know_carried(self, loop: Op, carried: Mapping[int, Interval]) -> None:
        """Take what a loop carries as within some intervals, and in the body as its condition says besides."""
        condition, body = loop.bodies
        for place, interval in carried.items():
            self._known[condition.arguments[place]] = interval
        facts = self._facts(condition.returned[0], holds=True) if carried else {}
        for place, interval in carried.items():
            told = facts.get(condition.arguments[place])
            inside = interval if told is None else _intersect([interval, told])
            self._known[body.arguments[place]] = inside if inside[0] <= inside[1] else interval

    def _met(self, loop: Op, place: int, *, in_condition: bool) -> Sequence[int] | None:
        """The integers that a loop carries at a place, where it counts them."""
        counters = [counter_at(self.program, self._integer, loop, k) for k in range(len(loop.inputs))]
        counter = counters[place]
        if counter is not None and counter.end is not None:
            return counter.values(in_condition=in_condition)
        trips = max((c.trips for c in counters if c is not None), default=0)
        return along_at(self.program, self._integer, loop, place, trips + in_condition) if trips else None

    def _integer(self, value: ValueId) -> int | None:
        low, high = self.of(value)
        return int(low) if low == high and not self._is_float(value) else None

    def _fit_type(self, value: ValueId, interval: Interval) -> Interval:
        """Fit an interval to a value's type: integers that may wrap get the whole type, floats a margin for
        rounding."""
        low, high = self._type(value)
        if self._is_float(value):
            dtype = self.program.dtype_of(value)
            return _apart(interval[0], -1, dtype), _apart(interval[1], 1, dtype)
        return interval if low <= interval[0] and interval[1] <= high else (low, high)

    def _by_law(self, op: Op, value: ValueId, given: list[Interval], told: Mapping[ValueId, Interval]) -> Interval:
        """The interval of a result from those of the operands.

        Args:
          op, value: the operation and its result.
          given: the operands' intervals.
          told: what is known of some values where this is looked at.
        """
        name, everything = op.name, self._type(value)
        if name == names.SHIFT_RIGHT_ARITHMETIC and everything[0] == 0:  # the first bit of an unsigned number, too
            return everything
        if len(op.results) == 1 and (law := _LAWS.get(name)) is not None:
            moved = self._moved_by_clamp(op, given[1]) if name == names.SUBTRACT else None
            found = law(given) if moved is None else moved
            return everything if found is None else self._fit_type(value, found)
        if name == names.SLICE:
            bounds = zip(
                *(mlir.integers_of(op.raw.attributes[k]) for k in ("start_indices", "limit_indices")), strict=True
            )
            return self._part(op.inputs[0], list(bounds), DEEP)
        if op.name in _SAME:
            return given[0]
        if name == names.ABS:
            return self._magnitude(value, given[0])
        if (spec := OPS.get(name)) is not None and spec.image is not None:
            return spec.image
        match name:
            case names.CONSTANT:
                known = mlir.constant_value(op.raw)
                return (None if known is None else _interval(known)) or everything
            case names.IOTA:
                dim = mlir.integer_of(op.raw.attributes["iota_dimension"])
                shape = mlir.static_shape(op.raw.results[0].type)
                return self._fit_type(value, (0, max(shape[dim] - 1, 0)))
            case names.CONCATENATE | names.DYNAMIC_UPDATE_SLICE | names.PAD:
                count = 2 if name != names.CONCATENATE else len(given)
                return _hull(given[:count])
            case names.SORT:
                return given[op.results.index(value)]
            case names.SELECT:
                return self._interval_of_choice(op, given, told)
            case names.COMPARE:
                return self._interval_of_comparison(op, given)
            case names.CONVERT:
                return self._interval_of_conversion(op, value, given[0])
            case names.DOT_GENERAL | names.DOT:
                return self._interval_of_product(op, value, given) or everything
            case names.SCATTER if len(op.results) == 1:
                return self._interval_of_reduction(op, value, [given[2], given[0]]) or everything
            case names.REDUCE | names.REDUCE_WINDOW:
                return self._interval_of_reduction(op, value, given) or everything
            case names.NOT if everything == TRUTH:
                return 1 - given[0][1], 1 - given[0][0]
            case names.POPCNT | names.COUNT_LEADING_ZEROS:
                return 0, 64
            case "chlo.top_k" if value == op.results[-1]:
                return 0, max(mlir.static_shape(op.raw.operands[0].type)[-1] - 1, 0)
            case names.WHILE:
                return self.of(op.bodies[0].arguments[op.results.index(value)])
            case names.CASE | names.IF:
                place = op.results.index(value)
                return _hull([self.of(body.returned[place]) for body in op.bodies])
            case _:
                return everything

    def _part(self, value: ValueId, bounds: list[tuple[int, int]], deep: int) -> Interval:
        """The interval of a part of a value: of a constant its numbers there, of what is concatenated the pieces that
        it meets, also in a product."""
        maker = self.program.makers[value]
        if maker is None or not deep:
            return self.of(value)
        if maker.name == names.CONSTANT and (known := mlir.constant_value(maker.raw)) is not None:
            return _interval(known[tuple(slice(*ends) for ends in bounds)]) or self.of(value)
        if maker.name == names.CONCATENATE:
            dim, start, met = mlir.integer_of(maker.raw.attributes["dimension"]), 0, list[Interval]()
            for given, raw in zip(maker.inputs, maker.raw.operands, strict=True):
                size = mlir.static_shape(raw.type)[dim]
                low, high = max(bounds[dim][0] - start, 0), min(bounds[dim][1] - start, size)
                if low < high:
                    met.append(self._part(given, [*bounds[:dim], (low, high), *bounds[dim + 1 :]], deep - 1))
                start += size
            return _hull(met) if met else self.of(value)
        if maker.name == names.DOT_GENERAL:
            return self._part_of_product(maker, value, bounds, deep)
        return self.of(value)

    def _part_of_product(self, op: Op, value: ValueId, bounds: list[tuple[int, int]], deep: int) -> Interval:
        numbers = mlir.dot_dimension_numbers(op.raw)
        sides = (
            (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
            (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
        )
        given: list[Interval] = []
        place = len(sides[0][0])
        for operand, raw, (batching, contracting) in zip(op.inputs, op.raw.operands, sides, strict=True):
            own = [(0, size) for size in mlir.static_shape(raw.type)]
            for number, dim in enumerate(batching):
                own[dim] = bounds[number]
            for dim in (d for d in range(len(own)) if d not in (*batching, *contracting)):
                own[dim] = bounds[place]
                place += 1
            given.append(self._part(operand, own, deep - 1))
        return self._interval_of_product(op, value, given)

    def _magnitude(self, value: ValueId, given: Interval) -> Interval:
        low, high = given
        if not self._is_float(value) and low == self._type(value)[0]:  # it stays negative
            return self._type(value)
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))

    def _interval_of_choice(self, op: Op, given: list[Interval], told: Mapping[ValueId, Interval]) -> Interval:
        """The interval of a select: each branch is read under what the condition says."""
        if given[0][0] == given[0][1]:
            return given[1 if given[0][0] else 2]
        found: list[Interval] = []
        for place, holds in ((1, True), (2, False)):
            facts = {**told, **self._facts(op.inputs[0], holds)}
            if any(low > high for low, high in facts.values()):
                continue
            found.append(self._under(op.inputs[place], facts, DEEP) if facts else given[place])
        return _hull(found) if found else _hull(given[1:])

    def _facts(self, predicate: ValueId, holds: bool) -> dict[ValueId, Interval]:
        """What a predicate says of what it compares."""
        maker = self.program.makers[predicate]
        if maker is None:
            return {}
        name = maker.name
        if name == names.NOT:
            return self._facts(maker.inputs[0], not holds)
        if name in (names.AND, names.OR):
            first, second = (self._facts(value, holds) for value in maker.inputs)
            if holds == (name == names.AND):  # both are so
                return {v: _intersect([f[v] for f in (first, second) if v in f]) for v in {*first, *second}}
            return self._in_either(first, second)
        if name != names.COMPARE or any(self._is_float(v) for v in maker.inputs):
            return {}
        direction = mlir.enum_value(maker.raw.attributes["comparison_direction"])
        direction = direction if holds else OPPOSITE[direction]
        if self._type(maker.inputs[0]) == TRUTH:
            return self._facts_of_truths(maker, direction)
        found: dict[ValueId, Interval] = {}
        for one, other, how in ((0, 1, direction), (1, 0, MIRRORED[direction])):
            (low, high), (least, most) = self.of(maker.inputs[one]), self.of(maker.inputs[other])
            low = max(low, {"GT": least + 1, "GE": least, "EQ": least}.get(how, low))
            high = min(high, {"LT": most - 1, "LE": most, "EQ": most}.get(how, high))
            found[maker.inputs[one]] = low, high
        return found

    def _facts_of_truths(self, compare: Op, direction: str) -> dict[ValueId, Interval]:
        """What it says that a truth value is, or is not, a known one."""
        for one, other in (compare.inputs, compare.inputs[::-1]):
            low, high = self.of(other)
            if low == high and direction in ("EQ", "NE"):
                return self._facts(one, bool(low) == (direction == "EQ"))
        return {}

    def _in_either(self, first: dict[ValueId, Interval], second: dict[ValueId, Interval]) -> dict[ValueId, Interval]:
        """What holds where one of two predicates does; a predicate that cannot hold says nothing."""
        possible = [facts for facts in (first, second) if all(low <= high for low, high in facts.values())]
        if len(possible) == 1:
            return possible[0]
        return {v: _hull([first[v], second[v]]) for v in first.keys() & second.keys()}

    def _under(self, value: ValueId, facts: Mapping[ValueId, Interval], deep: int) -> Interval:
        """A value's interval where something is known of others."""
        if value in facts:
            return facts[value]
        maker = self.program.makers[value]
        self._under_left -= 1
        is_told = maker is not None and deep > 0 and self._under_left > 0
        if maker is None or not is_told or len(maker.results) != 1 or maker.name not in _BY_PLACE:
            return self.of(value)
        if maker.name == names.BROADCAST_IN_DIM and not _keeps_places(maker):
            return self.of(value)
        return self._by_law(maker, value, [self._under(v, facts, deep - 1) for v in maker.inputs], facts)

    def _interval_of_comparison(self, op: Op, given: list[Interval]) -> Interval:
        direction = mlir.enum_value(op.raw.attributes["comparison_direction"])
        if not all(self._is_number(v) for v in op.inputs):
            return TRUTH
        (a, b), (c, d) = given
        if self._is_clamped(*op.inputs) or self._is_clamped(*op.inputs[::-1]):
            return (1, 1) if direction in ("LE", "GE", "EQ") else (0, 0)
        always, never = {
            "LT": (b < c, a >= d),
            "LE": (b <= c, a > d),
            "GT": (a > d, b <= c),
            "GE": (a >= d, b < c),
            "EQ": (a == b == c == d, b < c or a > d),
            "NE": (b < c or a > d, a == b == c == d),
        }[direction]
        return (1, 1) if always else (0, 0) if never else TRUTH

    def _is_number(self, value: ValueId, left: int = NUMBER_STEPS) -> bool:
        """Whether no element of a value may be NaN, as what a mask that chooses nothing leaves of floats."""
        maker, constant = self.program.makers[value], self.program.constant_behind(value)
        if constant is not None or not self._is_float(value):
            return constant is None or bool((constant == constant).all())
        if maker is None or left == 0:
            return False
        inputs = maker.inputs
        if maker.name == names.SELECT:
            inputs = [inputs[1 if is_true else 2] for is_true in self._truths(inputs[0])]
        is_kept = maker.name in KEEPS_NUMBERS or (maker.name == names.REDUCE and _by(maker) in EXTREMES)
        return is_kept and all(self._is_number(v, left - 1) for v in inputs)

    def _interval_of_conversion(self, op: Op, value: ValueId, given: Interval) -> Interval:
        if self._is_float(value):
            return self._fit_type(value, given)
        if self._type(value) == TRUTH:
            return TRUTH
        if self._is_float(op.inputs[0]):  # NaN becomes a number
            return self._type(value)
        return self._fit_type(value, given)

    def _interval_of_reduction(self, op: Op, value: ValueId, given: list[Interval]) -> Interval | None:
        """The interval of a reduction: that of operands and start where the body maps it into itself; of an extreme no
        more than its element and start give; a sum grows with the number of elements."""
        body, place, count = op.bodies[0], op.results.index(value), len(op.results)
        if self.no_nan and (found := self._place_of_largest(op)) is not None:
            return min(given[0][0], given[1][0]), found
        for k, argument in enumerate(body.arguments):
            self._known.setdefault(argument, _hull([given[k % count], given[k % count + count]]))
        if op.name == names.REDUCE and _by(op) in EXTREMES and _takes_some(op):
            return _LAWS[_by(op)](given)
        inside, found = self._known[body.arguments[place]], self.of(body.returned[place])
        if inside[0] <= found[0] and found[1] <= inside[1]:
            return inside
        if count > 1 or len(body.ops) != 1 or body.ops[0].name != names.ADD or body.returned[0] in body.arguments:
            return None
        low, high = min(given[0][0], 0), max(given[0][1], 0)
        if self._is_float(value):
            return _signs(min(low, given[1][0]), max(high, given[1][1]))
        times = _count(op)
        return self._fit_type(value, (given[1][0] + _times(times, low), given[1][1] + _times(times, high)))

    def _moved_by_clamp(self, op: Op, given: Interval) -> Interval | None:
        """How far a number is moved where it is clamped, of a difference of both; None of another difference."""
        clamp = self.program.makers[op.inputs[0]]
        if clamp is None or clamp.name != names.CLAMP or clamp.inputs[1] != op.inputs[1]:
            return None
        least, most = self.of(clamp.inputs[0]), self.of(clamp.inputs[2])
        if least[1] > most[0] or self._is_float(op.inputs[1]):
            return None
        return min(0, most[0] - given[1]), max(0, least[1] - given[0])

    def _place_of_largest(self, op: Op) -> Number | None:
        """What the least number is at most that stands where an element is the largest one: there is one, NaN aside."""
        if not (op.name == names.REDUCE and _by(op) == names.MINIMUM):
            return None
        makers = self.program.makers
        choice = makers[op.inputs[0]]
        test = makers[choice.inputs[0]] if choice is not None and choice.name == names.SELECT else None
        if choice is None or test is None or test.name != names.COMPARE:
            return None
        spread = makers[test.inputs[1]]
        largest = makers[spread.inputs[0]] if spread is not None and spread.name == names.BROADCAST_IN_DIM else None
        if largest is None or spread is None or largest.name != names.REDUCE or _by(largest) != names.MAXIMUM:
            return None
        dims = mlir.integers_of(op.raw.attributes["dimensions"])
        rest = [d for d in range(len(mlir.static_shape(op.raw.operands[0].type))) if d not in dims]
        is_so = (
            mlir.enum_value(test.raw.attributes["comparison_direction"]) == "EQ"
            and largest.inputs[0] == test.inputs[0]
            and sorted(mlir.integers_of(largest.raw.attributes["dimensions"])) == sorted(dims)
            and list(mlir.integers_of(spread.raw.attributes["broadcast_dimensions"])) == rest
            and self.of(largest.inputs[1])[1] == -inf
        )
        return self.of(choice.inputs[1])[1] if is_so else None

    def _interval_of_product(self, op: Op, value: ValueId, given: list[Interval]) -> Interval:
        """The interval of a matrix product: a sum of at most as many products as the first factor has elements."""
        low, high = _product(given[0], given[1])
        if self._is_float(value):
            return _signs(low, high)
        times = prod(mlir.static_shape(op.raw.operands[0].type))
        return self._fit_type(value, (_times(times, min(low, 0)), _times(times, max(high, 0))))


def _stays(loop: Op, place: int) -> bool:
    """Whether what a loop carries at a place stays what it begins with."""
    body = loop.bodies[1]
    return body.returned[place] == body.arguments[place]


def _ends(values: Sequence[int]) -> Interval:
    """The ends of numbers in order."""
    return min(values[0], values[-1]), max(values[0], values[-1])


def _by(op: Op) -> str:
    """The one operation that a reduction of one operand is made by."""
    body = op.bodies[0]
    is_one = len(op.results) == 1 and len(body.ops) == 1 and list(body.returned) == list(body.ops[0].results)
    return body.ops[0].name if is_one and sorted(body.ops[0].inputs) == sorted(body.arguments) else ""


def _takes_some(reduce: Op) -> bool:
    """Whether each result of a reduction takes in an element at least."""
    shape = mlir.static_shape(reduce.raw.operands[0].type)
    return all(shape[dim] for dim in mlir.integers_of(reduce.raw.attributes["dimensions"]))


def _count(op: Op) -> int:
    """How many elements each result of a reduction is made of, at most."""
    if op.name == names.REDUCE_WINDOW:
        return prod(mlir.integers_of(op.raw.attributes["window_dimensions"]))
    return prod(mlir.static_shape(op.raw.operands[2 if op.name == names.SCATTER else 0].type))


def _keeps_places(broadcast: Op) -> bool:
    """Whether each element of a broadcast one stays where it is, or is the only one."""
    given, made = (mlir.static_shape(v.type) for v in (broadcast.raw.operands[0], broadcast.raw.results[0]))
    dims = list(mlir.integers_of(broadcast.raw.attributes["broadcast_dimensions"]))
    return prod(given) == 1 or (given == made and dims == sorted(dims))


def _apart(end: Number, sign: int, dtype: np.dtype[Any] | None) -> Number:
    """A float's end with what rounding moves it by, in its type: what is too large or too small is infinite or zero."""
    if isinf(end) or end == 0:
        return end
    if dtype is None or dtype.kind == "c":
        return sign * inf
    with np.errstate(all="ignore"):
        moved = float(np.asarray(end + sign * abs(end) * SLACK).astype(dtype))
    if moved != moved or isinf(moved):
        return inf if end > 0 else -inf
    return 0.0 if abs(moved) < SMALLEST else moved


def _signs(low: Number, high: Number) -> Interval:
    """What is known of a long sum of floats: its sign."""
    return (0 if low >= 0 else -inf), (0 if high <= 0 else inf)


def _interval(value: NDArray[Any]) -> Interval | None:
    """Between which numbers the elements of an array lie, NaN aside."""
    if not value.size or value.dtype.kind == "c" or not (value.dtype.kind in "iub" or is_inexact(value)):
        return None
    if is_inexact(value):
        value = np.asarray(value, np.float64)
        value = value[~np.isnan(value)]
        return (float(value.min()), float(value.max())) if value.size else None
    return int(value.min()), int(value.max())


def _intersect(intervals: list[Interval]) -> Interval:
    return max(low for low, _ in intervals), min(high for _, high in intervals)


def _hull(intervals: list[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _times(a: Number, b: Number) -> Number:
    return 0 if 0 in (a, b) else a * b


def _product(x: Interval, y: Interval) -> Interval:
    ends = [_times(a, b) for a in x for b in y]
    return min(ends), max(ends)


def _difference(x: Interval, y: Interval) -> Interval | None:
    ends = x[0] - y[1], x[1] - y[0]
    return None if any(e != e for e in ends) else ends


def _quotient(x: Interval, y: Interval) -> Interval | None:
    """Of integers by positive ones; of floats the sign alone, by numbers that are not -0.0 either."""
    if not all(isinstance(e, int) for e in (*x, *y)):
        return (0, inf) if x[0] >= 0 and y[0] > 0 else None
    if y[0] <= 0:
        return None
    ends = [abs(int(a)) // int(b) * (1 if a >= 0 else -1) for a in x for b in y]
    return min(ends), max(ends)


def _rest(x: Interval, y: Interval) -> Interval | None:
    if not all(isinstance(e, int) for e in (*x, *y)) or y[0] <= 0:
        return None
    most = y[1] - 1
    return max(min(x[0], 0), -most), min(max(x[1], 0), most)


def _and(x: Interval, y: Interval) -> Interval | None:
    if all(e in TRUTH for e in (*x, *y)):
        return min(x[0], y[0]), min(x[1], y[1])
    ends = [b for a, b in (x, y) if a >= 0]
    return (0, min(ends)) if ends else None


def _bits(x: Interval, y: Interval) -> Interval | None:
    """Of `or` and `xor`."""
    if x[0] < 0 or y[0] < 0 or any(isinf(e) for e in (*x, *y)):
        return None
    return 0, (1 << max(int(x[1]), int(y[1])).bit_length()) - 1


def _or(x: Interval, y: Interval) -> Interval | None:
    found = _bits(x, y)
    return found and (max(x[0], y[0]), found[1])


def _shifted_right(x: Interval, y: Interval) -> Interval | None:
    if not (x[0] >= 0 and y[0] >= 0 and y[1] < 64):
        return None
    return int(x[0]) >> int(y[1]), int(x[1]) >> int(y[0])


def _shifted_left(x: Interval, y: Interval) -> Interval | None:
    if not (x[0] >= 0 and y[0] >= 0 and y[1] < 64):
        return None
    return int(x[0]) << int(y[0]), int(x[1]) << int(y[1])


_LAWS: Mapping[str, Callable[[Sequence[Interval]], Interval | None]] = {
    names.ADD: lambda g: _difference(g[0], (-g[1][1], -g[1][0])),
    names.SUBTRACT: lambda g: _difference(g[0], g[1]),
    names.MULTIPLY: lambda g: _product(g[0], g[1]),
    names.NEGATE: lambda g: (-g[0][1], -g[0][0]),
    names.DIVIDE: lambda g: _quotient(g[0], g[1]),
    names.REMAINDER: lambda g: _rest(g[0], g[1]),
    names.MAXIMUM: lambda g: (max(g[0][0], g[1][0]), max(g[0][1], g[1][1])),
    names.MINIMUM: lambda g: (min(g[0][0], g[1][0]), min(g[0][1], g[1][1])),
    names.CLAMP: lambda g: (min(max(g[0][0], g[1][0]), g[2][0]), min(max(g[0][1], g[1][1]), g[2][1])),
    names.AND: lambda g: _and(g[0], g[1]),
    names.OR: lambda g: _or(g[0], g[1]),
    names.XOR: lambda g: _bits(g[0], g[1]),
    names.SHIFT_RIGHT_LOGICAL: lambda g: _shifted_right(g[0], g[1]),
    names.SHIFT_RIGHT_ARITHMETIC: lambda g: _shifted_right(g[0], g[1]),
    names.SHIFT_LEFT: lambda g: _shifted_left(g[0], g[1]),
}

_BY_PLACE = {*_LAWS, names.SELECT, names.CONVERT, names.BROADCAST_IN_DIM, names.RESHAPE}
"""Ops that are looked at under what is known of each place."""


# --- tables over truth values ---
#
# Integers that few truth values decide, as tables over these: what a binary search may hold after so many steps.
#
# Where truth values choose between integers, and what is computed of these is chosen from again, intervals do not say
# that the lower bound stays below the upper one. A table has an axis of two for each truth value that is not known. It
# holds for each element by itself; what is moved to another place has none, other than a constant.


MOST = 12
"""Truth values that are looked at."""

DEEPEST = 200
"""Operations behind a value that are looked at."""

Table = NDArray[np.generic]


class Tables:
    """The tables of a module's values, found when they are asked for.

    Args:
      program: the module.
      integer: a number that all elements of a value are, None where none is known.
    """

    def __init__(self, program: Program, integer: Callable[[ValueId], int | None]) -> None:
        self._program, self._integer = program, integer
        self._known: dict[ValueId, Table | None] = {}
        self._truths = 0

    def may_be(self, first: ValueId, second: ValueId, sign: int) -> bool:
        """Whether an element of a value may lie below (-1), at (0) or above (1) that of another one."""
        one, other = self._of(first, DEEPEST), self._of(second, DEEPEST)
        if one is None or other is None:
            return True
        return bool(np.any(np.sign(python_integers(one) - python_integers(other)) == sign))

    def _of(self, value: ValueId, deep: int) -> Table | None:
        if value not in self._known:
            dtype = self._program.dtype_of(value)
            if dtype is None or dtype.kind not in "iub" or not deep:
                return None
            maker, number = self._program.makers[value], self._integer(value)
            if number is not None:
                found = np.asarray(number).astype(dtype)
            else:
                found = None if maker is None or len(maker.results) != 1 else self._make_table(maker, deep)
            if found is not None:
                found = np.asarray(found).astype(dtype)
            elif dtype == np.bool_ and self._truths < MOST:
                found = np.asarray([False, True]).reshape((2,) + (1,) * self._truths)
                self._truths += 1
            self._known[value] = found
        return self._known[value]

    def _make_table(self, op: Op, deep: int) -> Table | None:
        found: dict[ValueId, Table] = {}
        for value in sorted(op.inputs, key=lambda v: self._program.dtype_of(v) == np.bool_):  # these last: they count
            table = self._of(value, deep - 1)
            if table is None:
                return None
            found[value] = table
        tables = [found[value] for value in op.inputs]
        if not tables or (op.name in DIVISIONS and not np.all(tables[1])):
            return None
        if op.name == names.BROADCAST_IN_DIM and tables[0].size > 1 and not _keeps_order(op):
            return None
        if op.name == names.BITCAST_CONVERT:
            kinds = [self._program.dtype_of(v) for v in (*op.inputs, *op.results)]
            is_same = all(k is not None and k.kind in "iu" and k.itemsize == tables[0].itemsize for k in kinds)
            return tables[0] if is_same else None
        if op.name in (names.SELECT, names.CLAMP) and len({mlir.static_shape(v.type) for v in op.raw.operands}) > 1:
            return None  # each element of a tensor meets the scalar beside it
        return compute_integers(op, tables)


def _keeps_order(op: Op) -> bool:
    """Whether a broadcast adds dimensions of one element alone."""
    dims = list(mlir.integers_of(op.raw.attributes["broadcast_dimensions"]))
    before, after = (mlir.static_shape(v.type) for v in (op.raw.operands[0], op.raw.results[0]))
    return dims == sorted(dims) and prod(before) == prod(after)
