"""Ties: which operands an operation rounds the other way, whether a value may be one, and how runs come to them.

Two ways of rounding differ at the middle between two neighbours alone: to the even one, away from zero, twice. So of
each operation that rounds it is asked for a tie above an even neighbour and for one above an odd one. What cuts a
fraction off has no ties: a number with a fraction, of each sign, tells it from what rounds down. Neighbours are those
of the magnitude.

All of them are numbers (m + 1/2) * u: u is 1 where whole numbers are made, else the distance of the made type's
numbers at that magnitude.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from math import ceil, isinf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import ElementType, element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import KEEPS_NUMBERS, RESHAPING, TO_WHOLE, Numbers, ops_with
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.read.program import Op, Program, ValueId

Array = NDArray[Any]
Interval: TypeAlias = tuple[float, float]

EVEN, ODD = "a tie above an even neighbour", "a tie above an odd neighbour"
ABOVE, BELOW = "a fraction above zero", "a fraction below zero"
TIES = frozenset({EVEN, ODD, ABOVE, BELOW})
"""The outcomes of operations that round."""

TO_INTEGERS = frozenset({names.ROUND_NEAREST_AFZ, names.ROUND_NEAREST_EVEN})
"""Operations that round to the nearest whole number."""

ROUNDING = TO_INTEGERS | {names.CONVERT, names.REDUCE_PRECISION}
"""Operations that may be given ties."""

KEEPS_WHOLE = KEEPS_NUMBERS | ops_with(numbers=Numbers.WHOLE_OF_WHOLE)
"""Operations that give whole numbers of whole ones: what is rounded of these is whole again."""

NO_MIDDLES = ops_with(numbers=Numbers.NO_MIDDLES)

DEEP = 100
"""Operations behind a value that are looked at."""


# --- which ones there are ---


def ties_of(op: Op) -> Sequence[str]:
    """What is asked for of an operation."""
    if op.name not in ROUNDING or _source(op).bits < 8:
        return ()
    source, digits = _source(op), _digits(op)
    if op.name == names.CONVERT and source.is_float and digits is None:
        made = element_type(mlir.tensor_element_name(op.raw.results[0].type))
        return () if not made.is_signed and not made.is_unsigned else (ABOVE, BELOW) if made.is_signed else (ABOVE,)
    if op.name in TO_INTEGERS:
        return (EVEN, ODD) if source.is_float and source.mantissa else ()
    return () if digits is None or digits < 2 or digits >= _most_digits(source) else (EVEN, ODD)


def _source(op: Op) -> ElementType:
    return element_type(mlir.tensor_element_name(op.raw.operands[0].type))


def _digits(op: Op) -> int | None:
    """How many binary digits the floats that an operation rounds to have, the leading one counted; None of others."""
    if op.name == names.REDUCE_PRECISION:
        return mlir.integer_of(op.raw.attributes["mantissa_bits"]) + 1
    made = element_type(mlir.tensor_element_name(op.raw.results[0].type))
    return made.mantissa + 1 if op.name == names.CONVERT and made.is_float else None


def _most_digits(source: ElementType) -> int:
    """The greatest number of binary digits that a number of this type has."""
    return source.mantissa + 1 if source.is_float else source.integer_bits - source.is_signed


def _normal(op: Op) -> Interval:
    """Between which magnitudes the floats that an operation rounds to lie as far apart as their digits say, and those
    that it is given, too."""
    least = _source(op).smallest
    if op.name == names.REDUCE_PRECISION:
        top = (1 << mlir.integer_of(op.raw.attributes["exponent_bits"]) - 1) - 1
        return max(2.0 ** max(1 - top, -1022), least), 2.0 ** min(top, 1023)
    made = element_type(mlir.tensor_element_name(op.raw.results[0].type))
    return max(made.smallest, least), made.most


# --- which ones may be ---


def may_be(op: Op, outcome: str, program: Program, of: Callable[[ValueId], Interval]) -> bool:
    """Whether an operation may be given a tie.

    Args:
      op, outcome: the operation, and what is asked for.
      program: the module.
      of: between which numbers a value lies.
    """
    low, high = of(op.inputs[0])
    if outcome in (ABOVE, BELOW):
        return (high > 0 if outcome == ABOVE else low < 0) and not is_whole(program, op.inputs[0])
    least = max(low, -high, 0)
    most = max(abs(low), abs(high))
    digits = _digits(op)
    if digits is None:
        if isinf(least):
            return False
        first = ceil(least - 0.5)
        tie = first + ((first % 2 == 0) != (outcome == EVEN)) + 0.5
        return tie <= most and not is_whole(program, op.inputs[0])
    if not _source(op).is_float:
        least_tie = (1 << digits) + (1 if outcome == EVEN else 3)
        return most >= least_tie << _low_zeros(program, op.inputs[0])
    if low == high or most <= _normal(op)[0]:
        return False
    return outcome in _possible_ties(program, op.inputs[0], digits, of) and not _has_digits(
        program, op.inputs[0], digits, of
    )


def is_whole(program: Program, value: ValueId) -> bool:
    """Whether all finite numbers of a value are whole, whatever the inputs are."""

    def told(v: ValueId, maker: Op | None) -> bool | None:
        if _is_integer(program, v):
            return True
        if maker is None:
            return False
        if maker.name in TO_WHOLE or maker.name == names.IOTA:
            return True
        if maker.name == names.CONSTANT:
            known = _numbers(maker)
            return known is not None and bool(np.all(known == np.round(known)))
        return None if maker.name in KEEPS_WHOLE or _applies(maker, KEEPS_WHOLE) else False

    return _holds(program, value, told)


def _has_digits(program: Program, value: ValueId, digits: int, of: Callable[[ValueId], Interval]) -> bool:
    """Whether the finite numbers of a value have so few binary digits, whatever the inputs are."""

    def told(v: ValueId, maker: Op | None) -> bool | None:
        element = element_type_of(program.dtype_of(v) or np.dtype(object))
        if element.is_integer or (element.is_float and element.mantissa < digits):
            return _most_digits(element) <= digits or max(map(abs, of(v))) <= 1 << digits
        if maker is None:
            return False
        if maker.name == names.BITCAST_CONVERT:
            same = element_type_of(program.dtype_of(maker.inputs[0]) or np.dtype(object)).bits == element.bits
            return same and _low_zeros(program, maker.inputs[0]) >= element.mantissa + 1 - digits
        if maker.name == names.REDUCE_PRECISION and (_digits(maker) or digits + 1) <= digits:
            return True
        if maker.name == names.CONSTANT:
            known = _numbers(maker)
            return known is not None and bool(np.all(np.ldexp(np.frexp(known)[0], digits) % 1 == 0))
        if max(map(abs, of(v))) <= 1 << digits and is_whole(program, v):
            return True
        is_kept = maker.name in (*KEEPS_NUMBERS, *TO_WHOLE, names.CONVERT) or _applies(maker, KEEPS_NUMBERS)
        return None if is_kept else False

    return _holds(program, value, told)


def _possible_ties(program: Program, value: ValueId, digits: int, of: Callable[[ValueId], Interval]) -> set[str]:
    """The ties that a value can be, given that its maker's operands have so few digits.

    A quotient, a root or a sine of such numbers is never a tie. For a product with a constant, and for a square, the
    odd numbers decide: m is a tie if it has one digit too many, and it lies above an even neighbour if m = 4 k + 1.
    """
    maker, dtype = program.makers[value], program.dtype_of(value)
    is_made = maker is not None and (maker.name in NO_MIDDLES or maker.name == names.MULTIPLY)
    if maker is None or dtype is None or not is_made or _most_digits(element_type_of(dtype)) < 2 * digits + 2:
        return {EVEN, ODD}
    if not all(_has_digits(program, v, digits, of) for v in maker.inputs):
        return {EVEN, ODD}
    if maker.name in NO_MIDDLES:
        return set()
    if len({_behind(program, v, {names.CONVERT}) for v in maker.inputs}) == 1:
        return {EVEN}  # of an odd m, m * m = 8 k + 1
    behind = [_behind(program, v, RESHAPING | {names.CONVERT}) for v in maker.inputs]
    factors = [known for v in behind if (known := program.constant_behind(v)) is not None]
    if len(factors) != 1 or factors[0].size > 1 << digits:
        return {EVEN, ODD}
    found: set[str] = set()
    for number in map(abs, np.unique(np.asarray(factors[0], np.float64))):
        if np.isfinite(number) and number:
            odd = number.as_integer_ratio()[0]
            odd //= odd & -odd
            others = range(-(-(1 << digits) // odd) | 1, min((2 << digits) // odd + 1, 1 << digits), 2)
            found.update(EVEN if odd * m % 4 == 1 else ODD for m in others)
    return found


def _behind(program: Program, value: ValueId, kinds: Set[str]) -> ValueId:
    """What a value was before operations of some kinds; none of them rounds it."""
    while (maker := program.makers[value]) is not None and maker.name in kinds:
        if maker.name == names.CONVERT and (_digits(maker) or 0) < _most_digits(_source(maker)):
            break
        value = maker.inputs[0]
    return value


def _holds(program: Program, value: ValueId, told: Callable[[ValueId, Op | None], bool | None]) -> bool:
    """Whether something holds for a value: it is told of it, or for None holds for all that the value is made of."""
    pending, seen = [value], {value}
    while pending:
        last = pending.pop()
        maker = program.makers[last]
        is_so = told(last, maker)
        if is_so is False or maker is None or len(seen) > DEEP:
            if is_so is not True:
                return False
        elif is_so is None:
            is_read = maker.name == names.CONVERT  # other integers say where elements lie, and which
            read = (
                maker.inputs
                if is_read
                else [v for v in _operands_without_nan(program, maker) if not _is_integer(program, v)]
            )
            more = [v for v in (*read, *maker.captured.values()) if v not in seen]
            seen.update(more)
            pending += more
    return True


def _operands_without_nan(program: Program, maker: Op) -> Sequence[ValueId]:
    """The operands of an op. A select that only replaces NaN counts as the number that it tests."""
    test = program.makers[maker.inputs[0]] if maker.name == names.SELECT else None
    if test is None or test.name != names.COMPARE or test.inputs[0] != test.inputs[1]:
        return maker.inputs
    direction = mlir.enum_value(test.raw.attributes["comparison_direction"])
    of_nan = {"NE": 1, "EQ": 2}.get(direction, 0)
    return [v for place, v in enumerate(maker.inputs) if place != of_nan or v != test.inputs[0]]


def _low_zeros(program: Program, value: ValueId) -> int:
    """How many low bits of an integer are zero, at least: of a known one, of what a mask cuts off, a shift or a factor
    moves up."""
    maker, numbers = program.makers[value], program.constant_behind(value)
    if numbers is not None:
        return min(map(_zeros_of, np.unique(numbers)), default=0)
    if maker is None or maker.name not in (names.AND, names.SHIFT_LEFT, names.MULTIPLY):
        return 0
    found = 0
    for place, operand in enumerate(maker.inputs):
        known = program.constant_behind(operand)
        if known is None or not known.size:
            continue
        if maker.name == names.SHIFT_LEFT:
            least = int(known.min())
            found = max(found, least if place == 1 and least > 0 else 0)
        else:
            found = max(found, min(map(_zeros_of, np.unique(known))))
    return found


def _zeros_of(number: np.integer[Any]) -> int:
    """How many low bits of a number are zero."""
    whole = int(number)
    return (whole & -whole).bit_length() - 1 if whole else 64


def _is_integer(program: Program, value: ValueId) -> bool:
    return element_type_of(program.dtype_of(value) or np.dtype(object)).is_integer


def _applies(op: Op, kinds: frozenset[str]) -> bool:
    """Whether a reduction applies one of some operations."""
    inner = op.bodies[0].ops if op.name in (names.REDUCE, names.REDUCE_WINDOW, names.SCATTER) else ()
    return all(one.name in kinds for one in inner) and bool(inner)


def _numbers(constant: Op) -> Array | None:
    """The finite numbers of a constant, its infinities and NaN as zeros."""
    known = mlir.constant_value(constant.raw)
    if known is None or known.dtype.kind == "c":
        return None
    return np.nan_to_num(np.asarray(known, np.float64), posinf=0.0, neginf=0.0)


# --- counting them ---


def emit_tie_test(beside: OpsBeside, op: Op, outcome: str, given: mlir.RawValue) -> mlir.RawValue:
    """A tensor of truth values: which elements of an op's operand show the outcome."""
    element, digits = _source(op), _digits(op)
    writer = _Writer(beside, given.type, element)
    if digits is None:
        size = writer.op("abs", given)
        down = writer.op("floor", size)
        if outcome in (ABOVE, BELOW):
            side = writer.compare("GT" if outcome == ABOVE else "LT", given, writer.number(0))
            return writer.both(side, writer.compare("NE", size, down))
        is_tie = writer.compare("EQ", writer.op("subtract", size, down), writer.number(0.5))
        half = writer.op("multiply", down, writer.number(0.5))
        return writer.both(is_tie, writer.compare("EQ" if outcome == EVEN else "NE", half, writer.op("floor", half)))
    if element.is_float:
        size, dropped = writer.op("abs", given), element.mantissa + 1 - digits
        low, high = _normal(op)
        is_normal = writer.both(
            writer.compare("GE", size, writer.number(low)), writer.compare("LE", size, writer.number(high))
        )
        kind = mlir.tensor_type(mlir.static_shape(given.type), f"ui{element.bits}")
        bits = _Writer(beside, kind, element_type(f"ui{element.bits}"))
        last = bits.op("and", beside.op("bitcast_convert", [given], kind), bits.number((2 << dropped) - 1))
        wanted = (1 << dropped - 1) + (outcome == ODD) * (1 << dropped)
        return writer.both(is_normal, bits.compare("EQ", last, bits.number(wanted)))
    size = given
    if element.is_signed:
        is_less = writer.compare("LT", given, writer.number(0))
        size = beside.op("select", [is_less, writer.op("negate", given), given], given.type)
    # all but the leading digits are dropped; nothing is, or the whole width, where there are not so many
    dropped = writer.op("subtract", writer.number(element.bits - digits), writer.op("count_leading_zeros", size))
    one = writer.number(1)
    is_long = writer.compare("GE", dropped, one) if element.is_signed else writer.both(
        writer.compare("GE", dropped, one), writer.compare("LE", dropped, writer.number(element.bits - digits))
    )  # fmt: skip
    unit = writer.op("shift_left", one, dropped)
    last = writer.op("and", size, writer.op("subtract", writer.op("shift_left", unit, one), one))
    wanted = writer.op("shift_right_logical", unit, one)
    if outcome == ODD:
        wanted = writer.op("add", wanted, unit)
    return writer.both(is_long, writer.compare("EQ", last, wanted))


