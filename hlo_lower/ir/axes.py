"""Ops over a whole axis: reduce it, sort along it, take rows from it, shift it, contract it in a product."""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value


def reduce_along(build: Builder, value: Value, initial: Value, axis: int | Sequence[int], op: str) -> Value:
    """`stablehlo.reduce` of one axis or several by a binary op ("add", "or", "maximum", ...), in any order.

    Args:
      build: where to build.
      value: the tensor.
      initial: a scalar that changes nothing under the op.
      axis: the axis, or axes; not in the result.
      op: the op's name, with its dialect or without.
    """
    axes = [axis] if isinstance(axis, int) else axis
    shape = [size for d, size in enumerate(value.static_shape) if d not in axes]
    element = mlir.tensor_element(value.raw.type)
    dims = {"dimensions": mlir.dense_i64(axes)}
    node = build.op("stablehlo.reduce", [value, initial], [mlir.tensor_type(shape, element)], dims, regions=1)
    scalar = mlir.tensor_type((), element)
    build.region(node, 0, [scalar, scalar], lambda inner, pair: [inner.elementwise(op, *pair)])
    return node.results[0]


def sort_rows(
    build: Builder,
    keys: Value,
    carried: Sequence[Value],
    *,
    axis: int = -1,
    by_both: bool = False,
    stable: bool = False,
) -> list[Value]:
    """`stablehlo.sort` along an axis by keys without NaN, ascending; other tensors of the same shape go along.

    Args:
      build: where to build.
      keys: the keys.
      carried: what goes along.
      axis: along which, by default the last one.
      by_both: where keys are equal, go by the first of what goes along: then no two compare equal, and a sort that is
        not stable (IREE's is not) gives the same.
      stable: whether equal keys keep their order.
    """
    values = [keys, *carried]
    types = [value.raw.type for value in values]
    along, is_stable = axis % len(keys.static_shape), str(stable).lower()
    attributes = {"dimension": mlir.i64_attribute(along), "is_stable": mlir.parse_attribute(is_stable)}
    node = build.op("stablehlo.sort", values, types, attributes, regions=1)
    scalars = [mlir.tensor_type((), mlir.tensor_element(t)) for t in types for _ in range(2)]

    def ascending(inner: Builder, pairs: tuple[Value, ...]) -> Sequence[Value]:
        less = inner.compare(pairs[0], "LT", pairs[1])
        if not by_both:
            return [less]
        equal, before = inner.compare(pairs[0], "EQ", pairs[1]), inner.compare(pairs[2], "LT", pairs[3])
        return [inner.or_(less, inner.and_(equal, before))]

    build.region(node, 0, scalars, ascending)
    return list(node.results)


def take_rows(build: Builder, value: Value, places: Value) -> Value:
    """For each b the rows of value[b] at places[b]: [B, N, ...] and integers in [0, N) of [B, D] to [B, D, ...]."""
    (b, n, *rest), (_, d) = value.static_shape, places.static_shape
    if b > 1:
        element = places.element_type
        base = build.multiply(build.iota((b, d), 0, element), build.constant(n, (b, d), element))
        places = build.add(places, base)
    rows = build.gather_rows(build.reshape(value, (b * n, *rest)), build.reshape(places, (b * d, 1)), 0)
    return build.reshape(rows, (b, d, *rest))


def take_along(build: Builder, value: Value, places: Value, axis: int, batch: Sequence[int] = ()) -> Value:
    """The rows along an axis that a list names, [n] of integers in bounds; with dims of a batch, which the value has in
    order, each of their positions has its own, [*batch, n]."""
    order = [*range(len(batch))]
    order.insert(sorted([*batch, axis]).index(axis), len(batch))
    named = build.transpose(places, order)
    return build.gather_rows(value, build.reshape(named, (*named.static_shape, 1)), axis, batch)


def slice_along(build: Builder, value: Value, axis: int, start: int, length: int) -> Value:
    """So many neighbours along an axis, from a place on."""
    lows, highs = [0] * len(value.static_shape), list(value.static_shape)
    lows[axis], highs[axis] = start, start + length
    return build.slice(value, lows, highs)


def shift_along(build: Builder, value: Value, step: int, filling: Value) -> Value:
    """What stands step places before, along dim 1; the filling, a scalar, where there is nothing."""
    shape = value.static_shape
    if step >= shape[1]:
        return build.broadcast(filling, shape)
    kept = build.slice(value, [0] * len(shape), [shape[0], shape[1] - step, *shape[2:]])
    return build.pad(kept, filling, [0, step, *(0 for _ in shape[2:])], [0] * len(shape))


def highest_precision() -> dict[str, mlir.RawAttribute]:
    """The attribute of a product that rounds neither operand."""
    highest = "#stablehlo<precision HIGHEST>"
    return {"precision_config": mlir.parse_attribute(f"[{highest}, {highest}]")}


def matrix_products(build: Builder, left: Value, right: Value) -> Value:
    """The products of matrices, at highest precision: [*B, D, N] with [*B, N, W] to [*B, D, W]."""
    (*batch, d, _), w = left.static_shape, right.static_shape[-1]
    along = list(range(len(batch)))
    numbers = f"lhs_batching_dimensions = {along}, rhs_batching_dimensions = {along}, "
    numbers += f"lhs_contracting_dimensions = [{len(along) + 1}], rhs_contracting_dimensions = [{len(along)}]"
    attributes = {"dot_dimension_numbers": mlir.parse_attribute(f"#stablehlo.dot<{numbers}>"), **highest_precision()}
    result = mlir.tensor_type((*batch, d, w), mlir.tensor_element(left.raw.type))
    return build.op("stablehlo.dot_general", [left, right], [result], attributes).results[0]
