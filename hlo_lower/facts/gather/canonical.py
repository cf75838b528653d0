"""A gather of static shape in one form, whatever its dimension numbers: positions, columns of starts, windows.

A gather reads, for each position of its indices without the index vector, a window of the operand: in an indexed dim
from a start, in a batching dim at the coordinate that the position has there, in every other dim from 0. Starts are
clamped so that the window lies inside (StableHLO specification, section gather).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.quirks.moves import row_order

WIDE = 1 << 31
"""From this number of elements on places do not fit i32."""


@dataclass(frozen=True)
class CanonicalGather:
    """One gather, and how to build its parts in front of it.

    Attributes:
      node: the gather.
      numbers: its dimension numbers.
      window: extent of the window in each operand dim; 1 in a batching dim.
      positions: the shape of the indices without the index vector, in their order.
    """

    node: Node
    numbers: mlir.GatherNumbers
    window: tuple[int, ...]
    positions: tuple[int, ...]

    @property
    def operand(self) -> Value:
        """What is read."""
        return self.node.operand(0)

    @property
    def indices(self) -> Value:
        """The starts as they stand in the module."""
        return self.node.operand(1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The operand's shape."""
        return self.operand.static_shape

    @property
    def count(self) -> int:
        """The number of windows."""
        return prod(self.positions)

    @property
    def limits(self) -> tuple[int, ...]:
        """For each component of the index vector the greatest start whose window lies inside."""
        return tuple(self.shape[d] - self.window[d] for d in self.numbers.start_index_map)

    @property
    def start_type(self) -> str:
        """The type of starts once they are clamped: i32 unless the operand is too large for it."""
        return "i64" if any(size >= WIDE for size in (prod(self.shape), self.count)) else "i32"

    @property
    def batching(self) -> dict[int, int]:
        """For each batching dim of the operand its position dim."""
        vector = self.numbers.index_vector_dim
        pairs = zip(self.numbers.operand_batching_dims, self.numbers.start_indices_batching_dims, strict=True)
        return {d: k - (k > vector) for d, k in pairs}

    @property
    def is_rows(self) -> bool:
        """Whether it reads whole rows: extent 1 in indexed dims, of which there are some."""
        indexed = self.numbers.start_index_map
        return bool(indexed) and all(self.window[d] == 1 for d in indexed)

    def clamped_indices(self, build: Builder) -> Value:
        """The indices clamped to [0, limit], in their own shape and type, which may not hold the limit."""
        indices = self.indices
        low, high = type_range(indices.element_type) or (0, 0)
        shape, vector = indices.static_shape, self.numbers.index_vector_dim
        limits = [min(limit, high) for limit in self.limits]
        if low < 0:
            zero = build.constant(0, shape, indices.element_type)
            indices = build.maximum(indices, zero)
        if all(limit == high for limit in limits):
            return indices
        if len(set(limits)) == 1:
            bound = build.constant(limits[0], shape, indices.element_type)
        else:
            bound = build.broadcast(build.constant_array(np.asarray(limits), indices.element_type), shape, [vector])
        return build.minimum(indices, bound)

    def starts(self, build: Builder, *, clamp: bool) -> dict[int, Value]:
        """For each operand dim that is not read from 0 the starts of all windows: [count], of `start_type`.

        Args:
          build: where to build.
          clamp: whether starts may be outside and are to be clamped.
        """
        rank, vector = len(self.indices.static_shape), self.numbers.index_vector_dim
        indices = build.convert(self.clamped_indices(build) if clamp else self.indices, self.start_type)
        count, components = self.count, len(self.numbers.start_index_map)
        if vector < rank:
            indices = build.transpose(indices, [*(d for d in range(rank) if d != vector), vector])
        table = build.reshape(indices, (count, components))
        found = {
            d: build.reshape(build.slice(table, [0, k], [count, k + 1]), (count,))
            for k, d in enumerate(self.numbers.start_index_map)
        }
        for d, k in self.batching.items():
            found[d] = build.reshape(build.iota(self.positions, k, self.start_type), (count,))
        return found

    def result_of(self, build: Builder, windows: Value) -> Value:
        """The gather's result from its windows, [count, *window]."""
        dropped = {*self.numbers.collapsed_slice_dims, *self.numbers.operand_batching_dims}
        kept = [size for d, size in enumerate(self.window) if d not in dropped]
        spread = build.reshape(windows, (*self.positions, *kept))
        offsets = sorted(self.numbers.offset_dims)
        others = [d for d in range(len(self.positions) + len(kept)) if d not in offsets]
        order = {d: k for k, d in enumerate([*others, *offsets])}
        return build.transpose(spread, [order[d] for d in range(len(order))])


def read_gather(node: Node) -> CanonicalGather | None:
    """The canonical form of a `stablehlo.gather` of static shape.

    None where the element type is no plain one, or a dim that is dropped has extent 0 in the window: such a gather
    reads at its starts, which the specification does not keep inside.
    """
    if type_range(node.operand(1).element_type) is None or "quant" in str(node.operand(0).raw.type):
        return None
    numbers = mlir.gather_dimension_numbers(node.raw)
    if any(node.integers("slice_sizes")[d] == 0 for d in numbers.collapsed_slice_dims):
        return None
    shape = node.operand(1).static_shape
    positions = tuple(size for d, size in enumerate(shape) if d != numbers.index_vector_dim)
    return CanonicalGather(node, numbers, node.integers("slice_sizes"), positions)


# --- a gather whose positions and windows stand where those of `numpy.take` do, and what moves its result ---


def gather_in_order(build: Builder, gather: CanonicalGather, indices: Value) -> Value:
    """Build a gather in order, at indices like its own, and move its result; a gather of more than whole rows gets its
    index vectors last."""
    numbers, rank = gather.numbers, len(indices.static_shape)
    vector = numbers.index_vector_dim
    indices = build.transpose(indices, [*(d for d in range(rank) if d != vector), *[vector][: rank - vector]])
    indices = build.reshape(indices, (*gather.positions, len(numbers.start_index_map)))
    order = row_order(gather.node)
    if order is None:
        [result] = gather.node.results
        return _gather(build, gather, indices, numbers.offset_dims, numbers.collapsed_slice_dims, result.static_shape)
    sizes = [gather.positions[k] if what == "position" else gather.shape[k] for what, k in order]
    offsets = tuple(k for k, (what, _) in enumerate(order) if what == "window")
    found = _gather(build, gather, indices, offsets, sorted(numbers.start_index_map), sizes)
    ordered = sorted(order)  # positions in front
    moved = build.transpose(found, [order.index(place) for place in ordered])
    return gather.result_of(build, build.reshape(moved, (gather.count, *gather.window)))


def _gather(
    build: Builder,
    gather: CanonicalGather,
    indices: Value,
    offsets: Sequence[int],
    collapsed: Sequence[int],
    shape: Sequence[int],
) -> Value:
    numbers, vector = gather.numbers, gather.numbers.index_vector_dim
    batched = [d - (d > vector) for d in numbers.start_indices_batching_dims]
    told = f"offset_dims = {list(offsets)}, collapsed_slice_dims = {list(collapsed)}, "
    told += f"operand_batching_dims = {list(numbers.operand_batching_dims)}, start_indices_batching_dims = {batched}, "
    told += f"start_index_map = {list(numbers.start_index_map)}, index_vector_dim = {len(gather.positions)}"
    return build.gather(gather.operand, indices, told, gather.window, shape)
