"""Numbers at which an operation's result turns, beyond the constants that stand in it: where it rounds the other way.

What narrows a float, or makes one of an integer, is driven at the middles of its numbers, at its ends and among its
subnormal ones; what rounds to integers at halves and at the integer type's ends; what divides integers by a constant at
the largest multiples of that, where multiplication and a shift in its place err first. Constants of one type that agree
in most elements, but not in all, stand for each other: what is read where they differ is aimed at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.counters import counters_of
from hlo_lower.verify.read.constant_folding import settled
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, location_of, ops_within

Array = NDArray[Any]

MOST = 256
"""Differing elements of two constants, and turning points of a kind, that are aimed at."""

LARGEST = 1 << 24
"""Elements of a constant up to which it is compared with others."""

ROUNDING = ("round_nearest_even", "round_nearest_afz", "floor", "ceil")


@dataclass(frozen=True)
class Twins:
    """Two constants that agree in most elements.

    Attributes:
      where: the first one's place.
      first, second: their elements.
      at: where they differ, a row of coordinates for each element.
    """

    where: str
    first: Array
    second: Array
    at: Array

    def __str__(self) -> str:
        return f"the constant at {self.where}: no run showed the {len(self.at)} elements in which they differ"


def twins_of(first: Sequence[Op], second: Sequence[Op]) -> list[Twins]:
    """The constants of two pieces that stand for each other and differ; what both hold stands for itself."""
    held = [_constants(ops) for ops in (first, second)]
    found: list[Twins] = []
    for kind in held[0].keys() & held[1].keys():
        mine, others = ({a.tobytes(): (op, a) for op, a in one[kind]} for one in held)
        for op, a in (value for key, value in mine.items() if key not in others):
            for _, b in (value for key, value in others.items() if key not in mine):
                bits = [np.ascontiguousarray(v).view(np.uint8).reshape(*v.shape, -1) for v in (a, b)]
                apart = np.argwhere((bits[0] != bits[1]).any(-1) & ((a == a) | (b == b)))  # NaN is NaN
                if 0 < 2 * len(apart) < a.size:
                    found.append(Twins(location_of(op.raw), a, b, apart))
    return found


def _constants(ops: Sequence[Op]) -> dict[str, list[tuple[Op, Array]]]:
    found: dict[str, list[tuple[Op, Array]]] = {}
    for op in ops_within(ops):
        if op.name == "stablehlo.constant" and not mlir.is_splat(op.raw) and mlir.is_static(op.raw.results[0].type):
            shape = mlir.static_shape(op.raw.results[0].type)
            value = (
                mlir.constant_value(op.raw, is_complex=True) if 1 < np.prod(shape, dtype=object) <= LARGEST else None
            )
            if value is not None:
                found.setdefault(str(op.raw.results[0].type), []).append((op, value))
    return found


def turning_points(ops: Sequence[Op]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The integers and floats at which operations round the other way."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    for op in ops_within(ops):
        if op.short_name in ("convert", "reduce_precision", "divide", "remainder", *ROUNDING):
            source, made = (
                mlir.dtype_of(mlir.tensor_element_name(v.type)) for v in (op.raw.operands[0], op.raw.results[0])
            )
            if source is not None and made is not None and "c" not in (source.kind, made.kind):
                integers.update(dict.fromkeys(_integers(op, source, made)))
                floats.update(dict.fromkeys(_floats(op, source, made)))
    return tuple(integers)[:MOST], tuple(floats)[:MOST]


def _integers(op: Op, source: np.dtype[Any], made: np.dtype[Any]) -> Iterator[int]:
    if source.kind not in "iu":
        return
    info = np.iinfo(source)
    signs = (1, -1) if info.min else (1,)
    if op.short_name == "convert" and element_type_of(made).is_float:
        p, bits = element_type_of(made).mantissa + 1, int(info.max).bit_length()
        for k in sorted({p, p + 1, 24, 25, bits - 2, bits - 1}):
            if p <= k < bits:  # two ties at the ends of their binade, one of which is even
                ties = ((1 << k) + odd * (1 << (k - p)) for odd in (1, 3))
                yield from (sign * tie for tie in ties for sign in signs)
    elif op.short_name in ("divide", "remainder"):
        divisor = _splat(op.raw.operands[1])
        if divisor is not None and abs(divisor) > 1:
            most = int(info.max) // abs(divisor)
            for k in {most, (int(info.max) + 1) // abs(divisor), most - 1, most - most // 3, most // 2, 1, 2}:
                yield from (sign * k * abs(divisor) for sign in signs if k * abs(divisor) <= info.max + 1)


def _splat(value: mlir.RawValue) -> int | None:
    """The number that an operand is everywhere, where a constant says so."""
    maker = mlir.producer(value)
    while maker is not None and maker.name == "stablehlo.broadcast_in_dim":
        maker = mlir.producer(maker.operands[0])
    if maker is None or maker.name != "stablehlo.constant" or not mlir.is_splat(maker):
        return None
    number = mlir.constant_value(maker)
    return int(number.reshape(-1)[0]) if number is not None and number.size else None


def _floats(op: Op, source: np.dtype[Any], made: np.dtype[Any]) -> Iterator[float]:
    if not element_type_of(source).is_float:
        return
    if op.short_name == "reduce_precision":
        exponent, bits = (mlir.integer_of(op.raw.attributes[f"{name}_bits"]) for name in ("exponent", "mantissa"))
        top = (1 << (exponent - 1)) - 1
        yield from _ties(bits + 1, 1 - top, top)
    elif op.short_name == "convert" and element_type_of(made).is_float:
        narrow = element_type_of(made)
        if narrow.mantissa < element_type_of(source).mantissa:
            yield narrow.most
            yield from _ties(narrow.mantissa + 1, frexp(narrow.smallest)[1] - 1, frexp(narrow.most)[1] - 1)
    elif op.short_name in ROUNDING or (op.short_name == "convert" and made.kind in "iu"):
        whole = 2.0 ** element_type_of(source).mantissa
        yield from (0.5, 1.5, 2.5, whole - 0.5, whole + 1)
        if made.kind in "iu":
            yield from (float(np.iinfo(made).max), float(np.iinfo(made).min))


def _ties(bits: int, lowest: int, top: int) -> Iterator[float]:
    """Middles between numbers of a float type: at both ends of a binade, beside its ends, below its normal numbers."""
    for power in dict.fromkeys((0, 1, 13, top - 1, top, lowest)):
        if lowest <= power <= top and -1000 < power < 1000:
            unit = 2.0 ** (power - bits + 1)
            yield from (2.0**power + unit / 2, 2.0**power + unit * 1.5, 2.0 ** (power + 1) - unit / 2)
    if lowest > -1000:
        smallest = 2.0 ** (lowest - bits + 1)
        yield from (smallest / 2, smallest, smallest * 1.5, 2.0**lowest - smallest / 2)


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
