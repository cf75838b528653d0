"""Runs that are aimed at outcomes which no run had: by solving what is compared for the inputs, or between two runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of, python_integers
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.piece import Pieces, module_of
from hlo_lower.verify.drive import ties
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.drive.input_roles import small_constants
from hlo_lower.verify.drive.outcomes import BRANCHING, Outcomes, Point, counts_truths
from hlo_lower.verify.judges.devices import Runnable
from hlo_lower.verify.read.meanings import MOVES
from hlo_lower.verify.read.program import Op, Program, ValueId, location_of, ops_within
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

# --- solving ---
#
# Solve a value for its inputs: arguments of a piece for which a value within it becomes what is wanted.
#
# Operations are undone one by one, back to the arguments; what else they read stays what it is in a run. A constant
# that is met through arithmetic is met so: of `(x - 1000) == 1234567` the solution is x = 1235567. What comes out is a
# guess, which rounding and values that are read twice may spoil: it is run as any other input.


Wanted: TypeAlias = tuple[Array, NDArray[np.bool_]]
"""What the elements of a value are to be, and which of them are wanted so."""

Solution: TypeAlias = dict[ValueId, Wanted]
"""What arguments are to be."""

_MOVING = (*MOVES, names.DYNAMIC_SLICE)

MOST = 4
"""Solutions of one value that are looked at."""

DEEP = 200
"""Operations that are undone, one behind the other."""

UNDONE = 4_000
"""Operations that are undone in vain, over all ways back: of n sums of two numbers there are 2^n."""

_TRUE = {"EQ": 0, "NE": 1, "LT": -1, "LE": 0, "GT": 1, "GE": 0}
_FALSE = {"EQ": 1, "NE": 0, "LT": 0, "LE": 1, "GT": 0, "GE": -1}
"""How far the first operand of a comparison lies beside the second one where it holds, and where it does not."""


class Inverse:
    """Undoes the operations of a piece.

    Args:
      program: the piece.
      values: what its values are in a run; of those that depend on no input, too.
      rng: draws among solutions.
      further: how far beside an equal number one lies that is to be unequal, in units in the last place.
    """

    def __init__(
        self, program: Program, values: Mapping[ValueId, Array], rng: np.random.Generator, further: int
    ) -> None:
        self._program, self._values, self._rng, self._further = program, values, rng, further
        self._left = UNDONE

    def solve(self, value: ValueId, wanted: Wanted, deep: int = DEEP) -> Iterator[Solution]:
        """Yield arguments for which a value becomes what is wanted."""
        maker = self._program.makers[value]
        if not deep or self._left <= 0 or value not in self._values:
            return
        if maker is None:
            self._left = UNDONE
            yield {value: wanted}
            return
        self._left -= 1
        name = maker.name
        if name == names.OPTIMIZATION_BARRIER:
            yield from self.solve(maker.inputs[maker.results.index(value)], wanted, deep - 1)
        elif self._values[value].dtype == np.bool_:
            yield from self._truth(maker, wanted, deep)
        elif maker.name in _MOVING:
            yield from self._invert_move(maker, wanted, deep)
        elif name == names.SELECT:
            chosen, (target, where) = self._values[maker.inputs[0]], wanted
            for operand, own in ((1, where & chosen), (2, where & ~chosen)):
                if own.any():
                    yield from self.solve(maker.inputs[operand], (target, own), deep - 1)
        elif name == names.REDUCE and len(maker.results) == 1:
            yield from self._invert_reduction(maker, wanted, deep)
        elif name == names.DOT_GENERAL:
            yield from self._product(maker, wanted, deep)
        elif name == names.CONVERT:
            source = self._values.get(maker.inputs[0])
            if source is not None:
                target = wanted[0] != 0 if source.dtype == np.bool_ else wanted[0]
                yield from self.solve(maker.inputs[0], (_cast(target, source.dtype), wanted[1]), deep - 1)
        elif name == names.BITCAST_CONVERT:
            source = self._values.get(maker.inputs[0])
            if source is not None and source.shape == wanted[0].shape and source.itemsize == wanted[0].itemsize:
                bits = np.ascontiguousarray(_cast(wanted[0], self._values[value].dtype)).view(source.dtype)
                yield from self.solve(maker.inputs[0], (bits, wanted[1]), deep - 1)
        else:
            yield from self._invert_arithmetic(maker, value, wanted, deep)

    def _invert_arithmetic(self, op: Op, value: ValueId, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Solve for one operand at a time and leave the other operands as they are."""
        given = [self._values.get(v) for v in op.inputs]
        dtype = self._values[value].dtype
        if not given or dtype.kind == "c" or any(v is None or v.dtype.kind == "c" for v in given):
            return
        known = [np.asarray(v, np.float64) if element_type_of(dtype).is_inexact else v for v in given if v is not None]
        target = np.asarray(wanted[0], np.float64) if element_type_of(dtype).is_inexact else wanted[0]
        laws = _SQUARES if len(op.inputs) == 2 and op.inputs[0] == op.inputs[1] else _UNDONE
        for place, law in enumerate(laws.get(op.name, ())):
            if law is None:
                continue
            with np.errstate(all="ignore"):
                found = law(target, known)
            source = self._values[op.inputs[place]]
            if found is None or np.shape(found) != source.shape:
                continue
            yield from self.solve(op.inputs[place], (_cast(found, source.dtype), wanted[1]), deep - 1)

    def _invert_move(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Send each element back to where it came from; if several come from one place, any of them wins."""
        found: Solution = {}
        for value, part in self._origins(op, wanted):
            solution = next(self.solve(value, part, deep - 1), None)
            if solution is not None:
                found = join_solutions(found, solution)
        if found:
            yield found

    def _origins(self, op: Op, wanted: Wanted) -> Iterator[tuple[ValueId, Wanted]]:
        moved = op.inputs[:1] if op.name == names.DYNAMIC_SLICE else op.inputs
        sources = [self._values.get(v) for v in moved]
        target, where = wanted
        numbers: list[Array] = []
        start = 0
        for source in sources:
            if source is None:
                return
            numbers.append(np.arange(start, start + source.size).reshape(source.shape))
            start += source.size
        if op.name == names.DYNAMIC_SLICE:
            starts = [int(self._values[v].reshape(())) for v in op.inputs[1:]]
            extents = zip(starts, target.shape, numbers[0].shape, strict=True)
            begins = [(min(max(start, 0), extent - size), size) for start, size, extent in extents]
            places = numbers[0][tuple(slice(begin, begin + size) for begin, size in begins)].reshape(-1)
        else:
            places = np.asarray(MOVES[op.name](op.raw, numbers, target.shape)).reshape(-1)
        order = self._rng.permutation(places.size)
        order = order[where.reshape(-1)[order]]
        every = np.concatenate([np.asarray(s).reshape(-1) for s in sources if s is not None])
        is_wanted = np.zeros(start, bool)
        every[places[order]] = target.reshape(-1)[order]
        is_wanted[places[order]] = True
        for value, number in zip(moved, numbers, strict=True):
            if is_wanted[number].any():
                yield value, (every[number], is_wanted[number])

    def _truth(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        target, where = np.asarray(wanted[0], bool), wanted[1]
        name = op.name
        if op.name in _MOVING:
            yield from self._invert_move(op, (target, where), deep)
        elif name == names.NOT:
            yield from self.solve(op.inputs[0], (~target, where), deep - 1)
        elif name in (names.AND, names.OR):
            both = where & (target == (name == names.AND))  # these need both operands, the others one
            for k in (0, 1):
                solution: Solution = {}
                for place, own in ((k, where), (1 - k, both)):
                    if own.any():
                        one = next(self.solve(op.inputs[place], (target, own), deep - 1), None)
                        solution = join_solutions(solution, one or {})
                if solution:
                    yield solution
        elif name == names.COMPARE:
            yield from self._invert_comparison(op, (target, where), deep)
        elif name == names.REDUCE:
            yield from self._invert_reduction(op, (target, where), deep)
        elif name == names.IS_FINITE:
            numbers = np.where(target, 1.0, np.inf)
            source = self._values[op.inputs[0]]
            yield from self.solve(op.inputs[0], (_cast(numbers, source.dtype), where), deep - 1)

    def _invert_comparison(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        direction = mlir.enum_value(op.raw.attributes["comparison_direction"])
        target, where = wanted
        steps = np.where(target, _TRUE[direction], _FALSE[direction]) * self._further
        yield from self.beside(op.inputs[0], op.inputs[1], steps, where, deep - 1)

    def beside(
        self, first: ValueId, second: ValueId, steps: Array, where: NDArray[np.bool_], deep: int = DEEP
    ) -> Iterator[Solution]:
        """Arguments for which a value lies so many steps beside another one; of floats, units in the last place."""
        a, b = self._values.get(first), self._values.get(second)
        if a is None or b is None:
            return
        if a.shape != b.shape:  # the bound of a clamp
            b = np.broadcast_to(b, a.shape)
            yield from self.solve(first, (step_numbers(b, steps), where), deep)
            return
        yield from self.solve(first, (step_numbers(b, steps), where), deep)
        yield from self.solve(second, (step_numbers(a, -steps), where), deep)

    def _invert_reduction(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Aim at all elements of a reduction of truth values, and at one element of any other."""
        source = self._values.get(op.inputs[0])
        if source is None or len(op.bodies[0].ops) != 1:
            return
        by, dims = op.bodies[0].ops[0].name, mlir.integers_of(op.raw.attributes["dimensions"])
        target, where = (np.expand_dims(a, tuple(sorted(dims))) for a in wanted)
        every = np.ones(source.shape, bool)
        is_first = np.zeros(source.shape, bool)
        is_first[tuple(0 if d in dims else slice(None) for d in range(source.ndim))] = True
        target = np.broadcast_to(target, source.shape)
        match by:
            case names.AND | names.OR if source.dtype == np.bool_:
                own = every & where & (is_first | (target == (by == names.AND)))
                yield from self.solve(op.inputs[0], (target, own), deep - 1)
            case names.MAXIMUM | names.MINIMUM:
                least = np.minimum if by == names.MAXIMUM else np.maximum
                yield from self.solve(
                    op.inputs[0], (least(target, np.where(is_first, target, source)), every & where), deep - 1
                )
            case names.ADD if counts_truths(self._program, op.inputs[0]):
                for count in _counts(target, prod(source.shape[d] for d in dims)):
                    order = self._rng.permuted(np.arange(source.size).reshape(source.shape))
                    yield from self.solve(op.inputs[0], (_ranks(order, dims) < count, every & where), deep - 1)
            case names.ADD:
                one = _first_filled(source, dims)
                rest = np.where(one, 0, source).sum(axis=tuple(dims), keepdims=True).astype(source.dtype)
                with np.errstate(all="ignore"):
                    yield from self.solve(op.inputs[0], (_cast(target - rest, source.dtype), one & where), deep - 1)
            case _:
                return

    def _product(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Of a product of matrices: one operand picks elements of the other one, which are what is wanted.

        Where a sum has fewer terms than the picking operand has columns, only so many columns are met.
        """
        numbers = mlir.dot_dimension_numbers(op.raw)
        batching = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
        summed = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
        given = [self._values[v] for v in op.inputs if v in self._values]
        if len(given) < 2 or any(array.dtype.kind == "c" for array in given):
            return
        orders, own = list[list[int]](), list[tuple[int, ...]]()
        for source, batch, dims in zip(given, batching, summed, strict=True):
            free = [d for d in range(source.ndim) if d not in (*batch, *dims)]
            orders.append([*batch, *free, *dims])
            own.append(tuple(prod(source.shape[d] for d in part) for part in (batch, free, dims)))
        (batches, rows, terms), (_, columns, _) = own
        for picking in (1, 0):
            target, where = (np.reshape(a, (batches, rows, columns)) for a in wanted)
            if not picking:
                target, where = target.swapaxes(1, 2), where.swapaxes(1, 2)
            met = min(terms, own[picking][1])
            values = np.zeros(own[1 - picking], target.dtype)
            values[..., :met] = np.where(where, target, 0)[..., :met]
            picks = np.broadcast_to(np.eye(own[picking][1], terms), own[picking])
            solution: Solution = {}
            for place, array, needed in (
                (1 - picking, values, where.any(axis=2, keepdims=True)),
                (picking, picks, True),
            ):
                shape, back = [given[place].shape[d] for d in orders[place]], np.argsort(orders[place])
                moved = _cast(array.reshape(shape).transpose(back), given[place].dtype)
                mask = np.broadcast_to(np.asarray(needed, np.bool_), array.shape).reshape(shape).transpose(back)
                solution = join_solutions(
                    solution, next(self.solve(op.inputs[place], (moved, mask), deep - 1), None) or {}
                )
            if solution:
                yield solution


def _numbers_of(dtype: np.dtype[Any]) -> int:
    """How many numbers an integer type has."""
    return 1 << 8 * dtype.itemsize


def _counts(target: Array, most: int) -> Iterator[Array]:
    """The counts up to `most` that an integer type writes as a target; where it wraps, there are several."""
    span = _numbers_of(target.dtype)
    least = python_integers(target) % span
    for turns in range(most // span + 1):
        yield np.where(least + turns * span <= most, least + turns * span, least)


def _ranks(order: Array, dims: Sequence[int]) -> Array:
    """How many elements come before each one in an order, among those that some dims reduce to one."""
    moved = np.moveaxis(order, tuple(dims), tuple(range(len(dims))))
    flat = moved.reshape(-1, *moved.shape[len(dims) :])
    ranks = flat.argsort(axis=0).argsort(axis=0).reshape(moved.shape)
    return np.moveaxis(ranks, tuple(range(len(dims))), tuple(dims))


def _first_filled(source: Array, dims: Sequence[int]) -> NDArray[np.bool_]:
    """Of the elements that are added up the first one that is not zero: of those that a choice leaves in a sum (a
    gather that is written as one) the only one that an input moves."""
    filled = np.moveaxis(np.asarray(source != 0), tuple(dims), tuple(range(len(dims))))
    flat = filled.reshape(-1, *filled.shape[len(dims) :])
    first = np.zeros(flat.shape, bool)
    if flat.size:
        np.put_along_axis(first, np.argmax(flat, axis=0)[None], True, axis=0)
    return np.moveaxis(first.reshape(filled.shape), tuple(range(len(dims))), tuple(dims))


def join_solutions(one: Solution, other: Solution) -> Solution:
    """Merge two solutions; where they contradict each other, the second one wins."""
    found = dict(one)
    for value, (target, where) in other.items():
        if value in found:
            before, own = found[value]
            found[value] = np.where(where, target, before).astype(before.dtype), own | where
        else:
            found[value] = target, where
    return found


def step_numbers(values: Array, steps: Array) -> Array:
    """Move numbers by a number of steps: integers by ones, floats by units in the last place."""
    if not element_type_of(values.dtype).is_inexact:
        with np.errstate(all="ignore"):
            return (values + steps.astype(values.dtype)).astype(values.dtype) if values.dtype != np.bool_ else values
    if values.dtype.kind == "c":
        return values
    kind = np.dtype(f"i{values.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(kind).astype(np.int64)
    lowest = np.int64(-1) << (8 * values.dtype.itemsize - 1) if values.dtype.itemsize < 8 else np.iinfo(np.int64).min
    order = np.where(bits < 0, lowest - bits, bits) + steps.astype(np.int64)
    moved = np.where(order < 0, lowest - order, order).astype(kind).view(values.dtype)
    return np.where(np.isfinite(values.astype(np.float64)), moved, values).astype(values.dtype).reshape(values.shape)


def _cast(values: Any, dtype: np.dtype[Any]) -> Array:
    array = np.asarray(values)
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and array.dtype.kind not in "iub":
            info = np.iinfo(dtype)
            array = np.clip(np.nan_to_num(np.asarray(array, np.float64)), float(info.min), float(info.max))
            return np.where(array >= float(info.max), info.max, array.astype(dtype)).astype(dtype)
        return array.astype(dtype)


def _modular(t: Array, o: Array) -> Array:
    """x with x * o == t: of an odd o modulo the type's size, of another one the quotient."""
    if element_type_of(t.dtype).is_inexact:
        return np.asarray(t / o)
    bits = 8 * t.dtype.itemsize
    inverses = {int(v): pow(int(v), -1, 1 << bits) for v in np.unique(o) if int(v) % 2}
    inverse = np.asarray([inverses.get(int(v), 0) for v in o.reshape(-1)], object).reshape(o.shape)
    exact = np.asarray(python_integers(t) * inverse % (1 << bits)).astype(np.uint64).astype(f"u{t.dtype.itemsize}")
    divided = t // np.where(o == 0, 1, o)
    fits = (o != 0) & (divided * o == t)
    return np.where(fits, divided, exact.view(t.dtype) if t.dtype.kind == "i" else exact.astype(t.dtype))


def _root(t: Array) -> Array:
    root = np.sqrt(np.abs(np.asarray(t, np.float64)))
    return np.asarray(root if element_type_of(t.dtype).is_inexact else np.rint(root).astype(t.dtype))


def _shift(t: Array, by: Array, left: bool) -> Array:
    unsigned = np.ascontiguousarray(t).view(f"u{t.dtype.itemsize}")
    amount = np.asarray(by).astype(unsigned.dtype)
    return np.asarray(unsigned << amount if left else unsigned >> amount).view(t.dtype)


_Law: TypeAlias = Callable[[Array, Sequence[Array]], Any] | None
_SQUARES: Mapping[str, Sequence[_Law]] = {
    names.MULTIPLY: (lambda t, g: _root(t),),
    names.ADD: (lambda t, g: t / 2 if element_type_of(t.dtype).is_inexact else t // 2,),
}
"""Of an operation on a value and itself."""

_UNDONE: Mapping[str, Sequence[_Law]] = {
    names.ADD: (lambda t, g: t - g[1], lambda t, g: t - g[0]),
    names.SUBTRACT: (lambda t, g: t + g[1], lambda t, g: g[0] - t),
    names.MULTIPLY: (lambda t, g: _modular(t, g[1]), lambda t, g: _modular(t, g[0])),
    names.DIVIDE: (lambda t, g: t * g[1], lambda t, g: g[0] / t if element_type_of(t.dtype).is_inexact else None),
    names.REMAINDER: (lambda t, g: t, None),
    names.MAXIMUM: (lambda t, g: t, lambda t, g: t),
    names.MINIMUM: (lambda t, g: t, lambda t, g: t),
    names.POWER: (lambda t, g: np.power(t, 1.0 / g[1]) if element_type_of(t.dtype).is_inexact else None, None),
    names.CLAMP: (None, lambda t, g: t, None),
    names.XOR: (lambda t, g: t ^ g[1], lambda t, g: t ^ g[0]),
    names.AND: (lambda t, g: (t & g[1]) | (g[0] & ~g[1]), lambda t, g: (t & g[0]) | (g[1] & ~g[0])),
    names.OR: (lambda t, g: (t & ~g[1]) | (g[0] & g[1]), lambda t, g: (t & ~g[0]) | (g[1] & g[0])),
    names.SHIFT_LEFT: (lambda t, g: _shift(t, g[1], False), None),
    names.SHIFT_RIGHT_LOGICAL: (lambda t, g: _shift(t, g[1], True), None),
    names.SHIFT_RIGHT_ARITHMETIC: (lambda t, g: _shift(t, g[1], True), None),
    names.NEGATE: (lambda t, g: -t,),
    names.NOT: (lambda t, g: ~t,),
    names.ABS: (lambda t, g: t,),
    names.SIGN: (lambda t, g: t,),
    names.SQRT: (lambda t, g: t * t,),
    names.RSQRT: (lambda t, g: 1.0 / (t * t),),
    names.CBRT: (lambda t, g: t * t * t,),
    names.EXPONENTIAL: (lambda t, g: np.log(t),),
    names.EXPONENTIAL_MINUS_ONE: (lambda t, g: np.log1p(t),),
    names.LOG: (lambda t, g: np.exp(t),),
    names.LOG_PLUS_ONE: (lambda t, g: np.expm1(t),),
    names.TANH: (lambda t, g: np.arctanh(t),),
    names.LOGISTIC: (lambda t, g: -np.log(1.0 / t - 1.0),),
    names.SINE: (lambda t, g: np.arcsin(t),),
    names.COSINE: (lambda t, g: np.arccos(t),),
    names.FLOOR: (lambda t, g: t,),
    names.CEIL: (lambda t, g: t,),
    names.ROUND_NEAREST_EVEN: (lambda t, g: t,),
    names.ROUND_NEAREST_AFZ: (lambda t, g: t,),
    names.REDUCE_PRECISION: (lambda t, g: t,),
}
"""For each operand what it has to be for a result, given the result that is wanted and all operands."""


# --- aims ---

TURNS = 6
"""How often an outcome is aimed at, each time from another run."""

FURTHER = (1, 1, 1, 2, 1000, 1)
"""How far beside an equal number one lies that is to be unequal, in each turn."""

BYTES = 1 << 28
"""Bytes of all values of a piece up to which they are looked at."""

HALVINGS = 70
"""How often the way between two runs is halved."""


@dataclass
class Aims:
    """Aims at the outcomes of one piece.

    Args:
      outcomes: what is looked at.
      compiled: compiles a module.
      runs: runs that were made.
    """

    outcomes: Outcomes
    compiled: Callable[[str], Runnable]
    runs: Sequence[Run]

    def next(self) -> Iterator[Run]:
        """The runs."""
        body = self.outcomes.program.entries["main"]
        yield from self._short()
        yield from self._at_wrapping_counts()
        points = [point for point in self.outcomes.possible_missed_points() if point.op.parent is body]
        if self._look_behind({value for point in points for value in point.op.inputs}):
            for point in points:
                yield from self._at(point)

    def _short(self) -> Iterator[Run]:
        """Runs of floats of few digits, while a tie is missed."""
        missed = [point.op for point in self.outcomes.possible_missed_points() if point.outcome in ties.TIES]
        if missed and self.runs:
            digits = max(map(ties.digits_asked, missed))
            for found in ties.short_floats(self.runs[0].arguments, digits, np.random.default_rng(0)):
                yield Run("floats of few digits", found, False)
                if not any(point.outcome in ties.TIES for point in self.outcomes.missed_points()):
                    return

    def _at_wrapping_counts(self) -> Iterator[Run]:
        """Runs with every count that a narrow integer type writes as a constant of the piece: 16 and 272 in 8 bits."""
        counting = self.outcomes.wrapping_counts()
        if not counting or not self._look_behind({op.results[0] for op in counting}):
            return
        run, values = self.runs[0], self.values(self.runs[0].arguments)
        constants = dict.fromkeys((0, *small_constants(self.outcomes.program.entries["main"].ops)[0]))
        for op in counting:
            found = values[op.results[0]]
            lowest, greatest = element_type_of(found.dtype).integer_range or (0, 0)
            for constant in (n for n in constants if lowest <= n <= greatest):
                rng = np.random.default_rng(0)
                inverse = Inverse(self.outcomes.program, values, rng, FURTHER[0])
                target = np.full(found.shape, constant, found.dtype)
                for solution in islice(inverse.solve(op.results[0], (target, np.ones(found.shape, bool))), MOST):
                    arguments = self._apply_solution(run.arguments, solution, 0, rng)
                    yield replace(run, aim=f"counts that are {constant} where they wrap", arguments=arguments)

    def reaching(self, value: ValueId, target: Array) -> Iterator[Run]:
        """Runs that try to make a value of the piece a target."""
        if not self._look_behind({value}):
            return
        for turn, run in enumerate(self.runs):
            values = self.values(run.arguments)
            if values[value].shape != target.shape:
                return
            rng = np.random.default_rng(turn)
            inverse = Inverse(self.outcomes.program, values, rng, FURTHER[0])
            for solution in islice(inverse.solve(value, (target, np.ones(target.shape, bool))), MOST):
                arguments = self._apply_solution(run.arguments, solution, 0, rng)
                yield replace(run, aim="sought at the cut", arguments=arguments)

    def _look_behind(self, wanted: set[ValueId]) -> bool:
        """Make ready to look at what values are made of; whether that is possible."""
        program = self.outcomes.program
        self._arguments = list(program.entries["main"].arguments)
        self._ops, self._read = self._behind(wanted)
        if not self.runs or not self._ops:
            return False
        own = {value: value for value in range(len(program.types))}
        types = [program.types[value] for value in self._arguments]
        places = dict(enumerate(self._arguments))
        self._probe = self.compiled(module_of(program, self._ops, places, own, self._read, types))
        return True

    def _behind(self, wanted: set[ValueId]) -> tuple[list[Op], list[ValueId]]:
        """The operations behind values, and their results that are arrays."""
        program = self.outcomes.program
        body = program.entries["main"]
        needed = set(wanted)
        ops: list[Op] = []
        for op in reversed(body.ops):
            if needed.intersection(op.results):
                ops.append(op)
                needed.update(op.reads)
        ops.reverse()
        read: list[ValueId] = []
        size = 0
        for value in (v for op in ops for v in op.results):
            tensor, dtype = program.type_of(value), program.dtype_of(value)
            if tensor is not None and tensor.is_static and dtype is not None:
                read.append(value)
                size += dtype.itemsize * prod(program.shape_of(value))
        return (ops, read) if size <= BYTES else ([], [])

    def values(self, arguments: Sequence[Array]) -> dict[ValueId, Array]:
        """What the values behind the points are in a run."""
        found = dict(zip(self._arguments, map(np.asarray, arguments), strict=True))
        return found | dict(zip(self._read, map(np.asarray, self._probe.run(arguments)), strict=True))

    def _at(self, point: Point) -> Iterator[Run]:
        for turn in range(TURNS):
            run = self.runs[turn % len(self.runs)]
            values = self.values(run.arguments)
            rng = np.random.default_rng(turn)
            inverse = Inverse(self.outcomes.program, values, rng, FURTHER[turn])
            for solution in islice(self._solutions(point, inverse, values, turn, rng), MOST):
                arguments = self._apply_solution(run.arguments, solution, turn, rng)
                yield replace(run, aim=f"aimed at: {point}", arguments=arguments)
                if not any(point is other for other in self.outcomes.missed_points()):
                    return
        yield from self._between(point)

    def _pair(self, point: Point) -> tuple[ValueId, ValueId]:
        places = {value: k for k, value in enumerate(point.op.raw.operands)}
        first, second = (point.op.inputs[places[value]] for value in point.pair)
        return first, second

    def _solutions(
        self, point: Point, inverse: Inverse, values: dict[ValueId, Array], turn: int, rng: np.random.Generator
    ) -> Iterator[Solution]:
        first, second = self._pair(point)
        there = values[first]
        where = np.ones(there.shape, bool) if turn % 2 == 0 else rng.random(there.shape) < 0.5
        if point.op.name in BRANCHING:
            target = int(point.outcome) if point.op.name == names.CASE else point.outcome == "0"
            yield from inverse.solve(first, (np.full(there.shape, target, there.dtype), where))
        elif point.outcome in ("true", "false"):
            yield from inverse.solve(first, (np.full(there.shape, point.outcome == "true"), where))
        elif point.outcome in ties.TIES:
            yield from inverse.solve(first, (ties.aim_operand(point.op, point.outcome, there, rng), where))
        elif point.outcome in ("less", "equal", "greater", "different"):
            # Beside the border, too: what the other piece has in the place of this comparison may lie there.
            sign = {"less": -1, "equal": 0}.get(point.outcome, 1)
            steps = np.full(there.shape, sign * FURTHER[turn])
            if turn > 1 and FURTHER[turn] == 1:
                steps = rng.integers(-1, 2, there.shape)
            yield from inverse.beside(first, second, steps, where)

    def _apply_solution(
        self, arguments: Sequence[Array], solution: Solution, turn: int, rng: np.random.Generator
    ) -> list[Array]:
        """A run's arguments with a solution put in. Later turns move floats by a few units, because rounding may miss
        the target."""
        found = list(arguments)
        for place, value in enumerate(self._arguments):
            if value in solution:
                target, where = solution[value]
                given = np.asarray(arguments[place])
                aimed = np.asarray(target).astype(given.dtype)
                if turn and given.dtype.kind not in "iubc":
                    aimed = step_numbers(aimed, rng.integers(-2, 3, aimed.shape) * (rng.random(aimed.shape) < 0.7))
                found[place] = np.where(where, aimed, given).astype(given.dtype)
        return found

    def _between(self, point: Point) -> Iterator[Run]:
        """The way between two runs, in one of which a number is less and in one greater, halved again and again."""
        if point.outcome not in ("less", "equal", "greater"):
            return
        first, second = self._pair(point)

        def side(arguments: Sequence[Array]) -> Array:
            values = self.values(arguments)
            with np.errstate(all="ignore"):
                a, b = (np.asarray(values[v]) for v in (first, second))
                b = np.broadcast_to(b, a.shape)
                return ((a > b).astype(int) - (a < b)).reshape(-1)

        signs = [(run, side(run.arguments)) for run in self.runs]
        apart = ((a, b, k) for a, x in signs for b, y in signs for k in np.flatnonzero((x < 0) & (y > 0)))
        found = next(apart, None)
        if found is None:
            return
        low, high = (list(map(np.asarray, run.arguments)) for run in found[:2])
        for _ in range(HALVINGS):
            middle = [_middle(a, b) for a, b in zip(low, high, strict=True)]
            sign = side(middle)[found[2]]
            if sign == 0:
                yield Run(f"aimed at: {point}", middle, False)
                return
            if [array.tobytes() for array in middle] == [array.tobytes() for array in (low if sign < 0 else high)]:
                break
            low, high = (middle, high) if sign < 0 else (low, middle)
        yield Run(f"aimed below: {point}", low, False)
        yield Run(f"aimed above: {point}", high, False)


def _middle(a: Array, b: Array) -> Array:
    """The middle of two arrays; of what is not a number, the first one."""
    if a.dtype == np.bool_ or a.dtype.kind == "c":
        return a
    if a.dtype.kind in "iu":
        return np.asarray((python_integers(a) + python_integers(b)) // 2).astype(a.dtype)
    with np.errstate(all="ignore"):
        middle = (a.astype(np.float64) / 2 + b.astype(np.float64) / 2).astype(a.dtype)
    return np.where(np.isfinite(middle.astype(np.float64)), middle, a).astype(a.dtype)


KEPT = 12
"""Runs from which others are made."""


class Watch:
    """Counts outcomes while runs are made, until each was had.

    Args:
      region, pieces: what is run.
      values: all that an input of it may be, in order, where that is known, or the least and the greatest of it.
      compiled: compiles a module.
      only_entered: whether branches and loops alone are looked at.
      no_nan: whether runs with NaN are left out.
    """

    def __init__(
        self,
        region: Region,
        pieces: Pieces,
        values: Sequence[Sequence[float] | None],
        compiled: Callable[[str], Runnable],
        *,
        only_entered: bool,
        no_nan: bool,
    ) -> None:
        counters = {place: values for place, values in enumerate(values) if values is not None}
        self.outcomes: list[Outcomes] = []
        sorts = any(op.name == names.SORT for op in ops_within([*region.first, *region.second]))
        for text, ops in ((pieces.first, region.first), (pieces.second, region.second)):
            places = [location_of(op.raw) for op in ops_within(ops)]
            self.outcomes.append(
                Outcomes.of(text, counters, places, only_entered=only_entered, sorts=sorts, no_nan=no_nan)
            )
        self._compiled = compiled
        self._made: list[Run] = []
        self._runs: list[Runnable | None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether every outcome was had."""
        return not any(outcomes.missed_points() for outcomes in self.outcomes)

    def add(self, run: Run) -> None:
        """Look at a run."""
        if self.is_done:
            return
        if len(self._made) < KEPT:
            self._made.append(run)
        if self._runs is None:
            try:
                self._runs = [self._compiled(o.text) if o.text else None for o in self.outcomes]
            except CannotRunError:  # XLA is not a judge of the pieces either
                self.outcomes = []
                return
        for outcomes, runnable in zip(self.outcomes, self._runs, strict=True):
            if runnable is not None and outcomes.missed_points():
                outcomes.add(runnable.run(run.arguments))

    def next(self) -> Iterator[Run]:
        """Further runs, aimed at what none had."""
        for outcomes in self.outcomes:
            if outcomes.missed_points() or outcomes.wrapping_counts():
                try:
                    yield from Aims(outcomes, self._compiled, self._made).next()
                except CannotRunError:
                    continue

    def describe_missed(self) -> tuple[str, ...]:
        """The outcomes that no run showed, one line each."""
        return tuple(
            dict.fromkeys(str(point) for outcomes in self.outcomes for point in outcomes.possible_missed_points())
        )
