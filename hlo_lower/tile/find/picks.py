"""Picks: slices, dynamic slices and gathers, made of another tensor whose dims are some of those of their operand.

A dim of the other tensor is alike one of the operand (same extent, positions that belong together), or has none alike,
and is taken whole. The starts of dims that are alike stay what they were, and are clamped by the same extents and sizes
as they were: so what is out of bounds is clamped to the same position.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.dynamic_tile import clamped_start
from hlo_lower.ops.names import DYNAMIC_SLICE, GATHER, SLICE

Dims = tuple[int | None, ...]
"""For each dim of a tensor the dim of a pick's operand that it is alike."""


def taken_dim(pick: Node) -> int | None:
    """The dim along which a gather takes whole rows, each row number at that dim of the result; None of another."""
    numbers = mlir.gather_dimension_numbers(pick.raw)
    shape, rank = pick.operand(0).static_shape, len(pick.result().shape)
    [*dims] = numbers.collapsed_slice_dims
    if len(dims) != 1 or numbers.start_index_map != tuple(dims) or numbers.operand_batching_dims:
        return None
    others = tuple(d for d in range(rank) if d != dims[0])
    sizes = pick.integers("slice_sizes")
    is_whole = all(sizes[d] == n for d, n in enumerate(shape) if d != dims[0])
    return dims[0] if rank == len(shape) and numbers.offset_dims == others and is_whole else None


def in_place(build: Builder, pick: Node, value: Value, dims: Dims) -> Value | None:
    """A pick of a tensor, whose dims stay in their places; None of a gather that does more than take rows."""
    if pick.name == SLICE:
        return _sliced(build, pick, value, dims)
    if pick.name == DYNAMIC_SLICE:
        return _sliced_at(build, pick, value, dims)
    row = taken_dim(pick)
    if row is None or row not in dims:
        return None if row is None else value
    count, place = pick.result().static_shape[row], dims.index(row)
    numbers = mlir.gather_dimension_numbers(pick.raw)
    others = [d for d in range(len(dims)) if d != place]
    attribute = _numbers(others, [place], [place], numbers.index_vector_dim)
    sizes = [1 if d == place else n for d, n in enumerate(value.static_shape)]
    shape = [count if d == place else n for d, n in enumerate(value.static_shape)]
    return _gather(build, pick, value, pick.operand(1), shape, attribute, sizes)


def _sliced(build: Builder, pick: Node, value: Value, dims: Dims) -> Value:
    starts, limits, strides = (pick.integers(name) for name in ("start_indices", "limit_indices", "strides"))
    runs = [
        (0, n, 1) if d is None else (starts[d], limits[d], strides[d])
        for n, d in zip(value.static_shape, dims, strict=True)
    ]
    first, last, step = ([run[k] for run in runs] for k in range(3))
    return build.slice(value, first, last, step)


def _sliced_at(build: Builder, pick: Node, value: Value, dims: Dims) -> Value:
    """Starts are clamped here, too: XLA adds up the starts of nested slices without (`subset.nested_slices`)."""
    wanted, found = pick.integers("slice_sizes"), pick.operands[1:]
    element = found[0].element_type if found else "i32"
    starts: list[Value] = []
    sizes: list[int] = []
    for extent, dim in zip(value.static_shape, dims, strict=True):
        size = extent if dim is None else wanted[dim]
        if dim is None or size == extent:
            starts.append(build.constant(0, (), element))
        else:
            starts.append(clamped_start(build, found[dim], extent - size))
        sizes.append(size)
    return value if tuple(sizes) == value.shape else build.dynamic_slice(value, starts, sizes)


def of_some_dims(build: Builder, pick: Node, value: Value, dims: Sequence[int]) -> tuple[Value, tuple[int, ...]] | None:
    """A pick of a tensor that has some dims of the operand, in order: what is picked, and its dims in the result.

    None of a gather whose indices count along dims of which those that are left do not follow each other in its index
    vectors, and of one with batching dims.
    """
    if pick.name != GATHER:
        found = in_place(build, pick, value, tuple(dims))
        return None if found is None else (found, tuple(dims))
    numbers = mlir.gather_dimension_numbers(pick.raw)
    if numbers.operand_batching_dims:
        return None
    windows = [d for d in range(len(pick.operand(0).shape)) if d not in numbers.collapsed_slice_dims]
    offset = dict(zip(windows, numbers.offset_dims, strict=True))
    sizes = [pick.integers("slice_sizes")[d] for d in dims]
    shape = pick.result().static_shape
    columns = [k for k, d in enumerate(numbers.start_index_map) if d in dims]
    if not columns:  # the same window for each position: where nothing is counted it begins at 0
        part = build.slice(value, [0] * len(sizes), sizes)
        places = tuple(offset[d] for d in dims if d in offset)
        return build.reshape(part, [shape[r] for r in places]), places
    indices = _columns(build, pick.operand(1), columns, len(numbers.start_index_map), numbers.index_vector_dim)
    if indices is None:
        return None
    places = tuple(r for r in range(len(shape)) if r not in offset.values() or any(offset.get(d) == r for d in dims))
    order = {d: k for k, d in enumerate(dims)}
    attribute = _numbers(
        [places.index(offset[d]) for d in dims if d in offset],
        [order[d] for d in numbers.collapsed_slice_dims if d in order],
        [order[d] for d in numbers.start_index_map if d in order],
        numbers.index_vector_dim,
    )
    return _gather(build, pick, value, indices, [shape[r] for r in places], attribute, sizes), places


def _columns(build: Builder, indices: Value, columns: Sequence[int], count: int, vector: int) -> Value | None:
    """The columns of index vectors that are left; None where they do not follow each other."""
    if len(columns) == count:
        return indices
    if list(columns) != list(range(columns[0], columns[-1] + 1)):
        return None
    shape = indices.static_shape
    starts = [columns[0] if d == vector else 0 for d in range(len(shape))]
    limits = [columns[-1] + 1 if d == vector else n for d, n in enumerate(shape)]
    return build.slice(indices, starts, limits)


def _numbers(offset: Sequence[int], collapsed: Sequence[int], counted: Sequence[int], vector: int) -> mlir.RawAttribute:
    told = f"offset_dims = {list(offset)}, collapsed_slice_dims = {list(collapsed)}"
    told += f", start_index_map = {list(counted)}, index_vector_dim = {vector}"
    return mlir.parse_attribute(f"#stablehlo.gather<{told}>")


def _gather(
    build: Builder,
    pick: Node,
    value: Value,
    indices: Value,
    shape: Sequence[int],
    numbers: mlir.RawAttribute,
    sizes: Sequence[int],
) -> Value:
    """The flag of sorted indices is not kept: of some columns it need not be true."""
    attributes = {"dimension_numbers": numbers, "slice_sizes": mlir.dense_i64(sizes)}
    raw_type = mlir.tensor_type(shape, mlir.tensor_element(value.raw.type))
    return build.op(GATHER, [value, indices], [raw_type], attributes).result()
