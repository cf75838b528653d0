"""Solve a value for its inputs: arguments of a piece for which a value within it becomes what is wanted.

Operations are undone one by one, back to the arguments; what else they read stays what it is in a run. A constant that
is met through arithmetic is met so: of `(x - 1000) == 1234567` the solution is x = 1235567. What comes out is a guess,
which rounding and values that are read twice may spoil: it is run as any other input.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.verify.read.moves import MOVES
from hlo_lower.verify.read.program import Op, Program, ValueId

Array = NDArray[Any]

Wanted: TypeAlias = tuple[Array, NDArray[np.bool_]]
"""What the elements of a value are to be, and which of them are wanted so."""

Solution: TypeAlias = dict[ValueId, Wanted]
"""What arguments are to be."""

_MOVING = (*MOVES, "dynamic_slice")

MOST = 4
"""Solutions of one value that are looked at."""

DEEP = 200
"""Operations that are undone, one behind the other."""

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

    def solved(self, value: ValueId, wanted: Wanted, deep: int = DEEP) -> Iterator[Solution]:
        """Arguments for which a value becomes what is wanted."""
        maker = self._program.makers[value]
        if not deep or value not in self._values:
            return
        if maker is None:
            yield {value: wanted}
            return
        name = maker.short_name
        if name == "optimization_barrier":
            yield from self.solved(maker.inputs[maker.results.index(value)], wanted, deep - 1)
        elif self._values[value].dtype == np.bool_:
            yield from self._truth(maker, value, wanted, deep)
        elif name in _MOVING:
            yield from self._moved(maker, wanted, deep)
        elif name == "select":
            chosen, (target, where) = self._values[maker.inputs[0]], wanted
            for operand, own in ((1, where & chosen), (2, where & ~chosen)):
                if own.any():
                    yield from self.solved(maker.inputs[operand], (target, own), deep - 1)
        elif name == "reduce" and len(maker.results) == 1:
            yield from self._reduced(maker, wanted, deep)
        elif name == "dot_general":
            yield from self._product(maker, wanted, deep)
        elif name == "convert":
            source = self._values.get(maker.inputs[0])
            if source is not None:
                target = wanted[0] != 0 if source.dtype == np.bool_ else wanted[0]
                yield from self.solved(maker.inputs[0], (_cast(target, source.dtype), wanted[1]), deep - 1)
        elif name == "bitcast_convert":
            source = self._values.get(maker.inputs[0])
            if source is not None and source.shape == wanted[0].shape and source.itemsize == wanted[0].itemsize:
                bits = np.ascontiguousarray(_cast(wanted[0], self._values[value].dtype)).view(source.dtype)
                yield from self.solved(maker.inputs[0], (bits, wanted[1]), deep - 1)
        else:
            yield from self._computed(maker, value, wanted, deep)

    def _computed(self, op: Op, value: ValueId, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Of arithmetic: one operand after the other, the rest as it is."""
        given = [self._values.get(v) for v in op.inputs]
        dtype = self._values[value].dtype
        if any(v is None for v in given) or dtype.kind == "c" or not given:
            return
        known = [np.asarray(v, np.float64) if element_type_of(dtype).is_inexact else v for v in given if v is not None]
        target = np.asarray(wanted[0], np.float64) if element_type_of(dtype).is_inexact else wanted[0]
        laws = _SQUARES if len(op.inputs) == 2 and op.inputs[0] == op.inputs[1] else _UNDONE
        for place, law in enumerate(laws.get(op.short_name, ())):
            if law is None:
                continue
            with np.errstate(all="ignore"):
                found = law(target, known)
            source = self._values[op.inputs[place]]
            if found is None or np.shape(found) != source.shape:
                continue
            yield from self.solved(op.inputs[place], (_cast(found, source.dtype), wanted[1]), deep - 1)

    def _moved(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Of elements that are moved: each goes back to where it comes from; of several for one place any."""
        found: Solution = {}
        for value, part in self._origins(op, wanted):
            solution = next(self.solved(value, part, deep - 1), None)
            if solution is not None:
                found = joined(found, solution)
        if found:
            yield found

    def _origins(self, op: Op, wanted: Wanted) -> Iterator[tuple[ValueId, Wanted]]:
        moved = op.inputs[:1] if op.short_name == "dynamic_slice" else op.inputs
        sources = [self._values.get(v) for v in moved]
        target, where = wanted
        numbers: list[Array] = []
        start = 0
        for source in sources:
            if source is None:
                return
            numbers.append(np.arange(start, start + source.size).reshape(source.shape))
            start += source.size
        if op.short_name == "dynamic_slice":
            starts = [int(self._values[v].reshape(())) for v in op.inputs[1:]]
            extents = zip(starts, target.shape, numbers[0].shape, strict=True)
            begins = [(min(max(start, 0), extent - size), size) for start, size, extent in extents]
            places = numbers[0][tuple(slice(begin, begin + size) for begin, size in begins)].reshape(-1)
        else:
            places = np.asarray(MOVES[op.short_name](op.raw, numbers, target.shape)).reshape(-1)
        order = self._rng.permutation(places.size)
        order = order[where.reshape(-1)[order]]
        every = np.concatenate([np.asarray(s).reshape(-1) for s in sources if s is not None])
        is_wanted = np.zeros(start, bool)
        every[places[order]] = target.reshape(-1)[order]
        is_wanted[places[order]] = True
        for value, number in zip(moved, numbers, strict=True):
            if is_wanted[number].any():
                yield value, (every[number], is_wanted[number])

    def _truth(self, op: Op, value: ValueId, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Of truth values."""
        target, where = np.asarray(wanted[0], bool), wanted[1]
        name = op.short_name
        if name in _MOVING:
            yield from self._moved(op, (target, where), deep)
        elif name == "not":
            yield from self.solved(op.inputs[0], (~target, where), deep - 1)
        elif name in ("and", "or"):
            both = where & (target == (name == "and"))  # these need both operands, the others one
            for k in (0, 1):
                solution: Solution = {}
                for place, own in ((k, where), (1 - k, both)):
                    if own.any():
                        one = next(self.solved(op.inputs[place], (target, own), deep - 1), None)
                        solution = joined(solution, one or {})
                if solution:
                    yield solution
        elif name == "compare":
            yield from self._compared(op, (target, where), deep)
        elif name == "reduce":
            yield from self._reduced(op, (target, where), deep)
        elif name == "is_finite":
            numbers = np.where(target, 1.0, np.inf)
            source = self._values[op.inputs[0]]
            yield from self.solved(op.inputs[0], (_cast(numbers, source.dtype), where), deep - 1)

    def _compared(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
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
            yield from self.solved(first, (stepped(b, steps), where), deep)
            return
        yield from self.solved(first, (stepped(b, steps), where), deep)
        yield from self.solved(second, (stepped(a, -steps), where), deep)

    def _reduced(self, op: Op, wanted: Wanted, deep: int) -> Iterator[Solution]:
        """Of a reduction by one operation: all elements for its truth values, one of the others."""
        source = self._values.get(op.inputs[0])
        if source is None or len(op.bodies[0].ops) != 1:
            return
        by, dims = op.bodies[0].ops[0].short_name, mlir.integers_of(op.raw.attributes["dimensions"])
        target, where = (np.expand_dims(a, tuple(sorted(dims))) for a in wanted)
        every = np.ones(source.shape, bool)
        is_first = np.zeros(source.shape, bool)
        is_first[tuple(0 if d in dims else slice(None) for d in range(source.ndim))] = True
        target = np.broadcast_to(target, source.shape)
        match by:
            case "and" | "or" if source.dtype == np.bool_:
                own = every & where & (is_first | (target == (by == "and")))
                yield from self.solved(op.inputs[0], (target, own), deep - 1)
            case "maximum" | "minimum":
                least = np.minimum if by == "maximum" else np.maximum
                yield from self.solved(
                    op.inputs[0], (least(target, np.where(is_first, target, source)), every & where), deep - 1
                )
            case "add":
                one = _first_filled(source, dims)
                rest = np.where(one, 0, source).sum(axis=tuple(dims), keepdims=True).astype(source.dtype)
                with np.errstate(all="ignore"):
                    yield from self.solved(op.inputs[0], (_cast(target - rest, source.dtype), one & where), deep - 1)
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
                solution = joined(solution, next(self.solved(op.inputs[place], (moved, mask), deep - 1), None) or {})
            if solution:
                yield solution


def _first_filled(source: Array, dims: Sequence[int]) -> NDArray[np.bool_]:
    """Of the elements that are added up the first one that is not zero: of those that a choice leaves in a sum (a
    gather that is written as one) the only one that an input moves."""
    filled = np.moveaxis(np.asarray(source != 0), tuple(dims), tuple(range(len(dims))))
    flat = filled.reshape(-1, *filled.shape[len(dims) :])
    first = np.zeros(flat.shape, bool)
    if flat.size:
        np.put_along_axis(first, np.argmax(flat, axis=0)[None], True, axis=0)
    return np.moveaxis(first.reshape(filled.shape), tuple(range(len(dims))), tuple(dims))


def joined(one: Solution, other: Solution) -> Solution:
    """Two solutions as one, where they contradict each other the second one."""
    found = dict(one)
    for value, (target, where) in other.items():
        if value in found:
            before, own = found[value]
            found[value] = np.where(where, target, before).astype(before.dtype), own | where
        else:
            found[value] = target, where
    return found


def stepped(values: Array, steps: Array) -> Array:
    """Numbers so many steps further: integers by ones, floats by units in the last place."""
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
    """Numbers in a type."""
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
    exact = np.asarray(np.asarray(t, object) * inverse % (1 << bits)).astype(np.uint64).astype(f"u{t.dtype.itemsize}")
    divided = t // np.where(o == 0, 1, o)
    fits = (o != 0) & (divided * o == t)
    return np.where(fits, divided, exact.view(t.dtype) if t.dtype.kind == "i" else exact.astype(t.dtype))


def _root(t: Array) -> Array:
    root = np.sqrt(np.abs(np.asarray(t, np.float64)))
    return np.asarray(root if element_type_of(t.dtype).is_inexact else np.rint(root).astype(t.dtype))


def _shifted(t: Array, by: Array, left: bool) -> Array:
    unsigned = np.ascontiguousarray(t).view(f"u{t.dtype.itemsize}")
    amount = np.asarray(by).astype(unsigned.dtype)
    return np.asarray(unsigned << amount if left else unsigned >> amount).view(t.dtype)


_Law: TypeAlias = Callable[[Array, Sequence[Array]], Any] | None
_SQUARES: Mapping[str, Sequence[_Law]] = {
    "multiply": (lambda t, g: _root(t),),
    "add": (lambda t, g: t / 2 if element_type_of(t.dtype).is_inexact else t // 2,),
}
"""Of an operation on a value and itself."""

_UNDONE: Mapping[str, Sequence[_Law]] = {
    "add": (lambda t, g: t - g[1], lambda t, g: t - g[0]),
    "subtract": (lambda t, g: t + g[1], lambda t, g: g[0] - t),
    "multiply": (lambda t, g: _modular(t, g[1]), lambda t, g: _modular(t, g[0])),
    "divide": (lambda t, g: t * g[1], lambda t, g: g[0] / t if element_type_of(t.dtype).is_inexact else None),
    "remainder": (lambda t, g: t, None),
    "maximum": (lambda t, g: t, lambda t, g: t),
    "minimum": (lambda t, g: t, lambda t, g: t),
    "power": (lambda t, g: np.power(t, 1.0 / g[1]) if element_type_of(t.dtype).is_inexact else None, None),
    "clamp": (None, lambda t, g: t, None),
    "xor": (lambda t, g: t ^ g[1], lambda t, g: t ^ g[0]),
    "and": (lambda t, g: (t & g[1]) | (g[0] & ~g[1]), lambda t, g: (t & g[0]) | (g[1] & ~g[0])),
    "or": (lambda t, g: (t & ~g[1]) | (g[0] & g[1]), lambda t, g: (t & ~g[0]) | (g[1] & g[0])),
    "shift_left": (lambda t, g: _shifted(t, g[1], False), None),
    "shift_right_logical": (lambda t, g: _shifted(t, g[1], True), None),
    "shift_right_arithmetic": (lambda t, g: _shifted(t, g[1], True), None),
    "negate": (lambda t, g: -t,),
    "not": (lambda t, g: ~t,),
    "abs": (lambda t, g: t,),
    "sign": (lambda t, g: t,),
    "sqrt": (lambda t, g: t * t,),
    "rsqrt": (lambda t, g: 1.0 / (t * t),),
    "cbrt": (lambda t, g: t * t * t,),
    "exponential": (lambda t, g: np.log(t),),
    "exponential_minus_one": (lambda t, g: np.log1p(t),),
    "log": (lambda t, g: np.exp(t),),
    "log_plus_one": (lambda t, g: np.expm1(t),),
    "tanh": (lambda t, g: np.arctanh(t),),
    "logistic": (lambda t, g: -np.log(1.0 / t - 1.0),),
    "sine": (lambda t, g: np.arcsin(t),),
    "cosine": (lambda t, g: np.arccos(t),),
    "floor": (lambda t, g: t,),
    "ceil": (lambda t, g: t,),
    "round_nearest_even": (lambda t, g: t,),
    "round_nearest_afz": (lambda t, g: t,),
    "reduce_precision": (lambda t, g: t,),
}
"""For each operand what it has to be for a result, given the result that is wanted and all operands."""
