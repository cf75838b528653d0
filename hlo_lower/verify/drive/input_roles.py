"""What a region's inputs are for: which of them place windows, and which numbers occur beside them.

Each family of operations says what is worth driving its operands with. Scatter, gather and the dynamic slices place
windows: their starts are driven through the regimes of `hlo_lower.verify.drive.index_regimes`, at the ends of what is
in bounds and beyond. An input that reaches such a start through integers is driven so, too. Constants of both pieces,
and their neighbours, are worth trying everywhere: an operation that treats one number otherwise has to name it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Region, Side
from hlo_lower.verify.align.counters import may_not_end
from hlo_lower.verify.align.piece import types_of
from hlo_lower.verify.bounds.compare import is_inexact
from hlo_lower.verify.bounds.matrix_ops import definite_inputs, not_said_of
from hlo_lower.verify.drive.index_regimes import Column
from hlo_lower.verify.drive.ranges import Interval
from hlo_lower.verify.drive.turning_points import Twins, turning_points, twins_of, values_of
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, ops_within
from hlo_lower.verify.run import CannotRunError

MAX_HARVESTED = 48
"""Distinct constants of a kind that are tried."""

PLACING = frozenset({"scatter", "gather", "dynamic_slice", "dynamic_update_slice"})
"""Operations that place windows."""

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
      within: between which numbers it lies, where that is known of more than its type.
      is_definite: whether it becomes a matrix that is factored as a positive definite one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: tuple[Column, ...] = ()
    vector_dim: int | None = None
    values: Sequence[int] | None = None
    within: Interval | None = None
    is_definite: bool = False

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


def roles_of(region: Region, within: Mapping[Number, Interval] | None = None) -> Roles:
    """What the inputs of a region are for.

    Args:
      region: the region.
      within: between which numbers some of its inputs lie.

    Raises:
      CannotRunError: one of them is no tensor of static shape and a NumPy element type.
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
    for number, (shape, dtype) in zip(region.inputs, tensors, strict=True):
        role = Role(shape, dtype, within=(within or {}).get(number), is_definite=number in definite)
        if dtype.kind in "iu":
            if number in whole:
                role.vector_dim, role.columns = whole[number]
            else:
                role.columns = tuple(dict.fromkeys(fed[number]))
            role.values = values.get(number)
        roles.append(role)
    is_open = any(may_not_end(side, ops) for side, ops in pieces)
    reach = LOOP_REACH if is_open else None
    integers, floats = _harvested([*region.first, *region.second])
    twins = twins_of(region.first, region.second)
    own = [v for one in twins if one.first.dtype.kind != "c" for v in _apart(one)]
    integers = tuple(dict.fromkeys((*(int(v) for v in own if v.dtype.kind in "iu"), *integers)))[:MAX_HARVESTED]
    floats = tuple(dict.fromkeys((*(float(v) for v in own if v.dtype.kind not in "iu"), *floats)))[:MAX_HARVESTED]
    turning, not_said = turning_points([*region.first, *region.second]), not_said_of(region.first, region.second)
    return Roles(roles, integers, floats, positions, reach, not_said, turning, twins)


def argument_columns(program: Program, body: Body) -> dict[int, tuple[Column, ...]]:
    """For each argument of a function that reaches the indices of a scatter, by place, the columns that it may feed."""
    side = Side(program, body, 0, {}, Table())
    places = {side.numbers[argument]: place for place, argument in enumerate(body.arguments)}
    taint = _Taint(side, set(places), frozenset({"scatter"}))
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
    scatters = (op for op in ops_within(ops) if op.name == "stablehlo.scatter")
    return any(column.window > 1 for op in scatters for column in columns_of(op.raw)[2])


@dataclass
class _Taint:
    """Which inputs an integer depends on, and where windows are placed.

    Attributes:
      placed: number of windows, the value that holds starts, their columns, and the dim of whole index vectors.
    """

    side: Side
    inputs: set[Number]
    placing: frozenset[str] = PLACING
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
                carried = op.inputs[place] if op.name == "stablehlo.while" and place < len(op.inputs) else None
                self.sources[argument] = sources if carried is None else self.of(carried)
            for inner in body.ops:
                self.visit(inner)
        for result in op.results:
            self.sources[result] = sources
        if op.short_name in self.placing:
            self.placed.extend(_placed(self.side, op))


def _placed(side: Side, op: Op) -> Iterable[tuple[int, ValueId, tuple[Column, ...], int | None]]:
    """The starts of windows that an operation reads."""
    shape = _shape(side, op.inputs[0]) if op.inputs else ()
    match op.short_name:
        case "scatter" | "gather":
            number, vector_dim, columns = columns_of(op.raw)
            indices = op.inputs[number]
            count = prod(n for d, n in enumerate(_shape(side, indices)) if d != vector_dim)
            yield count, indices, columns, vector_dim if columns else None
        case "dynamic_slice":
            sizes = mlir.integers_of(op.raw.attributes["slice_sizes"])
            for value, size, extent in zip(op.inputs[1:], shape, sizes, strict=True):
                yield 1, value, (Column(size, extent),), None
        case "dynamic_update_slice":
            for value, size, extent in zip(op.inputs[2:], shape, _shape(side, op.inputs[1]), strict=True):
                yield 1, value, (Column(size, extent),), None
        case _:
            return


def columns_of(op: mlir.RawOperation) -> tuple[int, int, tuple[Column, ...]]:
    """Of a scatter or gather which operand holds the starts, the dim of their vectors, and each component's column."""
    shape = mlir.static_shape(op.operands[0].type)
    if op.name == "stablehlo.gather":
        read, sizes = mlir.gather_dimension_numbers(op), mlir.integers_of(op.attributes["slice_sizes"])
        return 1, read.index_vector_dim, tuple(Column(shape[d], sizes[d]) for d in read.start_index_map)
    numbers, count = mlir.ScatterNumbers.of(op), len(op.results)
    updates = mlir.static_shape(op.operands[count + 1].type)
    gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(len(shape)) if d not in gone]
    extents = dict(zip(kept, (updates[d] for d in numbers.update_window_dims), strict=True))
    columns = tuple(Column(shape[d], extents.get(d, 1)) for d in numbers.scatter_dims_to_operand_dims)
    return count, numbers.index_vector_dim, columns


def _shape(side: Side, value: ValueId) -> tuple[int, ...]:
    tensor = side.program.type_of(value)
    return tuple(int(n or 0) for n in tensor.shape) if tensor is not None else ()


def _harvested(ops: Sequence[Op]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The constants of operations, those in regions included."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    for op in ops_within(ops):
        if op.name != "stablehlo.constant" or (op.raw.results and not _is_small(op)):
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
