"""Scatter in NumPy, straight from the StableHLO specification (section "scatter"), for both out-of-bounds policies.

It is written to be read and to be right, not to be fast: one Python iteration per scatter position. It is an oracle of
its own, because XLA and the reference interpreter are both wrong about some scatters (trap 46).

For each scatter position, in row-major order, a whole window each (the order of XLA; the specification leaves it open):

    start_index          = indices[position, with : at index_vector_dim]
    full_start_index[d]  = start_index[k] where scatter_dims_to_operand_dims[k] = d, else 0
    full_batching_index  = position's coordinate in each input_batching_dim
    result element       = full_start_index + full_batching_index + full_window_index

Under "spec" an update element whose result element lies outside the operand is dropped; under "xla" the whole window
is dropped if any of its elements would be (openxla/stablehlo#1931).

It decides where the other two judges are wrong or refuse, in jaxlib 0.9.0 to 0.10.2; upstream issues as far as there is
one (`hlo_lower.verify.judges.xla_errors` and `hlo_lower.verify.judges.judge` leave them out there):

    XLA on CPU
      an empty index vector at several positions: one update is applied, or none        openxla/xla#48716
      bounds in a narrow index type: i8 in a dim longer than 127 drops what is inside   openxla/xla#48718
      a variadic scatter with one value as two operands: wrong, and corrupts the heap   openxla/xla#29362
      a region that promotes: the result has the operand's narrow type                  no issue known
      operands of several float types in one scatter: refused                           no issue known
      a region that captures what is no constant: refused                               no issue known
      a region that returns a negative i2 constant: overwrites its neighbours           no issue known
      x + 0.0 becomes x: the sign of a zero is lost                                     no issue known
      windows that overhang, under "spec": drops them whole                             openxla/stablehlo#1931
    the StableHLO interpreter
      windows that overhang, under "xla": drops elements                                openxla/stablehlo#1931
      unsigned indices: read as signed                                                  no issue known
      an operand that is used again: updated in place, so the later use is wrong        no issue known
      overlapping windows whose dims precede the scatter dims: goes by update index     no issue known (the spec leaves
                                                                                        the order open)
      complex and f8E5M2 elements: their constants have no form in jaxlib's Python      no issue known
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir.mlir import ScatterNumbers

Array = NDArray[Any]
Combine = Callable[[list[Array], list[Array]], list[Array]]
"""The update computation on windows: current values and updates, one array per operand, to new values."""


@dataclass(frozen=True)
class Window:
    """One window: its scatter position, where it starts in the operand, and which slice of the updates it is.

    Attributes:
      position: coordinates in the scatter dims of the updates.
      start: start in each operand dim; Python integers, so nothing overflows.
      sizes: extent in each operand dim, 1 in inserted and batching dims.
      update_index: index that takes the window out of the updates.
    """

    position: tuple[int, ...]
    start: tuple[int, ...]
    sizes: tuple[int, ...]
    update_index: tuple[int | slice, ...]


def windows(
    operand_shape: Sequence[int], indices: Array, updates_shape: Sequence[int], numbers: ScatterNumbers
) -> Iterator[Window]:
    """The windows of a scatter in the order in which they are applied."""
    rank = len(operand_shape)
    window_dims = set(numbers.update_window_dims)
    scatter_dims = [d for d in range(len(updates_shape)) if d not in window_dims]
    not_in_window = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(rank) if d not in not_in_window]
    sizes = [1] * rank
    for operand_dim, update_dim in zip(kept, numbers.update_window_dims, strict=True):
        sizes[operand_dim] = updates_shape[update_dim]
    ivd = numbers.index_vector_dim
    for position in product(*(range(updates_shape[d]) for d in scatter_dims)):
        where: list[int | slice] = list(position)
        if ivd < indices.ndim:
            where.insert(ivd, slice(None))
        vector = np.atleast_1d(indices[tuple(where)])
        start = [0] * rank
        for component, operand_dim in zip(vector.tolist(), numbers.scatter_dims_to_operand_dims, strict=True):
            start[operand_dim] = int(component)
        batching = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        for operand_dim, indices_dim in batching:
            start[operand_dim] = position[indices_dim - (1 if indices_dim > ivd else 0)]
        coordinates = dict(zip(scatter_dims, position, strict=True))
        update_index = tuple(coordinates.get(d, slice(None)) for d in range(len(updates_shape)))
        yield Window(position, tuple(start), tuple(sizes), update_index)


def scatter(
    operands: Sequence[Array],
    indices: Array,
    updates: Sequence[Array],
    numbers: ScatterNumbers,
    combine: Combine,
    dtypes: Sequence[np.dtype[Any]],
    *,
    oob: Literal["xla", "spec"],
) -> list[Array]:
    """Scatter updates into operands.

    Args:
      operands: arrays of one shape.
      indices: the scatter indices, signed or unsigned integers.
      updates: arrays of one shape, one per operand.
      numbers: the dimension numbers.
      combine: the update computation; gets and returns arrays of the (clipped) window's shape.
      dtypes: element types of the update computation; operands and updates are converted to them first (promotion).
      oob: "xla" drops a window that is not wholly inside, "spec" drops its outside elements.

    Returns:
      The results, of the operands' shape and of `dtypes`.
    """
    results = [np.array(o).astype(t) for o, t in zip(operands, dtypes, strict=True)]
    sources = [np.asarray(u).astype(t) for u, t in zip(updates, dtypes, strict=True)]
    shape = results[0].shape
    for window in windows(shape, indices, sources[0].shape, numbers):
        low = [max(0, -s) for s in window.start]
        high = [min(w, d - s) for s, w, d in zip(window.start, window.sizes, shape, strict=True)]
        clipped = any(lo > 0 or hi < w for lo, hi, w in zip(low, high, window.sizes, strict=True))
        if any(lo >= hi for lo, hi in zip(low, high, strict=True)) or (clipped and oob == "xla"):
            continue
        source = tuple(slice(lo, hi) for lo, hi in zip(low, high, strict=True))
        target = tuple(slice(s + lo, s + hi) for s, lo, hi in zip(window.start, low, high, strict=True))
        values = [u[window.update_index].reshape(window.sizes)[source] for u in sources]
        currents = [r[target].copy() for r in results]  # a region may return them swapped
        for result, new in zip(results, combine(currents, values), strict=True):
            result[target] = new
    return results


@dataclass(frozen=True)
class Hits:
    """What a scatter's indices hit.

    Attributes:
      inside, overhanging, outside: number of windows wholly in the operand, in part, and not at all.
      most: how often the most often written result element is written (whole windows only).
    """

    inside: int
    overhanging: int
    outside: int
    most: int

    def __add__(self, other: "Hits") -> "Hits":
        """Those of two runs."""
        counts = self.inside + other.inside, self.overhanging + other.overhanging, self.outside + other.outside
        return Hits(*counts, max(self.most, other.most))


def count_hits(
    operand_shape: Sequence[int], indices: Array, updates_shape: Sequence[int], numbers: ScatterNumbers
) -> Hits:
    """Count where the windows lie and how often one result element is written."""
    inside = overhanging = outside = 0
    written = np.zeros(tuple(operand_shape), np.int32)
    for window in windows(operand_shape, indices, updates_shape, numbers):
        spans = list(zip(window.start, window.sizes, operand_shape, strict=True))
        if all(s >= 0 and s + w <= d for s, w, d in spans):
            inside += 1
            written[tuple(slice(s, s + w) for s, w, _ in spans)] += 1
        elif any(s + w <= 0 or s >= d for s, w, d in spans):
            outside += 1
        else:
            overhanging += 1
    return Hits(inside, overhanging, outside, int(written.max()) if written.size else 0)
