"""Gathers, scatters, products, convolutions and windows in NumPy, by the specification."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _starts(indices: Array, vector_dim: int) -> Array:
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**62))
    wide = indices.astype(np.int64)
    return wide[..., None] if vector_dim == wide.ndim else np.moveaxis(wide, vector_dim, -1)


def gather(numbers: Mapping[str, Any], sizes: Sequence[int], x: Array, indices: Array) -> Array:
    """`gather`: starts are clamped."""
    starts = _starts(indices, numbers.get("index_vector_dim", 0))
    batch, offsets = starts.shape[:-1], numbers.get("offset_dims", [])
    dropped = {*numbers.get("collapsed_slice_dims", []), *numbers.get("operand_batching_dims", [])}
    kept = [d for d in range(x.ndim) if d not in dropped]
    place: list[Array] = []
    for d in range(x.ndim):
        start = np.zeros(batch, np.int64)
        if d in numbers.get("start_index_map", []):
            start = starts[..., numbers["start_index_map"].index(d)]
        start = np.clip(start, 0, x.shape[d] - sizes[d])
        if d in numbers.get("operand_batching_dims", []):
            along = numbers["start_indices_batching_dims"][numbers["operand_batching_dims"].index(d)]
            along -= along > numbers.get("index_vector_dim", 0)
            start = start + np.arange(batch[along]).reshape([-1 if i == along else 1 for i in range(len(batch))])
        window = np.zeros([1] * len(kept), np.int64)
        if d in kept:
            window = np.arange(sizes[d]).reshape([-1 if k == d else 1 for k in kept])
        place.append(start.reshape([*batch, *[1] * len(kept)]) + window)
    found = x[tuple(place)] if x.ndim else np.broadcast_to(x, batch)
    found = np.broadcast_to(found, (*batch, *(sizes[d] for d in kept)))
    rank = found.ndim
    order = [0] * rank
    others = [d for d in range(rank) if d not in offsets]
    for source, target in enumerate([*others, *offsets]):
        order[target] = source
    return np.transpose(found, order)


def scatter_windows(numbers: Mapping[str, Any], shape: Sequence[int], indices: Array, update: Sequence[int]) -> Any:
    """For each update in order: its place among the updates, and the slices that it writes, or None where it does not
    fit."""
    starts = _starts(indices, numbers.get("index_vector_dim", 0))
    window_dims = numbers.get("update_window_dims", [])
    batching = numbers.get("input_batching_dims", [])
    inserted = {*numbers.get("inserted_window_dims", []), *batching}
    kept = [d for d in range(len(shape)) if d not in inserted]
    sizes = [1] * len(shape)
    for d, w in zip(kept, window_dims, strict=True):
        sizes[d] = update[w]
    for point in np.ndindex(starts.shape[:-1]):
        first = [0] * len(shape)
        for column, d in enumerate(numbers.get("scatter_dims_to_operand_dims", [])):
            first[d] = int(starts[point][column])
        for d, along in zip(batching, numbers.get("scatter_indices_batching_dims", []), strict=True):
            first[d] = point[along - (along > numbers.get("index_vector_dim", 0))]
        fits = all(f >= 0 and f + s <= n for f, s, n in zip(first, sizes, shape, strict=True))
        yield point, tuple(slice(f, f + s) for f, s in zip(first, sizes, strict=True)) if fits else None


def scatter(numbers: Mapping[str, Any], values: Sequence[Array], body: Callable[..., list[Array]]) -> list[Array]:
    """`scatter`: one update after the other; a window that does not fit is dropped."""
    count = (len(values) - 1) // 2
    results = [np.array(x) for x in values[:count]]
    indices, updates = values[count], values[count + 1 :]
    windows = numbers.get("update_window_dims", [])
    others = [d for d in range(updates[0].ndim) if d not in windows]
    for point, place in scatter_windows(numbers, results[0].shape, indices, updates[0].shape):
        if place is None:
            continue
        at: list[Any] = [slice(None)] * updates[0].ndim
        for d, n in zip(others, point, strict=True):
            at[d] = n
        old = [r[place] for r in results]
        new = [u[tuple(at)].reshape(old[0].shape) for u in updates]
        for r, value in zip(results, body(*old, *new), strict=True):
            r[place] = value
    return results


def dot_general(numbers: Mapping[str, Any], a: Array, b: Array, to: np.dtype[Any]) -> Array:
    """`dot_general`: floats are summed in a wider type and rounded once."""
    la, lb = numbers.get("lhs_contracting_dimensions", numbers.get("lhs_contracting_dims", [])), None
    lb = numbers.get("rhs_contracting_dimensions", numbers.get("rhs_contracting_dims", []))
    ba = numbers.get("lhs_batching_dimensions", numbers.get("lhs_batching_dims", []))
    bb = numbers.get("rhs_batching_dimensions", numbers.get("rhs_batching_dims", []))
    fa = [d for d in range(a.ndim) if d not in (*la, *ba)]
    fb = [d for d in range(b.ndim) if d not in (*lb, *bb)]
    wide: Any = to if to.kind in "iub" else np.complex128 if to.kind == "c" else np.float64
    if to == np.float64:
        wide = np.longdouble
    labels = iter(range(52))
    batch = [next(labels) for _ in ba]
    sums = [next(labels) for _ in la]
    of_a, of_b = [next(labels) for _ in fa], [next(labels) for _ in fb]
    sa, sb = [0] * a.ndim, [0] * b.ndim
    of_first, of_second = (
        ((ba, batch, sa), (la, sums, sa), (fa, of_a, sa)),
        ((bb, batch, sb), (lb, sums, sb), (fb, of_b, sb)),
    )
    for dims, names, axes in (*of_first, *of_second):
        for d, name in zip(dims, names, strict=True):
            axes[d] = name
    return np.asarray(np.einsum(a.astype(wide), sa, b.astype(wide), sb, [*batch, *of_a, *of_b])).astype(to)


def _dilated(x: Array, value: Any, low: Sequence[int], high: Sequence[int], dilation: Sequence[int]) -> Array:
    from mutating.evaluator import _padded

    return _padded(x, value, low, high, [d - 1 for d in dilation])


def reduce_window(a: Mapping[str, Any], values: Sequence[Array], body: Callable[..., list[Array]]) -> list[Array]:
    """`reduce_window`: what is padded is the initial value."""
    half, rank = len(values) // 2, values[0].ndim
    ones = [1] * rank
    padding = a.get("padding") or [[0, 0]] * rank
    if isinstance(padding[0], int):
        padding = [padding] * rank
    strides, base = a.get("window_strides") or ones, a.get("base_dilations") or ones
    dilations, sizes = a.get("window_dilations") or ones, a["window_dimensions"]
    low, high = [p[0] for p in padding], [p[1] for p in padding]
    padded = [_dilated(x, v, low, high, base) for x, v in zip(values[:half], values[half:], strict=True)]
    spans = [(s - 1) * d + 1 for s, d in zip(sizes, dilations, strict=True)]
    shape = [max((n - s) // t + 1, 0) if n >= s else 0 for n, s, t in zip(padded[0].shape, spans, strides, strict=True)]
    results = [np.broadcast_to(v, shape) for v in values[half:]]
    for offset in np.ndindex(tuple(sizes)):
        at = tuple(
            slice(o * d, o * d + (n - 1) * t + 1 if n else o * d, t)
            for o, d, n, t in zip(offset, dilations, shape, strides, strict=True)
        )
        results = body(*results, *(p[at] for p in padded))
    return [np.broadcast_to(r, shape).astype(v.dtype, copy=False) for r, v in zip(results, values, strict=False)]


def convolution(a: Mapping[str, Any], x: Array, kernel: Array, to: np.dtype[Any]) -> Array:
    """`convolution` with one batch group."""
    from mutating.evaluator import Unsupported

    n, spatial = a["dimension_numbers"]
    if a.get("batch_group_count", 1) != 1:
        raise Unsupported("batch groups")
    groups, rank = a.get("feature_group_count", 1), x.ndim - 2
    ones = [1] * rank
    spatial_in, spatial_k, spatial_out = (list(dims) for dims in zip(*spatial, strict=True)) if rank else ([], [], [])
    wide: Any = to if to.kind in "iub" else np.complex128 if to.kind == "c" else np.float64
    x = np.transpose(x, [n.input_batch, n.input_feature, *spatial_in]).astype(wide)
    k = np.transpose(kernel, [n.kernel_output_feature, n.kernel_input_feature, *spatial_k])
    k = k.astype(wide)
    for d, turned in enumerate(a.get("window_reversal") or []):
        k = np.flip(k, d + 2) if turned else k
    padding = a.get("padding") or [[0, 0]] * rank
    if isinstance(padding[0], int):
        padding = [padding] * rank
    strides = a.get("window_strides") or ones
    base, dilations = a.get("lhs_dilation") or ones, a.get("rhs_dilation") or ones
    x = _dilated(x, 0, [0, 0, *(p[0] for p in padding)], [0, 0, *(p[1] for p in padding)], [1, 1, *base])
    sizes = k.shape[2:]
    shape = [
        max((size - (s - 1) * d - 1) // t + 1, 0)
        for size, s, d, t in zip(x.shape[2:], sizes, dilations, strides, strict=True)
    ]
    result = np.zeros((x.shape[0], k.shape[0], *shape), wide)
    per_in, per_out = k.shape[1], k.shape[0] // groups
    for offset in np.ndindex(sizes):
        at = tuple(
            slice(o * d, o * d + (m - 1) * t + 1 if m else o * d, t)
            for o, d, m, t in zip(offset, dilations, shape, strides, strict=True)
        )
        part = x[(slice(None), slice(None), *at)]
        for g in range(groups):
            taken = part[:, g * per_in : (g + 1) * per_in]
            outs = slice(g * per_out, (g + 1) * per_out)
            result[:, outs] += np.einsum("ni...,oi->no...", taken, k[(outs, slice(None), *offset)])
    order = [0] * result.ndim
    for source, target in enumerate([n.output_batch, n.output_feature, *spatial_out]):
        order[target] = source
    return np.transpose(result, order).astype(to)
