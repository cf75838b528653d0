"""Build with sizes that are known at run time: an `Extent` is an integer, or a scalar that holds it.

Each function emits the static op where all extents are integers. The dynamic forms are those that jaxlib's shape
refinement turns into static ones when the sizes become known (`real_dynamic_slice` as start, start + size, stride 1).
"""

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value

Extent: TypeAlias = int | Value
"""A size: known now, or a scalar at run time."""


def extent_of(build: Builder, value: Value, dim: int, element: str) -> Extent:
    """The size of a dim; where it is dynamic, `get_dimension_size` as a scalar of this integer type."""
    size = value.shape[dim]
    if size is not None:
        return size
    raw_type = mlir.tensor_type((), "i32")
    attributes = {"dimension": mlir.i64_attribute(dim)}
    found = build.op("stablehlo.get_dimension_size", [value], [raw_type], attributes).results[0]
    return build.convert(found, element)


def scalar(build: Builder, extent: Extent, element: str) -> Value:
    """An extent as a scalar of this integer type."""
    return build.constant(extent, (), element) if isinstance(extent, int) else build.convert(extent, element)


def vector(build: Builder, extents: Sequence[Extent], element: str) -> Value:
    """Extents as a tensor [n] of this integer type."""
    return build.concatenate([build.reshape(scalar(build, e, element), (1,)) for e in extents], 0)


def _type(value: Value, extents: Sequence[Extent]) -> mlir.RawType:
    shape = [e if isinstance(e, int) else None for e in extents]
    return mlir.tensor_type(shape, mlir.tensor_element(value.raw.type))


def part(build: Builder, value: Value, starts: Sequence[Value], extents: Sequence[Extent]) -> Value:
    """The part of these extents at scalar starts, all of one integer type; it must lie in the value."""
    if not extents:
        return value
    if all(isinstance(e, int) for e in extents):
        return build.dynamic_slice(value, starts, [e for e in extents if isinstance(e, int)])
    element = starts[0].element_type
    first, sizes = vector(build, starts, element), vector(build, extents, element)
    limits = build.add(first, sizes)
    strides = build.constant(1, (len(extents),), element)
    return build.op("stablehlo.real_dynamic_slice", [value, first, limits, strides], [_type(value, extents)]).results[0]


def product(build: Builder, extents: Sequence[Extent], element: str) -> Extent:
    """The product of extents, computed in this integer type where one is known at run time only; 1 of none."""
    known = prod(extent for extent in extents if isinstance(extent, int))
    found: Extent = known
    for extent in extents:
        if isinstance(extent, int):
            continue
        factor = scalar(build, extent, element)
        if isinstance(found, int):
            found = factor if found == 1 else build.multiply(factor, scalar(build, found, element))
        else:
            found = build.multiply(found, factor)
    return found


def first_of(build: Builder, value: Value, count: int) -> Value:
    """The first `count` elements of a value [n], n known at run time; zeros take the place of those that it has not.

    It is what a read of `count` elements would be, which needs as many: slices of none are legal, of one too many not.
    """
    if value.is_static and value.static_shape[0] >= count:
        return build.slice(value, [0], [count])
    filler = build.broadcast(build.zero_of(value), (count,))
    joined = mlir.tensor_type((None,), mlir.tensor_element(value.raw.type))
    both = build.op("stablehlo.concatenate", [value, filler], [joined], {"dimension": mlir.i64_attribute(0)}).result()
    return build.slice(both, [0], [count])


def reshape(build: Builder, value: Value, extents: Sequence[Extent], element: str) -> Value:
    """The same elements in row-major order under another shape, its sizes passed in this integer type."""
    if all(isinstance(e, int) for e in extents):
        return build.reshape(value, [e for e in extents if isinstance(e, int)])
    raw_type = _type(value, extents)
    if raw_type == value.raw.type and len(extents) == len(value.shape) and value.shape.count(None) == 1:
        return value
    return build.op("stablehlo.dynamic_reshape", [value, vector(build, extents, element)], [raw_type]).results[0]


def refine_shape(build: Builder, value: Value, raw_type: mlir.RawType) -> Value:
    """The same tensor under a type of the same shape in which other sizes are known."""
    if value.raw.type == raw_type:
        return value
    shape = mlir.tensor_shape(raw_type)
    sizes = [size for size in shape if size is not None]
    if len(sizes) == len(shape):
        return build.reshape(value, sizes)
    extents = [extent_of(build, value, dim, "i32") if size is None else size for dim, size in enumerate(shape)]
    return build.op("stablehlo.dynamic_reshape", [value, vector(build, extents, "i32")], [raw_type]).results[0]


def broadcast_like(build: Builder, value: Value, like: Value, dims: Sequence[int] = ()) -> Value:
    """A value, by default a scalar, broadcast to the shape of another one, its dims being these of it."""
    if like.is_static:
        return build.broadcast(value, like.static_shape, dims)
    extents = [extent_of(build, like, dim, "i32") for dim in range(len(like.shape))]
    return build.op(
        "stablehlo.dynamic_broadcast_in_dim",
        [value, vector(build, extents, "i32")],
        [mlir.tensor_type(like.shape, mlir.tensor_element(value.raw.type))],
        {"broadcast_dimensions": mlir.dense_i64(dims)},
    ).results[0]
