"""A tile at runtime offsets: defined once, then materialized, yielded to, checked or shifted into the tensor.

All starts of a tile have one integer type that holds every size of the tensor and its negative (`i32` or `i64`), so
the bounds below are built without overflow (traps 6, 7, 9).
"""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.graph import Builder, Value


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

    def is_inside(self, build: Builder) -> Value | None:
        """A scalar i1: whether the whole tile lies in the tensor, `0 <= start <= D - W` in each guarded dim; None if
        there is none."""
        inside: Value | None = None
        for dim in self.guarded:
            start = self.starts[dim]
            zero = build.constant(0, (), start.element_type)
            last = build.constant(self.tensor_shape[dim] - self.sizes[dim], (), start.element_type)
            here = build.elementwise("and", build.compare(start, "GE", zero), build.compare(start, "LE", last))
            inside = here if inside is None else build.elementwise("and", inside, here)
        return inside

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
            starts[dim] = build.clamp(bound(0), begin, bound(size - sizes[dim]))
            shifts[dim] = build.elementwise("subtract", starts[dim], begin)
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
            build.elementwise("add", self.shifts[dim], build.constant(margins[dim], (), element))
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
            position = build.elementwise("add", build.iota(line, 0, element), build.broadcast(shift, line))
            low = build.compare(position, "GE", build.constant(0, line, element))
            high = build.compare(position, "LT", build.constant(self.sizes[dim], line, element))
            here = build.broadcast(build.elementwise("and", low, high), shape, (dim,))
            covered = here if covered is None else build.elementwise("and", covered, here)
        return covered
