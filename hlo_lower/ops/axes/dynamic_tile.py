"""A tile at runtime offsets: defined once, then materialized, yielded to, checked or shifted into the tensor.

All starts of a tile have one integer type that holds every size of the tensor and its negative (`i32` or `i64`), so
the bounds below are built without overflow (traps 6, 7, 9).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value


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

    def shifted(self, build: Builder, spare: int = 0) -> "ShiftedTile":
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
        padded = build.pad(value, build.zero(mlir.tensor_element(value.raw.type)), margins, margins)
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
