"""Parts of tensors as values, tiles at runtime offsets, and the ops by which a part is read or written.

A part says where it lies, and nothing of how it is read or written. Its kind is in the vocabulary of the classifier
(`hlo_lower.ops.subset`). It reads as `[i:+128, :] of 2048x32000`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias, TypeGuard

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.axes import take_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.subset import Subset


@dataclass(frozen=True)
class Offset:
    """`constant + scale * iterator`: a start that is known now, or in an iteration of a loop.

    Attributes:
      constant: in positions.
      iterator: the name of what counts, or "".
      scale: positions for one step of it; 0 where there is none.
    """

    constant: int = 0
    iterator: str = ""
    scale: int = 0

    def __str__(self) -> str:
        if not self.scale:
            return str(self.constant)
        term = self.iterator if self.scale == 1 else f"{self.scale}*{self.iterator}"
        return f"{term}+{self.constant}" if self.constant else term


@dataclass(frozen=True)
class StridedRange:
    """Positions start, start + stride, ..., `size` of them, all inside of the axis."""

    start: Offset
    size: int
    stride: int = 1

    def __str__(self) -> str:
        tail = f":{self.stride}" if self.stride != 1 else ""
        return str(self.start) if self.size == 1 and not tail else f"{self.start}:+{self.size}{tail}"


@dataclass(frozen=True)
class Filter:
    """Positions that an index tensor names, in its order: `first + stride * index[k]` for each k of a part of it.

    Attributes:
      index: the index tensor; its name, or whatever stands for it.
      part: which of its elements.
      first, stride: what becomes of an element.
      batch: the other dims of the tensor, in order, along which each position has a list of its own.
    """

    index: Hashable
    part: "DimSubset"
    first: Offset = Offset()
    stride: int = 1
    batch: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many positions."""
        return self.part.size

    def __str__(self) -> str:
        if (self.first, self.stride) == (Offset(), 1):
            return f"{self.index}[{self.part}]"
        return f"{self.first} + {self.stride}*{self.index}[{self.part}]"


DimSubset: TypeAlias = StridedRange | Filter
"""A subset of one axis: a tile, of which a point and the full axis are cases, or a filter. `tile/subsets.py` composes
them."""


def batch_of(axis: DimSubset) -> tuple[int, ...]:
    """The other dims along which each position has a list of its own."""
    return axis.batch if isinstance(axis, Filter) else ()


def is_run(axis: DimSubset) -> TypeGuard[StridedRange]:
    """Whether a subset is positions one after the other."""
    return isinstance(axis, StridedRange) and axis.stride == 1


def whole(size: int) -> StridedRange:
    """All of an axis."""
    return StridedRange(Offset(), size)


