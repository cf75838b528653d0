"""A gather in NumPy, element by element as the specification says (StableHLO specification, section gather)."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir.mlir import GatherNumbers

Array = NDArray[Any]


def gather(operand: Array, indices: Array, numbers: GatherNumbers, slice_sizes: Sequence[int]) -> Array:
    """Gather windows of an operand.

    Args:
      operand: what is read.
      indices: integers; starts along `numbers.index_vector_dim`, clamped so that the window lies inside.
      numbers: the dimension numbers.
      slice_sizes: the window's extent in each operand dim.
    """
    vector = numbers.index_vector_dim
    table = indices[..., None] if vector == indices.ndim else indices
    positions = [size for d, size in enumerate(table.shape) if d != vector]
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [d for d in range(operand.ndim) if d not in dropped]
    offsets = sorted(numbers.offset_dims)
    rank = len(positions) + len(kept)
    others = [d for d in range(rank) if d not in offsets]
    shape = [0] * rank
    for d, size in zip(others, positions, strict=True):
        shape[d] = size
    for d, dim in zip(offsets, kept, strict=True):
        shape[d] = slice_sizes[dim]
    result = np.zeros(shape, operand.dtype)
    for place in product(*map(range, shape)):
        position = [place[d] for d in others]
        starts = table[(*position[:vector], slice(None), *position[vector:])]
        at = [0] * operand.ndim
        for d, dim in zip(offsets, kept, strict=True):
            at[dim] = place[d]
        for k, dim in enumerate(numbers.start_index_map):
            at[dim] += min(max(int(starts[k]), 0), operand.shape[dim] - slice_sizes[dim])
        for dim, k in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            at[dim] += position[k - (k > vector)]
        result[place] = operand[tuple(at)]
    return result
