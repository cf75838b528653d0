"""A gather whose positions and windows stand where those of `numpy.take` do, and what moves its result."""

from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.quirks.moves import row_order


def gathered_in_order(build: Builder, gather: CanonicalGather) -> Value:
    """The gather by one that is in order, its result moved; of others than whole rows by one with its vectors last."""
    numbers, rank = gather.numbers, len(gather.indices.static_shape)
    vector = numbers.index_vector_dim
    indices = build.transpose(gather.indices, [*(d for d in range(rank) if d != vector), *[vector][: rank - vector]])
    indices = build.reshape(indices, (*gather.positions, len(numbers.start_index_map)))
    order = row_order(gather.node)
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
