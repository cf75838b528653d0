"""What a region's inputs are for, and which numbers are worth driving them with: regimes of indices, turning points."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import frexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import TO_WHOLE
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.loops import may_not_end, values_of
from hlo_lower.verify.align.one_nan import NOT_COMPUTED, computes_what_is_ordered, inputs_with_one_nan
from hlo_lower.verify.align.piece import pieces_of, types_of
from hlo_lower.verify.bounds.compare import is_inexact
from hlo_lower.verify.bounds.matrices import definite_inputs, not_said_of
from hlo_lower.verify.read.meanings import DIVISIONS
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, location_of, ops_within
from hlo_lower.verify.run import CannotRunError

# --- regimes of indices ---
#
# Inputs that drive a scatter through every index regime, and seeded inputs for a whole module.
#
# A regime says where window starts shall lie.

Array = NDArray[Any]

REGIMES = (
    "in range",
    "first and last",
    "one past the end",
    "overhanging",
    "negative",
    "far out",
    "duplicates",
    "all equal",
    "sorted",
    "all dropped",
    "mixed",
    "some dropped",
)
"""Where the window starts are drawn from; see `starts_in`."""

SPECIAL_VALUES = ("mixed", "duplicates")
"""Regimes whose operands and updates hold NaN, infinities and signed zeros; the others hold ordinary numbers."""

TURNED = ("first and last", "one past the end", "overhanging", "negative", "far out", "mixed")
"""Regimes of which a scatter of few windows is run several times: one draw would leave most of their places out."""

REPEATED = ("duplicates", "all equal", "mixed", "some dropped")
"""Regimes whose values decide what is seen, the rounding of a sum, a zero's sign: small scatters run them again."""

VALUES_AIMED_AT = 4
"""Runs of these."""

WINDOWS_AIMED_AT = 12
"""Windows that such a regime places in all: as many as it has places, or nearly."""


@dataclass
class Turn:
    """One of several runs of a regime.

    Attributes:
      number: from 0; the first one takes any places.
      order: draws the order in which the others take them; made anew with the same seed for each turn, so that they
        take different ones.
    """

    number: int
    order: np.random.Generator