@dataclass(frozen=True)
class TensorSubset:
    """A part of a tensor.

    Attributes:
      shape: of the tensor.
      axes: the part of each axis.
    """

    shape: tuple[int, ...]
    axes: tuple[DimSubset, ...]

    def __post_init__(self) -> None:
        assert len(self.shape) == len(self.axes), (self.shape, self.axes)

    @classmethod
    def full(cls, shape: Sequence[int]) -> "TensorSubset":
        """All of a tensor."""
        return cls(tuple(shape), tuple(whole(size) for size in shape))

    def along(self, dim: int, axis: DimSubset) -> "TensorSubset":
        """The same with another part of one axis."""
        return TensorSubset(self.shape, (*self.axes[:dim], axis, *self.axes[dim + 1 :]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(axis.size for axis in self.axes)

    def is_whole(self, dim: int) -> bool:
        """Whether it is all of an axis, in order."""
        return self.axes[dim] == whole(self.shape[dim])

    @property
    def kind(self) -> Subset:
        """What a classifier calls it."""
        if 0 in self.sizes:
            return Subset.EMPTY
        if all(map(self.is_whole, range(len(self.shape)))):
            return Subset.FULL
        if any(isinstance(axis, Filter) for axis in self.axes):
            return Subset.FILTER
        return Subset.POINT if set(self.sizes) == {1} else Subset.TILE

    def __str__(self) -> str:
        axes = [":" if self.is_whole(dim) else str(axis) for dim, axis in enumerate(self.axes)]
        return f"[{', '.join(axes)}] of {'x'.join(map(str, self.shape)) or 'scalar'}"


# --- a tile at runtime offsets: defined once, then materialized, yielded to, checked or shifted into the tensor ---
#
# All starts of a tile have one integer type that holds every size of the tensor and its negative (`i32` or `i64`), so
# the bounds below are built without overflow (traps 6, 7, 9).


def clamped_start(build: Builder, start: Value, last: int) -> Value:
    """A start clamped to [0, last]."""
    zero, most = (build.constant(bound, (), start.element_type) for bound in (0, greatest_start(start, last)))
    return build.clamp(zero, start, most) if last else zero


def greatest_start(start: Value, last: int) -> int:
    """The last start; the largest value of its type, where that is less and so clamps nothing."""
    dtype = mlir.dtype_of(start.element_type)
    assert dtype is not None
    return min(last, int(np.iinfo(dtype).max))


def clamped_position(build: Builder, indices: Value, last: Sequence[int], vector: int) -> Value:
    """The indices of a gather or scatter of one position, clamped; those of more or fewer as they are.

    XLA makes a dynamic slice of a gather of one position (`subset.nested_slices`): of a tile it read
    `x[tile + index]` for every index out of bounds.

    Args:
      build: where.
      indices: the index tensor.
      last: for each component of an index vector the last one in bounds.
      vector: the dim that holds the index vector.
    """
    shape, element = indices.static_shape, indices.element_type
    if not last or prod(shape) != len(last):
        return indices
    bounds = np.array([greatest_start(indices, n) for n in last])
    high = build.constant_array(bounds.reshape([n if d == vector else 1 for d, n in enumerate(shape)]), element)
    return build.clamp(build.constant(0, shape, element), indices, high)


@dataclass(frozen=True)
class DynamicTile:
    """The part of a tensor that begins at `starts` and has `sizes`.

    Attributes:
      tensor_shape: shape of the tensor that it is a part of.
      starts: a scalar for each dim.
      sizes: a size for each dim, at least 1; at most the tensor's, but in masked dims.
      guarded: dims in which it may reach out of the tensor, and is dropped as a whole if it does.
      masked: dims in which it may reach out, and the elements outside are dropped one by one.
    """

    tensor_shape: tuple[int, ...]
    starts: tuple[Value, ...]
    sizes: tuple[int, ...]
    guarded: tuple[int, ...] = ()
    masked: tuple[int, ...] = ()

    def materialize(self, build: Builder, tensor: Value) -> Value:
        """Read the tile, where no dim is masked. Out of bounds it reads the nearest tile, as `dynamic_slice` clamps."""
        if self.sizes == self.tensor_shape:
            return tensor
        return build.dynamic_slice(tensor, self.starts, self.sizes)

    def yield_to(self, build: Builder, tensor: Value, value: Value) -> Value:
        """Write the tile. Out of bounds it writes the nearest tile, the one that `materialize` reads."""
        if self.sizes == self.tensor_shape:
            return value
        return build.dynamic_update_slice(tensor, value, self.starts)

    def inside(self, build: Builder) -> "tuple[DynamicTile, Value | None]":
        """The nearest tile that lies in the tensor in the guarded dims, and whether that is this one.

        A start is inside where clamping it to [0, D - W] changes nothing. What reads and writes would clamp, too, but
        XLA makes one slice of a slice of a slice, and adds starts up that it has not clamped (`subset.nested_slices`).

        Returns:
          The tile, and a scalar i1; None for that if no dim is guarded.
        """
        starts, inside = list(self.starts), None
        for dim in self.guarded:
            last = self.tensor_shape[dim] - self.sizes[dim]
            starts[dim] = clamped_start(build, self.starts[dim], last)
            here = build.compare(self.starts[dim], "EQ", starts[dim])
            inside = here if inside is None else build.and_(inside, here)
        return replace(self, starts=tuple(starts)), inside

    def shift(self, build: Builder, spare: int = 0) -> "ShiftedTile":
        """Move the tile into the tensor in its masked dims, by as much as it reaches out.

        With `b = clamp(start, -W, D)`: a start beyond these is as far out as these, and from here on nothing overflows.
        A tile larger than the tensor is cut to it: `S = min(W, D)`. The new start is `s = clamp(b, 0, D - S)`, and
        element k of the moved tile is element `k + (s - b)` of the tile.

        Args:
          build: where to build.
          spare: see `ShiftedTile`.
        """
        starts, sizes = list(self.starts), list(self.sizes)
        shifts: dict[int, Value] = {}
        for dim in self.masked:
            size, window, element = self.tensor_shape[dim], self.sizes[dim], self.starts[dim].element_type

            def bound(value: int, element: str = element) -> Value:
                return build.constant(value, (), element)

            sizes[dim] = min(window, size)
            begin = build.clamp(bound(-window), self.starts[dim], bound(size))
            starts[dim] = clamped_start(build, begin, size - sizes[dim])
            shifts[dim] = build.subtract(starts[dim], begin)
        moved = DynamicTile(self.tensor_shape, tuple(starts), tuple(sizes), self.guarded)
        return ShiftedTile(moved, self.sizes, shifts, spare)


@dataclass(frozen=True)
class ShiftedTile:
    """A tile moved into its tensor.

    Attributes:
      tile: the moved tile, inside the tensor in the dims in which it was moved.
      sizes: of the tile before; W.
      shifts: for each moved dim a scalar in [-S, W]: how far it was moved towards higher positions.
      spare: how much filling is put around a value beyond what is needed. Where one value is moved to several places,
        another number for each keeps the paddings different: a compiler that finds them equal shares the padded value
        and so has to store it (XLA CPU, 512 rows of 32x4096x128 in two parts: 25 MB and 1.5 to 1.9 times the native
        scatter's time shared, nothing and 0.8 times apart).
    """

    tile: DynamicTile
    sizes: tuple[int, ...]
    shifts: dict[int, Value]
    spare: int = 0

    def align(self, build: Builder, value: Value) -> Value:
        """Move the elements of a value of the tile's size so that each keeps its position in the tensor.

        Element k of the result is element k + shift of the value: a slice of the value between S elements of filling on
        either side, at `shift + S`, which is in [0, S + W] and so never clamped. Filling is where `is_covered` says no.
        """
        if not self.shifts:
            return value
        sizes = self.tile.sizes
        margins = [sizes[dim] + self.spare if dim in self.shifts else 0 for dim in range(len(sizes))]
        padded = build.pad(value, build.zero_of(value), margins, margins)
        element = next(iter(self.shifts.values())).element_type
        starts = [
            build.add(self.shifts[dim], build.constant(margins[dim], (), element))
            if dim in self.shifts
            else build.constant(0, (), element)
            for dim in range(len(sizes))
        ]
        return build.dynamic_slice(padded, starts, sizes)

    def is_covered(self, build: Builder) -> Value | None:
        """An i1 tensor of the moved tile's size: which of its elements the tile itself covers; None if all.

        Element k is covered when `0 <= k + shift < W` in each moved dim.
        """
        covered: Value | None = None
        shape = self.tile.sizes
        for dim, shift in self.shifts.items():
            element = shift.element_type
            line = (shape[dim],)
            position = build.add(build.iota(line, 0, element), build.broadcast(shift, line))
            low = build.compare(position, "GE", build.constant(0, line, element))
            high = build.compare(position, "LT", build.constant(self.sizes[dim], line, element))
            here = build.broadcast(build.and_(low, high), shape, (dim,))
            covered = here if covered is None else build.and_(covered, here)
        return covered


# --- materialize a part of a tensor, and yield a value to it: a part says where, this file says by which ops ---
#
#     static run      slice
#     runtime run     dynamic_slice     dynamic_update_slice
#     filter          gather
#
# The starts of ranges lie inside (`StridedRange`), so that `dynamic_slice` and `dynamic_update_slice` never clamp.


INDEX = "i32"


@dataclass
class Bindings:
    """What the names in parts stand for where code is built.

    Attributes:
      iterators: the name of an iterator to its value, known now or at run time (a scalar of `INDEX`).
      indices: the index tensor of a filter to its positions, each in bounds ([n] of `INDEX`; with dims of a batch in
        front [*batch, n]).
    """

    iterators: Mapping[str, int | Value] = field(default_factory=dict[str, "int | Value"])
    indices: Mapping[Hashable, Value] = field(default_factory=dict[Hashable, Value])
    _built: dict[Offset, Value] = field(default_factory=dict[Offset, Value])

    def known_start(self, offset: Offset) -> int | None:
        """An offset as a number; None where it is known at run time only."""
        step = self.iterators[offset.iterator] if offset.scale else 0
        return None if isinstance(step, Value) else offset.constant + offset.scale * step

    def start(self, build: Builder, offset: Offset) -> Value:
        """An offset as a scalar; each is built once."""
        if offset not in self._built:
            self._built[offset] = self._start(build, offset)
        return self._built[offset]

    def positions(self, build: Builder, axis: DimSubset) -> Value:
        """The positions of a subset of an axis, [size] of `INDEX`; of a filter with dims of a batch [*batch, size]."""
        if isinstance(axis, StridedRange):
            begin, found = axis.start, build.iota((axis.size,), 0, INDEX)
        else:
            begin, found = axis.first, self._named(build, axis)
        if axis.stride != 1:
            found = build.multiply(found, build.constant(axis.stride, found.static_shape, INDEX))
        if begin == Offset():
            return found
        return build.add(found, build.broadcast(self.start(build, begin), found.static_shape))

    def _named(self, build: Builder, axis: Filter) -> Value:
        """The elements that a filter is by; where the part has a list for each of a batch, those of the same batch, or
        of the one list that all have."""
        index = self.indices[axis.index]
        last = len(index.shape) - 1
        if not batch_of(axis.part):
            return materialize(build, index, TensorSubset.full(index.static_shape).along(last, axis.part), self)
        places = self.positions(build, axis.part)
        if last:
            return take_along(build, index, places, last, range(last))
        line = build.reshape(places, (prod(places.static_shape),))
        return build.reshape(take_along(build, index, line, 0), places.static_shape)

    def _start(self, build: Builder, offset: Offset) -> Value:
        known = self.known_start(offset)
        if known is not None:
            return build.constant(known, (), INDEX)
        step = self.iterators[offset.iterator]
        assert isinstance(step, Value)
        if offset.scale != 1:
            step = build.multiply(step, build.constant(offset.scale, (), INDEX))
        if offset.constant:
            step = build.add(step, build.constant(offset.constant, (), INDEX))
        return step


def materialize(build: Builder, tensor: Value, part: TensorSubset, bound: Bindings) -> Value:
    """The elements of a part, as a tensor of the part's sizes: of a run with a stride those between its ends are read
    first, of one that goes down it is reversed then."""
    if part.kind is Subset.FULL:
        return tensor
    runs = [whole(n) if isinstance(axis, Filter) else axis for n, axis in zip(part.shape, part.axes, strict=True)]
    starts = [_lowest(run) for run in runs]
    spans = [(run.size - 1) * abs(run.stride) + 1 for run in runs]
    known = [bound.known_start(start) for start in starts]
    found = [start for start in known if start is not None]
    steps = [abs(run.stride) for run in runs]
    if len(found) == len(starts):
        limits = [start + span for start, span in zip(found, spans, strict=True)]
        read = build.slice(tensor, found, limits, steps)
    else:
        at = tuple(bound.start(build, start) for start in starts)
        read = DynamicTile(part.shape, at, tuple(spans)).materialize(build, tensor)
        read = read if set(steps) == {1} else build.slice(read, [0] * len(spans), spans, steps)
    down = [dim for dim, run in enumerate(runs) if run.stride < 0]
    read = build.reverse(read, down) if down else read
    for dim, axis in enumerate(part.axes):
        if isinstance(axis, Filter):
            read = take_along(build, read, bound.positions(build, axis), dim, axis.batch)
    return read


def _lowest(run: StridedRange) -> Offset:
    """Where the lowest position of a run is."""
    return (
        run.start if run.stride > 0 else replace(run.start, constant=run.start.constant + (run.size - 1) * run.stride)
    )


def yield_to(build: Builder, tensor: Value, part: TensorSubset, value: Value, bound: Bindings) -> Value:
    """The tensor with the value written to a part of it."""
    return _tile(build, part, bound).yield_to(build, tensor, value)


def accumulate(
    build: Builder, tensor: Value, part: TensorSubset, value: Value, bound: Bindings, combiner: str
) -> Value:
    """The tensor with the value combined into a part of it: `tensor[part] = combiner(tensor[part], value)`.

    Args:
      build: where.
      tensor, part, value: what is read and written.
      bound: what the names in the part stand for.
      combiner: an elementwise op ("add", "maximum").
    """
    old = materialize(build, tensor, part, bound)
    return yield_to(build, tensor, part, build.elementwise(combiner, old, value), bound)


def _tile(build: Builder, part: TensorSubset, bound: Bindings) -> DynamicTile:
    runs = [axis for axis in part.axes if is_run(axis)]
    assert len(runs) == len(part.axes), "what is written is a run without a stride"
    return DynamicTile(part.shape, tuple(bound.start(build, axis.start) for axis in runs), part.sizes)
