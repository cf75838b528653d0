"""The windows of a scatter in the order of application, in NumPy: where they start, which elements and rows they write.

Positions are taken row-major, a whole window each, as in `hlo_lower.verify.judges.definitions`; here all at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir.mlir import ScatterNumbers

Array = NDArray[Any]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

BEYOND = 1 << 62
"""Starts are cut to +-2^62, so that sums of them are exact: further out than every size."""


@dataclass(frozen=True, eq=False)
class Applied:
    """The windows of a scatter in the order of application.

    Attributes:
      operand_shape, window: sizes of the operand and of a window, both of rank R.
      starts: [P, R], where each window starts.
      indices: [P, K], the index vectors as they are.
      batching: for each explicit batching dim the coordinate of each position, [P, number of them].
      update_order: the dims of the updates, scatter dims first, then those of the window.
      window_dims: the operand dims that the window dims of the updates stand for.
    """

    operand_shape: tuple[int, ...]
    window: tuple[int, ...]
    starts: Integers
    indices: Array
    batching: Integers
    update_order: tuple[int, ...]
    window_dims: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return 0 in (len(self.starts), prod(self.window), prod(self.operand_shape))

    @cached_property
    def last(self) -> Integers:
        """The last start in each operand dim with which a window is inside."""
        return np.asarray(self.operand_shape, np.int64) - np.asarray(self.window, np.int64)

    @cached_property
    def inside_dims(self) -> Mask:
        """For each position and operand dim whether the start is inside, [P, R]."""
        return np.asarray((self.starts >= 0) & (self.starts <= self.last))

    @cached_property
    def inside(self) -> Mask:
        """For each position whether its window is inside."""
        return np.asarray(np.all(self.inside_dims, axis=1), np.bool_)

    @cached_property
    def outside(self) -> Mask:
        """For each position whether all of its window is outside."""
        shape = np.asarray(self.operand_shape, np.int64)
        beyond: Mask = np.asarray((self.starts >= shape) | (self.starts <= -np.asarray(self.window, np.int64)))
        return np.asarray(np.any(beyond, axis=1), np.bool_)

    def in_dims(self, positions: Sequence[int]) -> Integers:
        """The starts under dims of these sizes, [*positions, R]."""
        return self.starts.reshape(*positions, len(self.operand_shape))

    def written(self, oob: str) -> Integers:
        """The numbers of the elements that are written, in the order in which they are."""
        offsets = _coordinates_of(self.window).T
        places = self.starts[:, None, :] + offsets
        within = (places >= 0) & (places < np.asarray(self.operand_shape, np.int64))
        kept: Mask = np.asarray(np.all(within, axis=2), np.bool_)
        if oob == "xla":
            kept &= self.inside[:, None]
        strides = [prod(self.operand_shape[d + 1 :]) for d in range(len(self.operand_shape))]
        return places[kept] @ np.asarray(strides, np.int64)

    def rows(self, positions: Sequence[int], batch: Sequence[tuple[int, int]], placed: Sequence[int]) -> Integers:
        """The row of each write, [batch coordinates, writes], in the order of application; -1 for one outside."""
        taken = [n for _, n in batch]
        order = [*taken, *(n for n in range(len(positions)) if n not in taken)]
        starts = self.in_dims(positions).transpose(*order, len(order))
        groups = prod(positions[n] for n in taken)
        extents = [self.window[d] for d in placed]
        offsets = _coordinates_of(extents).T
        sizes = np.asarray([self.operand_shape[d] for d in placed], np.int64)
        places = starts[..., list(placed)].reshape(groups, prod(positions) // groups, 1, len(extents)) + offsets
        strides = np.asarray([prod(sizes[k + 1 :].tolist()) for k in range(len(extents))], np.int64)
        inside: Mask = np.asarray(np.all((places >= 0) & (places < sizes), axis=3), np.bool_)
        return np.where(inside, np.where(inside[..., None], places, 0) @ strides, -1).reshape(groups, inside[0].size)


def apply(
    numbers: ScatterNumbers, operand_shape: Sequence[int], updates_shape: Sequence[int], indices: Array
) -> Applied:
    """The windows of a scatter.

    Args:
      numbers: the dimension numbers.
      operand_shape, updates_shape: of the first operand and its updates.
      indices: the index tensor at run time, as it is given.
    """
    rank, ivd = len(operand_shape), numbers.index_vector_dim
    scatter_dims = [d for d in range(len(updates_shape)) if d not in numbers.update_window_dims]
    positions = [updates_shape[d] for d in scatter_dims]
    vectors = np.moveaxis(indices, ivd, -1) if ivd < indices.ndim else indices[..., None]
    vectors = vectors.reshape(prod(positions), len(numbers.scatter_dims_to_operand_dims))
    starts: Integers = np.zeros((prod(positions), rank), np.int64)
    for k, dim in enumerate(numbers.scatter_dims_to_operand_dims):
        starts[:, dim] = _cut(vectors[:, k])
    coordinates = _coordinates_of(positions)
    batching: list[Integers] = []
    for dim, n in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        batching.append(coordinates[n - (n > ivd)])
        starts[:, dim] = batching[-1]
    covered = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    window_dims = tuple(d for d in range(rank) if d not in covered)
    window = [1] * rank
    for operand_dim, update_dim in zip(window_dims, numbers.update_window_dims, strict=True):
        window[operand_dim] = updates_shape[update_dim]
    return Applied(
        operand_shape=tuple(operand_shape),
        window=tuple(window),
        starts=starts,
        indices=vectors,
        batching=np.stack(batching, axis=1) if batching else np.zeros((prod(positions), 0), np.int64),
        update_order=(*scatter_dims, *numbers.update_window_dims),
        window_dims=window_dims,
    )


def _coordinates_of(sizes: Sequence[int]) -> Integers:
    """The coordinates in each dim of these sizes, [dims, their product], row-major."""
    return np.indices(tuple(sizes), np.int64).reshape(len(sizes), prod(sizes))


def _cut(column: Array) -> Integers:
    if column.dtype.kind == "u":
        return np.minimum(column, np.asarray(min(BEYOND, np.iinfo(column.dtype).max), column.dtype)).astype(np.int64)
    return np.clip(column.astype(np.int64), -BEYOND, BEYOND)
