"""In which order a gather of whole rows has its positions and windows where nothing is moved afterwards.

That of `numpy.take`: the positions stand where the axis stood; of several axes, which are the first ones, in front.
Core ML's converter gives this order, whatever `offset_dims` say.
"""

from hlo_lower.facts.gather.canonical import CanonicalGather, read_gather
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value

Place = tuple[str, int]
"""("position", k) or ("window", d), d a dim of the operand."""


def is_in_order(node: Node) -> bool:
    """Whether a gather has its index vectors last and, of whole rows, all in that order; true of one without a form."""
    gather = read_gather(node)
    if gather is None:
        return True
    numbers = gather.numbers
    if numbers.index_vector_dim != len(gather.indices.static_shape) - 1:
        return False
    order = row_order(gather)
    if order is None:
        return True
    is_dropped = set(numbers.start_index_map) <= set(numbers.collapsed_slice_dims)
    return is_dropped and numbers.offset_dims == tuple(k for k, (what, _) in enumerate(order) if what == "window")


def row_order(gather: CanonicalGather) -> list[Place] | None:
    """The dims of the result of a gather of whole rows, those that are indexed left out; None of others."""
    numbers, shape = gather.numbers, gather.shape
    batches, indexed = len(numbers.operand_batching_dims), numbers.start_index_map
    leading = tuple(range(batches))
    if (numbers.operand_batching_dims, numbers.start_indices_batching_dims) != (leading, leading):
        return None
    one = {*leading, *indexed}
    if not indexed or any(gather.window[d] != (1 if d in one else size) for d, size in enumerate(shape)):
        return None
    if len(indexed) > 1 and max(indexed) >= batches + len(indexed):
        return None
    windows: list[Place] = [("window", d) for d in range(len(shape)) if d not in one]
    at = batches + (indexed[0] - batches if len(indexed) == 1 else 0)
    positions: list[Place] = [("position", k) for k in range(len(gather.positions))]
    before = at - batches
    return [*positions[:batches], *windows[:before], *positions[batches:], *windows[before:]]


def gathered_in_order(build: Builder, gather: CanonicalGather) -> Value:
    """The gather by one that is in order, its result moved; of others than whole rows by one with its vectors last."""
    numbers, rank = gather.numbers, len(gather.indices.static_shape)
    vector = numbers.index_vector_dim
    indices = build.transpose(gather.indices, [*(d for d in range(rank) if d != vector), *[vector][: rank - vector]])
    indices = build.reshape(indices, (*gather.positions, len(numbers.start_index_map)))
    order = row_order(gather)
    if order is None:
        [result] = gather.node.results
        return _gather(build, gather, indices, (numbers.offset_dims, numbers.collapsed_slice_dims), result.static_shape)
    sizes = [gather.positions[k] if what == "position" else gather.shape[k] for what, k in order]
    offsets = tuple(k for k, (what, _) in enumerate(order) if what == "window")
    found = _gather(build, gather, indices, (offsets, tuple(sorted(numbers.start_index_map))), sizes)
    ordered = sorted(order)  # positions in front
    moved = build.transpose(found, [order.index(place) for place in ordered])
    return gather.result_of(build, build.reshape(moved, (gather.count, *gather.window)))


def _gather(
    build: Builder,
    gather: CanonicalGather,
    indices: Value,
    offsets_and_collapsed: tuple[tuple[int, ...], tuple[int, ...]],
    shape: "list[int] | tuple[int, ...]",
) -> Value:
    numbers, (offsets, collapsed) = gather.numbers, offsets_and_collapsed
    vector = numbers.index_vector_dim
    batched = [d - (d > vector) for d in numbers.start_indices_batching_dims]
    told = f"offset_dims = {list(offsets)}, collapsed_slice_dims = {list(collapsed)}, "
    told += f"operand_batching_dims = {list(numbers.operand_batching_dims)}, start_indices_batching_dims = {batched}, "
    told += f"start_index_map = {list(numbers.start_index_map)}, index_vector_dim = {len(gather.positions)}"
    attributes = {
        "dimension_numbers": mlir.parse_attribute(f"#stablehlo.gather<{told}>"),
        "slice_sizes": mlir.dense_i64(gather.window),
    }
    result = mlir.tensor_type(shape, mlir.tensor_element(gather.operand.raw.type))
    return build.op(gather.node.name, [gather.operand, indices], [result], attributes).results[0]