def turns_of(regime: str, positions: int, elements: int) -> int:
    """How many runs a regime needs; fewer where one is dear."""
    least = VALUES_AIMED_AT if regime in REPEATED and elements <= 1 << 10 else 1
    if regime not in TURNED or positions < 1:
        return least
    most = WINDOWS_AIMED_AT if elements <= 1 << 16 else 4 if elements <= 1 << 20 else 1
    return max(least, min(most, -(-WINDOWS_AIMED_AT // positions)))


@dataclass(frozen=True)
class Column:
    """One component of the index vector: the size of its operand dim and the extent of the window there."""

    size: int
    window: int


def starts_in(
    rng: np.random.Generator,
    regime: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    column: Column,
    turn: Turn | None = None,
) -> Array:
    """Starts in one dim of size D under a window of extent W, in the leaf's type."""
    size, window = column.size, column.window
    last = max(size - window, 0)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    inside = list(range(last + 1)) if last < 4096 else [0, 1, last // 2, last - 1, last]
    overhanging = [*range(max(1 - window, -8), 0), *range(last + 1, min(size, last + 9))]
    narrowed = [sign * (1 << bits) + last // 2 for bits in (8, 16, 32) for sign in (1, -1)]  # inside in fewer bits
    pools: dict[str, list[int]] = {
        "in range": inside,
        "first and last": [0, last],
        "one past the end": [last, last + 1],
        "overhanging": overhanging or [last + 1],
        "negative": [-1, -2, -size, -size - 1],
        "far out": [low, high, low + 1, high - 1, size + window, -size - window, 2**31 - 1, -(2**31), 2**31, *narrowed],
        "duplicates": [int(v) for v in rng.choice(inside, 2)],
        "all equal": [int(rng.choice(inside))],
        "sorted": inside,
        "all dropped": [size, size + 1, size + window],
    }
    pools["some dropped"] = [0, min(1, last), size, -size - window]  # what one write leaves for those that follow it
    pool = pools.get(regime) or [v for values in pools.values() for v in values]
    fitting = [v for v in pool if low <= v <= high] or [min(max(v, low), high) for v in pool]
    places = rng.integers(len(fitting), size=shape)
    count = prod(shape)
    if turn is not None and turn.number and count < len(fitting):  # each takes the next ones, in an order of its own
        order = turn.order.permutation(len(fitting))
        places = order[((turn.number - 1) * count + np.arange(count)) % len(fitting)].reshape(shape)
    drawn = np.asarray(fitting, object)[places]
    array = np.asarray(drawn).astype(dtype)
    outside = [v for v in (size, *pools["negative"]) if low <= v <= high]
    if regime == "some dropped" and turn is not None and turn.number in (1, 2) and outside and count:
        places = np.arange(count) == (0 if turn.number == 1 else count - 1)  # all but the first one, or the last one
        array = np.where(places, 0, outside[0]).astype(dtype).reshape(shape)
    return np.sort(array, axis=None).reshape(shape) if regime == "sorted" else array


def ordinary(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Ordinary values: normal floats, integers of the whole type, booleans."""
    shape = tuple(shape)
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True))
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if (ends := element_type_of(dtype).integer_range) is not None:  # the narrow integers of ml_dtypes
        return np.asarray(rng.integers(ends[0], ends[1] + 1, size=shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


SMALL, REACH = 4, 32
"""Below the one lie the integers of a first run, in range for most tables; below the other those of further runs."""


def other_integers(
    rng: np.random.Generator, number: int, shape: tuple[int, ...], dtype: np.dtype[Any], largest: int
) -> Array:
    """Integers that place no scatter: token ids, lengths, tables of blocks, counts of turns.

    Args:
      rng: draws them.
      number: of the run: small ones in the first; in the second tables ascend, as blocks that lie next to each other
        do, and other integers are wide; in the third all are wide; further runs repeat these.
      shape, dtype: of the argument.
      largest: the largest extent of the module's arguments, which bounds the wide ones.
    """
    bound = SMALL if number % 3 == 0 else max(SMALL, min(REACH, largest))
    if number % 3 == 1 and len(shape) > 1:
        starts = rng.integers(0, SMALL, size=(*shape[:-1], 1))
        return np.asarray((starts + np.arange(shape[-1])) % bound, np.int64).astype(dtype)
    return np.asarray(rng.integers(0, bound, size=shape), np.int64).astype(dtype)


def with_special_values(rng: np.random.Generator, array: Array) -> Array:
    """The same array with NaN, infinities and zeros, of both signs, in half of its places or more, each equally often.

    Real floats only; types without infinities have NaN for them. A NaN has a sign, too: a total order puts the negative
    one first. No subnormal numbers: XLA's arithmetic on CPU flushes them to zero.
    """
    if not is_inexact(array) or array.dtype.kind == "c":
        return array
    special = rng.permutation(np.asarray([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0])).astype(array.dtype)
    chosen = rng.permutation(array.size)[: max((array.size + 1) // 2, special.size)]  # of a few all places
    changed = array.copy().reshape(-1)
    changed[chosen] = special[np.arange(chosen.size) % special.size]
    return changed.reshape(array.shape)


# --- turning points ---
#
# Numbers at which an operation's result turns, beyond the constants that stand in it: where it rounds the other way.
#
# What narrows a float, or makes one of an integer, is driven at the middles of its numbers, at its ends and among its
# subnormal ones; what rounds to integers at halves and at the integer type's ends; what divides integers by a constant
# at the largest multiples of that, where multiplication and a shift in its place err first. Constants of one type that
# agree in most elements, but not in all, stand for each other: what is read where they differ is aimed at.


MOST = 256
"""Differing elements of two constants, and turning points of a kind, that are aimed at."""

LARGEST = 1 << 24
"""Elements of a constant up to which it is compared with others."""


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
        if op.name == names.CONSTANT and not mlir.is_splat(op.raw) and mlir.is_static(op.raw.results[0].type):
            shape = mlir.static_shape(op.raw.results[0].type)
            value = (
                mlir.constant_value(op.raw, is_complex=True) if 1 < np.prod(shape, dtype=object) <= LARGEST else None
            )
            if value is not None:
                found.setdefault(str(op.raw.results[0].type), []).append((op, value))
    return found


def constants_apart(region: Region, twins: Sequence[Twins]) -> Iterator[str]:
    """The constants that differ, but for twins, where the pieces of a region are the same but for their constants: what
    no run told apart no run showed."""
    ops = [ops_within(ops) for _, ops in region.sides]
    if [op.name for op in ops[0]] != [op.name for op in ops[1]]:
        return
    pieces = pieces_of(region)
    if _HELD.sub("", pieces.first) != _HELD.sub("", pieces.second):
        return
    told = {one.where for one in twins}
    for pair in zip(*ops, strict=True):
        if pair[0].name == names.CONSTANT and (where := location_of(pair[0].raw)) not in told:
            a, b = (mlir.constant_value(op.raw, is_complex=True) for op in pair)
            if a is not None and b is not None and not np.all((a == b) | ((a != a) & (b != b))):
                yield f"the constant at {where}: no run showed that the other piece has another one in its place"


_HELD = re.compile(r"(?<= = stablehlo\.constant )dense.*(?= : )")


def turning_points(ops: Sequence[Op]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The integers and floats at which operations round the other way."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    for op in ops_within(ops):
        if op.name in (names.CONVERT, names.REDUCE_PRECISION, *DIVISIONS, *TO_WHOLE):
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
    if op.name == names.CONVERT and element_type_of(made).is_float:
        p, bits = element_type_of(made).mantissa + 1, int(info.max).bit_length()
        for k in sorted({p, p + 1, 24, 25, bits - 2, bits - 1}):
            if p <= k < bits:  # two ties at the ends of their binade, one of which is even
                ties = ((1 << k) + odd * (1 << (k - p)) for odd in (1, 3))
                yield from (sign * tie for tie in ties for sign in signs)
    elif op.name in DIVISIONS:
        divisor = _splat(op.raw.operands[1])
        if divisor is not None and abs(divisor) > 1:
            most = int(info.max) // abs(divisor)
            for k in {most, (int(info.max) + 1) // abs(divisor), most - 1, most - most // 3, most // 2, 1, 2}:
                yield from (sign * k * abs(divisor) for sign in signs if k * abs(divisor) <= info.max + 1)


def _splat(value: mlir.RawValue) -> int | None:
    """The number that an operand is everywhere, where a constant says so."""
    maker = mlir.producer(value)
    while maker is not None and maker.name == names.BROADCAST_IN_DIM:
        maker = mlir.producer(maker.operands[0])
    if maker is None or maker.name != names.CONSTANT or not mlir.is_splat(maker):
        return None
    number = mlir.constant_value(maker)
    return int(number.reshape(-1)[0]) if number is not None and number.size else None


def _floats(op: Op, source: np.dtype[Any], made: np.dtype[Any]) -> Iterator[float]:
    if not element_type_of(source).is_float:
        return
    if op.name == names.REDUCE_PRECISION:
        exponent, bits = (mlir.integer_of(op.raw.attributes[f"{name}_bits"]) for name in ("exponent", "mantissa"))
        top = (1 << (exponent - 1)) - 1
        yield from _ties(bits + 1, 1 - top, top)
    elif op.name == names.CONVERT and element_type_of(made).is_float:
        narrow = element_type_of(made)
        if narrow.mantissa < element_type_of(source).mantissa:
            yield narrow.most
            yield from _ties(narrow.mantissa + 1, frexp(narrow.smallest)[1] - 1, frexp(narrow.most)[1] - 1)
    elif op.name in TO_WHOLE or (op.name == names.CONVERT and made.kind in "iu"):
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


# --- roles ---
#
# What a region's inputs are for: which of them place windows, and which numbers occur beside them.
#
# Each family of operations says what is worth driving its operands with. Scatter, gather and the dynamic slices place
# windows: their starts are driven through the regimes of `hlo_lower.verify.drive.input_roles`, at the ends of what is
# in bounds and beyond. An input that reaches such a start through integers is driven so, too. Constants of both pieces,
# and their neighbours, are worth trying everywhere: an operation that treats one number otherwise has to name it.


MAX_HARVESTED = 48
"""Distinct constants of a kind that are tried."""

LOOP_REACH = 300
"""How far a loop whose end is an input may count."""


@dataclass
class Role:
    """What an input is for.

    Attributes:
      shape, dtype: of the input.
      columns: the starts of windows that it may feed; one for each component where `vector_dim` is not None.
      vector_dim: the dim that holds whole index vectors, where the input is the index operand itself.
      values: the values of a loop counter, which are all that it may be.
      is_definite: whether it becomes a matrix that is factored as a positive definite one.
      has_one_nan: whether its NaN may be taken for the positive one, as all that are drawn are then.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: tuple[Column, ...] = ()
    vector_dim: int | None = None
    values: Sequence[int] | None = None
    is_definite: bool = False
    has_one_nan: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether it holds integers that NumPy knows."""
        return self.dtype.kind in "iu"


@dataclass
class Roles:
    """The roles of all inputs of a region, and the constants of both pieces.

    Attributes:
      inputs: in the order of the region's inputs.
      integers, floats: constants of the pieces.
      turning: further integers and floats, at which an operation rounds the other way.
      twins: constants that stand for each other and differ.
      positions: windows that the first placing operation places.
      reach: the largest magnitude of integers that place no window, where one of them may be a loop's end; else None.
      not_said: what is not compared of NaN and infinities, which then are not drawn; "" where all is.
    """

    inputs: list[Role]
    integers: tuple[int, ...]
    floats: tuple[float, ...]
    positions: int
    reach: int | None = None
    not_said: str = ""
    turning: tuple[tuple[int, ...], tuple[float, ...]] = (), ()
    twins: Sequence[Twins] = ()


def roles_of(region: Region) -> Roles:
    """What the inputs of a region are for.

    Raises:
      CannotRunError: one of them is not a tensor of static shape and a NumPy element type.
    """
    tensors: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
    for kind in types_of(region):
        dtype = mlir.dtype_of(mlir.tensor_element_name(kind)) if mlir.is_static(kind) else None
        if dtype is None:
            raise CannotRunError(f"an input of type {kind}")
        tensors.append((mlir.static_shape(kind), dtype))
    fed: dict[Number, list[Column]] = {number: [] for number in region.inputs}
    whole: dict[Number, tuple[int, tuple[Column, ...]]] = {}
    positions = 0
    pieces = (region.pair.first, region.first), (region.pair.second, region.second)
    for side, ops in pieces:
        tainted = _Taint(side, set(region.inputs))
        for op in ops:
            tainted.visit(op)
        for placing, value, columns, vector_dim in tainted.placed:
            number = side.numbers.get(value)
            if vector_dim is not None and number in fed:
                whole.setdefault(number, (vector_dim, columns))
                positions = positions or placing
            for source in tainted.of(value):
                fed[source].extend(columns)
                positions = positions or placing
    values = values_of(region)
    side = region.pair.first
    inputs = {side.value_of[number]: number for number in region.inputs if number in side.value_of}
    definite = {inputs[value] for value in definite_inputs(side.program, region.first, inputs)}
    roles: list[Role] = []
    one_nan = inputs_with_one_nan(region)
    for place, (number, (shape, dtype)) in enumerate(zip(region.inputs, tensors, strict=True)):
        role = Role(shape, dtype, is_definite=number in definite, has_one_nan=place in one_nan)
        if dtype.kind in "iu":
            if number in whole:
                role.vector_dim, role.columns = whole[number]
            else:
                role.columns = tuple(dict.fromkeys(fed[number]))
            role.values = values.get(number)
        roles.append(role)
    is_open = any(may_not_end(side, ops) for side, ops in pieces)
    reach = LOOP_REACH if is_open else None
    integers, floats = small_constants([*region.first, *region.second])
    twins = twins_of(region.first, region.second)
    own = [v for one in twins if one.first.dtype.kind != "c" for v in _apart(one)]
    integers = tuple(dict.fromkeys((*(int(v) for v in own if v.dtype.kind in "iu"), *integers)))[:MAX_HARVESTED]
    floats = tuple(dict.fromkeys((*(float(v) for v in own if v.dtype.kind not in "iu"), *floats)))[:MAX_HARVESTED]
    turning, not_said = turning_points([*region.first, *region.second]), not_said_of(region.first, region.second)
    not_said = not_said or (NOT_COMPUTED if computes_what_is_ordered(region) else "")
    return Roles(roles, integers, floats, positions, reach, not_said, turning, twins)


def argument_columns(program: Program, body: Body) -> dict[int, tuple[Column, ...]]:
    """For each argument of a function that reaches the indices of a scatter, by place, the columns that it may feed."""
    side = Side(program, body, 0, {}, Table())
    places = {side.numbers[argument]: place for place, argument in enumerate(body.arguments)}
    taint = _Taint(side, set(places), only_scatters=True)
    for op in body.ops:
        taint.visit(op)
    found: dict[int, list[Column]] = {}
    for _, value, columns, _ in taint.placed:
        for number in taint.of(value):
            found.setdefault(places[number], []).extend(columns)
    return {place: tuple(dict.fromkeys(columns)) for place, columns in found.items()}


def may_overhang(ops: Sequence[Op]) -> bool:
    """Whether a window of a scatter among operations, or in their regions, may lie partly inside: one that is wider
    than 1 where it is indexed. Where none may, the two policies are one."""
    scatters = (op for op in ops_within(ops) if op.name == names.SCATTER)
    return any(column.window > 1 for op in scatters for column in columns_of(op.raw)[2])


@dataclass
class _Taint:
    """Which inputs an integer depends on, and where windows are placed.

    Attributes:
      placed: number of windows, the value that holds starts, their columns, and the dim of whole index vectors.
    """

    side: Side
    inputs: set[Number]
    only_scatters: bool = False
    sources: dict[ValueId, frozenset[Number]] = field(default_factory=dict[ValueId, frozenset[Number]])
    placed: list[tuple[int, ValueId, tuple[Column, ...], int | None]] = field(
        default_factory=list[tuple[int, ValueId, tuple[Column, ...], int | None]]
    )

    def of(self, value: ValueId) -> frozenset[Number]:
        """The inputs that a value depends on through integers."""
        if value in self.sources:
            return self.sources[value]
        number = self.side.numbers.get(value)
        return frozenset({number}) if number in self.inputs else frozenset()

    def visit(self, op: Op) -> None:
        """Follow an operation, and those in its regions."""
        sources: frozenset[Number] = frozenset()
        for value in op.reads:
            tensor = self.side.program.type_of(value)
            if tensor is not None and not element_type(tensor.element_name).is_inexact:
                sources |= self.of(value)
        for body in op.bodies:
            for place, argument in enumerate(body.arguments):
                carried = op.inputs[place] if op.name == names.WHILE and place < len(op.inputs) else None
                self.sources[argument] = sources if carried is None else self.of(carried)
            for inner in body.ops:
                self.visit(inner)
        for result in op.results:
            self.sources[result] = sources
        if op.name == names.SCATTER or not self.only_scatters:
            self.placed.extend(_window_starts(self.side, op))


def _window_starts(side: Side, op: Op) -> Iterable[tuple[int, ValueId, tuple[Column, ...], int | None]]:
    """The window starts that an op reads."""
    shape = side.program.shape_of(op.inputs[0]) if op.inputs else ()
    match op.name:
        case names.SCATTER | names.GATHER:
            number, vector_dim, columns = columns_of(op.raw)
            indices = op.inputs[number]
            count = prod(n for d, n in enumerate(side.program.shape_of(indices)) if d != vector_dim)
            yield count, indices, columns, vector_dim if columns else None
        case names.DYNAMIC_SLICE:
            sizes = mlir.integers_of(op.raw.attributes["slice_sizes"])
            for value, size, extent in zip(op.inputs[1:], shape, sizes, strict=True):
                yield 1, value, (Column(size, extent),), None
        case names.DYNAMIC_UPDATE_SLICE:
            for value, size, extent in zip(op.inputs[2:], shape, side.program.shape_of(op.inputs[1]), strict=True):
                yield 1, value, (Column(size, extent),), None
        case _:
            return


def columns_of(op: mlir.RawOperation) -> tuple[int, int, tuple[Column, ...]]:
    """Of a scatter or gather which operand holds the starts, the dim of their vectors, and each component's column."""
    shape = mlir.static_shape(op.operands[0].type)
    if op.name == names.GATHER:
        read, sizes = mlir.gather_dimension_numbers(op), mlir.integers_of(op.attributes["slice_sizes"])
        return 1, read.index_vector_dim, tuple(Column(shape[d], sizes[d]) for d in read.start_index_map)
    numbers, count = mlir.ScatterNumbers.of(op), len(op.results)
    updates = mlir.static_shape(op.operands[count + 1].type)
    gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(len(shape)) if d not in gone]
    extents = dict(zip(kept, (updates[d] for d in numbers.update_window_dims), strict=True))
    columns = tuple(Column(shape[d], extents.get(d, 1)) for d in numbers.scatter_dims_to_operand_dims)
    return count, numbers.index_vector_dim, columns


def small_constants(ops: Sequence[Op]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The integer and the float constants of ops and of their regions."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    for op in ops_within(ops):
        if op.name != names.CONSTANT or (op.raw.results and not _is_small(op)):
            continue
        value = mlir.constant_value(op.raw, is_complex=True)
        if value is None or not value.size:
            continue
        first = value.reshape(-1)[:8] if any(value.strides) else value[(0,) * value.ndim].reshape(1)
        if value.dtype.kind in "iu":
            integers.update((int(v), None) for v in first)
        elif is_inexact(value):
            parts = (np.real(first), np.imag(first)) if value.dtype.kind == "c" else (first,)
            floats.update((float(v), None) for part in parts for v in part)
    return tuple(integers)[:MAX_HARVESTED], tuple(floats)[:MAX_HARVESTED]


def _apart(twins: Twins) -> Iterator[Any]:
    """The numbers in which two constants differ."""
    for at in twins.at[: MAX_HARVESTED // 2]:
        yield from (twins.first[tuple(at)], twins.second[tuple(at)])


def _is_small(op: Op) -> bool:
    kind = op.raw.results[0].type
    return mlir.is_static(kind) and (prod(mlir.static_shape(kind)) <= 1 << 12 or mlir.is_splat(op.raw))