class _Writer:
    """Writes ops element by element on tensors of one type."""

    def __init__(self, beside: OpsBeside, kind: mlir.RawType, element: ElementType) -> None:
        self._beside, self._kind, self._element = beside, kind, element

    def op(self, name: str, *operands: mlir.RawValue) -> mlir.RawValue:
        return self._beside.op(name, list(operands), self._kind)

    def number(self, number: float) -> mlir.RawValue:
        assert self._element.dtype is not None
        scalar = mlir.tensor_type([], mlir.tensor_element(self._kind))
        with np.errstate(over="ignore"):  # a bound may be beyond the type's numbers
            literal = np.asarray(number).astype(self._element.dtype)
        made = self._beside.constant(literal, scalar)
        return self._beside.broadcast(made, self._kind)

    def compare(self, direction: str, first: mlir.RawValue, second: mlir.RawValue) -> mlir.RawValue:
        return self._beside.compare(direction, [first, second])

    def both(self, first: mlir.RawValue, second: mlir.RawValue) -> mlir.RawValue:
        return self._beside.op("and", [first, second], first.type)


# --- coming to them ---


TINY = -14
"""Powers of two of numbers that many functions give as they are."""


def aim_operand(op: Op, outcome: str, there: Array, rng: np.random.Generator) -> Array:
    """Numbers for an op's operand that show the outcome, some near those of a run and some drawn.

    Args:
      op, outcome: the operation, and what is asked for.
      there: its operand in a run.
      rng: draws.
    """
    digits = _digits(op)
    if there.dtype.kind in "iu" and digits is not None:
        length = rng.integers(digits + 1, _most_digits(_source(op)) + 1, there.shape)
        whole = _of_parity(rng.integers(1 << digits - 1, 1 << digits, there.shape), outcome)
        sign = np.where((rng.random(there.shape) < 0.5) & _source(op).is_signed, -1, 1)
        return (sign * (2 * whole + 1) * (1 << (length - digits - 1))).astype(there.dtype)
    near = np.asarray(there, np.float64)
    is_free = ~(np.isfinite(near) & (near != 0)) | (rng.random(near.shape) < 0.5)
    scale = np.where(rng.random(near.shape) < 0.5, rng.integers(-2, 4, near.shape), TINY)  # sin(x) is x there
    with np.errstate(all="ignore"):
        near = np.where(is_free, rng.standard_normal(near.shape) * 2.0**scale, near)
        if digits is None:
            size, unit = np.minimum(np.abs(near), 2.0 ** (_source(op).mantissa - 1) - 1), np.asarray(1.0)
        else:
            low, high = _normal(op)
            size = np.clip(np.abs(near), low, high / 2)
            unit = np.ldexp(1.0, np.frexp(size)[1] - digits)
        whole = np.floor(size / unit)
        whole = whole if outcome in (ABOVE, BELOW) else _of_parity(whole, outcome)
        sign = {ABOVE: 1.0, BELOW: -1.0}.get(outcome, np.where(near < 0, -1.0, 1.0))
        return np.asarray(sign * (whole + 0.5) * unit).astype(there.dtype)


