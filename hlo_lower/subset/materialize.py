"""Materialize a part of a tensor, and yield a value to it: a part says where, this file says by which ops.

    static run                       slice
    runtime run                      dynamic_slice                dynamic_update_slice
    rows that an index tensor picks  gather                       scatter, or scatter-add

The starts of ranges lie inside (`StridedRange`), so that `dynamic_slice` and `dynamic_update_slice` never clamp, and
the row numbers are the reader's: out of bounds a gather clamps and a scatter drops, which a caller who cannot exclude
it must not want otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlo_lower import mlir
from hlo_lower.graph import Builder, Value
from hlo_lower.subset.dynamic_tile import DynamicTile
from hlo_lower.subset.kinds import Subset
from hlo_lower.subset.tensor_subset import Offset, Rows, StridedRange, TensorSubset

INDEX = "i32"


@dataclass
class Bindings:
    """What the names in parts stand for where code is built.

    Attributes:
      iterators: the name of an iterator to its value, known now or at run time (a scalar of `INDEX`).
      indices: the name of an index tensor to a column [n, 1] of row numbers.
    """

    iterators: Mapping[str, int | Value] = field(default_factory=dict[str, "int | Value"])
    indices: Mapping[str, Value] = field(default_factory=dict[str, Value])
    _built: dict[Offset, Value] = field(default_factory=dict[Offset, Value])

    def known(self, offset: Offset) -> int | None:
        """Where an offset is, if that is known now."""
        step = self.iterators[offset.iterator] if offset.scale else 0
        return None if isinstance(step, Value) else offset.constant + offset.scale * step

    def start(self, build: Builder, offset: Offset) -> Value:
        """An offset as a scalar; each is built once."""
        if offset not in self._built:
            self._built[offset] = self._start(build, offset)
        return self._built[offset]

    def _start(self, build: Builder, offset: Offset) -> Value:
        known = self.known(offset)
        if known is not None:
            return build.constant(known, (), INDEX)
        step = self.iterators[offset.iterator]
        assert isinstance(step, Value)
        if offset.scale != 1:
            step = build.elementwise("multiply", step, build.constant(offset.scale, (), INDEX))
        if offset.constant:
            step = build.elementwise("add", step, build.constant(offset.constant, (), INDEX))
        return step


def materialize(build: Builder, tensor: Value, part: TensorSubset, bound: Bindings) -> Value:
    """The elements of a part, as a tensor of the part's sizes."""
    runs = TensorSubset(
        part.shape, tuple(a if isinstance(a, StridedRange) else StridedRange(Offset(), n) for a, n in _axes(part))
    )
    value = _materialize_runs(build, tensor, runs, bound)
    for dim, axis in enumerate(part.axes):
        if isinstance(axis, Rows):
            value = build.gather_rows(value, bound.indices[axis.indices], dim)
    return value


def _axes(part: TensorSubset) -> "list[tuple[StridedRange | Rows, int]]":
    return list(zip(part.axes, part.shape, strict=True))


def _runs(part: TensorSubset) -> tuple[StridedRange, ...]:
    return tuple(axis for axis in part.axes if isinstance(axis, StridedRange))


def _materialize_runs(build: Builder, tensor: Value, part: TensorSubset, bound: Bindings) -> Value:
    if part.kind is Subset.FULL:
        return tensor
    runs = _runs(part)
    starts = [bound.known(axis.start) for axis in runs]
    found = [start for start in starts if start is not None]
    if len(found) == len(starts):
        limits = [s + (axis.size - 1) * axis.stride + 1 for s, axis in zip(found, runs, strict=True)]
        return build.slice(tensor, found, limits, [axis.stride for axis in runs])
    assert all(axis.stride == 1 for axis in runs), "a runtime start with a stride"
    return _tile(build, part, bound).materialize(build, tensor)


def _tile(build: Builder, part: TensorSubset, bound: Bindings) -> DynamicTile:
    return DynamicTile(part.shape, tuple(bound.start(build, axis.start) for axis in _runs(part)), part.sizes)


def yield_to(build: Builder, tensor: Value, part: TensorSubset, value: Value, bound: Bindings) -> Value:
    """The tensor with the value written to a part of it.

    Rows that are picked twice get the value of the last one, as an assigning scatter does.
    """
    if any(isinstance(axis, Rows) for axis in part.axes):
        return _scatter(build, tensor, part, value, bound, "")
    assert all(axis.stride == 1 for axis in _runs(part)), "a written run with a stride"
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
    if any(isinstance(axis, Rows) for axis in part.axes):
        return _scatter(build, tensor, part, value, bound, combiner)
    old = materialize(build, tensor, part, bound)
    return yield_to(build, tensor, part, build.elementwise(combiner, old, value), bound)


def _scatter(build: Builder, tensor: Value, part: TensorSubset, value: Value, bound: Bindings, combiner: str) -> Value:
    """A scatter of rows along one axis, all of the others; out of bounds rows are dropped."""
    [axis] = [dim for dim, found in enumerate(part.axes) if isinstance(found, Rows)]
    assert all(part.is_whole(dim) for dim in range(len(part.shape)) if dim != axis), "rows of a tile"
    rows = part.axes[axis]
    assert isinstance(rows, Rows)
    windows = [dim for dim in range(len(part.shape)) if dim != axis]
    numbers = f"update_window_dims = {windows}, inserted_window_dims = [{axis}]"
    numbers += f", scatter_dims_to_operand_dims = [{axis}], index_vector_dim = 1"
    attribute = mlir.parse_attribute(f"#stablehlo.scatter<{numbers}>")
    attributes = {"scatter_dimension_numbers": attribute}
    node = build.op("stablehlo.scatter", [tensor, bound.indices[rows.indices], value], [tensor.raw.type], attributes, 1)
    scalar = mlir.tensor_type((), mlir.tensor_element(tensor.raw.type))
    build.region(
        node, 0, [scalar, scalar], lambda inner, args: [inner.elementwise(combiner, *args) if combiner else args[1]]
    )
    return node.result()
