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
      sizes: a size for each dim, at least 1 and at most the tensor's.
      unchecked: dims in which it may reach out of the tensor; in the others it is known not to.
    """

    tensor_shape: tuple[int, ...]
    starts: tuple[Value, ...]
    sizes: tuple[int, ...]
    unchecked: tuple[int, ...]

    def materialize(self, build: Builder, tensor: Value) -> Value:
        """Read the tile. Out of bounds it reads the nearest tile, as `dynamic_slice` clamps its starts."""
        if self.sizes == self.tensor_shape:
            return tensor
        return build.dynamic_slice(tensor, self.starts, self.sizes)

    def yield_to(self, build: Builder, tensor: Value, value: Value) -> Value:
        """Write the tile. Out of bounds it writes the nearest tile, the one that `materialize` reads."""
        if self.sizes == self.tensor_shape:
            return value
        return build.dynamic_update_slice(tensor, value, self.starts)

    def is_inside(self, build: Builder) -> Value:
        """A scalar i1: whether the whole tile lies in the tensor, `0 <= start <= D - W` in each unchecked dim."""
        inside: Value | None = None
        for dim in self.unchecked:
            start = self.starts[dim]
            zero = build.constant(0, (), start.element_type)
            last = build.constant(self.tensor_shape[dim] - self.sizes[dim], (), start.element_type)
            here = build.elementwise("and", build.compare(start, "GE", zero), build.compare(start, "LE", last))
            inside = here if inside is None else build.elementwise("and", inside, here)
        return build.constant(1, (), "i1") if inside is None else inside

    def shifted(self, build: Builder) -> "ShiftedTile":
        """Move the tile into the tensor, by as much as it reaches out.

        With `b = clamp(start, -W, D)`: a start beyond these is as far out as these, and from here on nothing overflows.
        The new start is `s = clamp(b, 0, D - W)`, and element k of the moved tile is element `k + (s - b)` of the tile.
        """
        starts = list(self.starts)
        shifts: dict[int, Value] = {}
        for dim in self.unchecked:
            size, window, element = self.tensor_shape[dim], self.sizes[dim], self.starts[dim].element_type

            def bound(value: int, element: str = element) -> Value:
                return build.constant(value, (), element)

            begin = build.clamp(bound(-window), self.starts[dim], bound(size))
            starts[dim] = build.clamp(bound(0), begin, bound(size - window))
            shifts[dim] = build.elementwise("subtract", starts[dim], begin)
        moved = DynamicTile(self.tensor_shape, tuple(starts), self.sizes, ())
        return ShiftedTile(moved, shifts)


@dataclass(frozen=True)
class ShiftedTile:
    """A tile moved into its tensor.

    Attributes:
      tile: the moved tile, inside the tensor.
      shifts: for each moved dim a scalar in [-W, W]: how far it was moved towards higher positions.
    """

    tile: DynamicTile
    shifts: dict[int, Value]

    def align(self, build: Builder, value: Value) -> Value:
        """Move the elements of a value of the tile's size so that each keeps its position in the tensor.

        Element k of the result is element k + shift of the value: a slice of the value between W elements of filling on
        either side, at `shift + W`, which is in [0, 2W] and so never clamped. Filling is where `is_covered` is false.
        """
        if not self.shifts:
            return value
        sizes = self.tile.sizes
        margins = [sizes[dim] if dim in self.shifts else 0 for dim in range(len(sizes))]
        padded = build.pad(value, build.zero(mlir.tensor_element(value.raw.type)), margins, margins)
        element = next(iter(self.shifts.values())).element_type
        starts = [
            build.elementwise("add", self.shifts[dim], build.constant(sizes[dim], (), element))
            if dim in self.shifts
            else build.constant(0, (), element)
            for dim in range(len(sizes))
        ]
        return build.dynamic_slice(padded, starts, sizes)

    def is_covered(self, build: Builder) -> Value:
        """An i1 tensor of the tile's size: which elements of the moved tile the tile itself covers.

        Element k is covered when `0 <= k + shift < W` in each moved dim.
        """
        covered: Value | None = None
        sizes = self.tile.sizes
        for dim, shift in self.shifts.items():
            element = shift.element_type
            position = build.elementwise("add", build.iota(sizes, dim, element), build.broadcast(shift, sizes))
            low = build.compare(position, "GE", build.constant(0, sizes, element))
            high = build.compare(position, "LT", build.constant(sizes[dim], sizes, element))
            here = build.elementwise("and", low, high)
            covered = here if covered is None else build.elementwise("and", covered, here)
        return build.constant(1, sizes, "i1") if covered is None else covered