def _of_parity(whole: Array, outcome: str) -> Array:
    """Whole numbers, each the next even or odd one at most."""
    return whole - whole % 2 + (outcome == ODD)


SHORT_RUNS, MORE_RUNS, ENOUGH = 8, 64, 512
"""Runs of short floats, of few elements so many more that there are enough, and how many are."""


def short_floats(arguments: Sequence[Array], digits: int, rng: np.random.Generator) -> Iterator[list[Array]]:
    """Arguments whose floats have few binary digits: sums and products of these have a few more, and so are ties often.

    Args:
      arguments: of a run; what are no floats stays as it is.
      digits: of the floats that are rounded to.
      rng: draws.
    """
    given = [np.asarray(array) for array in arguments]
    elements = max((array.size for array in given if element_type_of(array.dtype).is_float), default=ENOUGH)
    for turn in range(min(MORE_RUNS, max(SHORT_RUNS, ENOUGH // max(elements, 1)))):
        yield [_short(array, digits, rng, turn % 2 == 1) for array in given]


def _short(given: Array, digits: int, rng: np.random.Generator, on_one_grid: bool) -> Array:
    """Floats of at most so many digits; on one grid long sums of them have not many more, either."""
    if not element_type_of(given.dtype).is_float:
        return given
    shape = () if on_one_grid else given.shape
    long = rng.integers(1, np.where(rng.random(shape) < 0.5, digits, min(digits, 4)) + 1)
    scale = rng.integers(-3, 4, shape)
    whole = rng.integers(0, 1 << long, given.shape) | (not on_one_grid)
    sign = np.where(rng.random(given.shape) < 0.5, -1.0, 1.0)
    return np.asarray(sign * np.ldexp(whole.astype(np.float64), scale - long)).astype(given.dtype)


def digits_asked(op: Op) -> int:
    """How many binary digits the numbers have that an operation rounds to; of whole numbers as many as small ones."""
    return _digits(op) or 4
