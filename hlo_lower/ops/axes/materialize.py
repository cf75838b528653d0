"""Materialize a part of a tensor, and yield a value to it: a part says where, this file says by which ops.

    static run      slice
    runtime run     dynamic_slice     dynamic_update_slice

The starts of ranges lie inside (`StridedRange`), so that `dynamic_slice` and `dynamic_update_slice` never clamp.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.dynamic_tile import DynamicTile
from hlo_lower.ops.axes.tensor_subset import Offset, TensorSubset
from hlo_lower.ops.subset import Subset

INDEX = "i32"


@dataclass
class Bindings:
    """What the names in parts stand for where code is built.

    Attributes:
      iterators: the name of an iterator to its value, known now or at run time (a scalar of `INDEX`).
    """

    iterators: Mapping[str, int | Value] = field(default_factory=dict[str, "int | Value"])
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
            step = build.multiply(step, build.constant(offset.scale, (), INDEX))
        if offset.constant:
            step = build.add(step, build.constant(offset.constant, (), INDEX))
        return step


def materialize(build: Builder, tensor: Value, part: TensorSubset, bound: Bindings) -> Value:
    """The elements of a part, as a tensor of the part's sizes."""
    if part.kind is Subset.FULL:
        return tensor
    starts = [bound.known(axis.start) for axis in part.axes]
    found = [start for start in starts if start is not None]
    if len(found) == len(starts):
        limits = [s + (axis.size - 1) * axis.stride + 1 for s, axis in zip(found, part.axes, strict=True)]
        return build.slice(tensor, found, limits, [axis.stride for axis in part.axes])
    return _tile(build, part, bound).materialize(build, tensor)


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
    assert all(axis.stride == 1 for axis in part.axes), "a run at a runtime start, or that is written, with a stride"
    return DynamicTile(part.shape, tuple(bound.start(build, axis.start) for axis in part.axes), part.sizes)
