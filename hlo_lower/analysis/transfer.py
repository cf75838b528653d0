"""Transfer functions: the interval of an operation's result from the intervals of its operands.

One function per op of the chains that produce indices. An op without one says nothing, and its result may be anything
that its type allows. All functions are sound for wrap-around: `interval.wrapped` widens what may leave the type.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from hlo_lower import mlir
from hlo_lower.analysis.evidence import Evidence, merge
from hlo_lower.analysis.interval import Interval, bounds_dtype, greater, lesser, pick, type_range, wrapped
from hlo_lower.graph import Node

Transfer = Callable[[Node, Sequence[Interval]], Interval | None]


def _result(node: Node, lo: Any, hi: Any, operands: Sequence[Interval], note: str = "") -> Interval:
    tensor = node.result().tensor_type
    assert tensor is not None
    shape = cast(tuple[int, ...], tensor.shape)
    return wrapped(shape, tensor.element_name, lo, hi, _evidence(node, operands, note))


def _evidence(node: Node, operands: Sequence[Interval], note: str = "") -> Evidence | None:
    """What the operands rest on; with a note, a step of its own on top."""
    parents = merge(tuple(o.evidence for o in operands))
    if note:
        return Evidence.at(node, note, parents)
    if len(parents) > 1:
        return Evidence.at(node, node.name.removeprefix("stablehlo."), parents)
    return parents[0] if parents else None


# --- shapes: the bounds move as the elements do ---


def _constant(node: Node, _: Sequence[Interval]) -> Interval | None:
    values = node.constant()
    if values is None:
        return None
    return Interval.exactly(values, node.result().element_type)


def _iota(node: Node, _: Sequence[Interval]) -> Interval:
    value, dim = node.result(), node.integer("iota_dimension")
    size = value.static_shape[dim]
    shape = [1] * len(value.shape)
    shape[dim] = size
    bounds = np.arange(size).astype(bounds_dtype(value.element_type)).reshape(shape)
    low, high = type_range(value.element_type) or (0, 0)
    if size - 1 > high:  # it wraps around
        bounds = (bounds - low) % (high - low + 1) + low
    evidence = Evidence.at(node, f"iota 0..{size - 1}")
    return Interval(value.static_shape, value.element_type, bounds, bounds, evidence)


def _broadcast_in_dim(node: Node, operands: Sequence[Interval]) -> Interval:
    operand, shape, dims = operands[0], node.result().static_shape, node.integers("broadcast_dimensions")

    def spread(bounds: Any) -> Any:
        if not dims:
            return bounds.reshape((1,) * len(shape))
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        sizes = [1] * len(shape)
        for i, dim in enumerate(dims):
            sizes[dim] = bounds.shape[i]
        return bounds.transpose(order).reshape(sizes)

    return _result(node, spread(operand.lo), spread(operand.hi), operands)


def _reshape(node: Node, operands: Sequence[Interval]) -> Interval:
    operand, shape = operands[0], node.result().static_shape
    if operand.lo.size == 1 and operand.hi.size == 1:
        ones = (1,) * len(shape)
        return _result(node, operand.lo.reshape(ones), operand.hi.reshape(ones), operands)
    lo, hi = operand.full()
    return _result(node, lo.reshape(shape), hi.reshape(shape), operands)


def _transpose(node: Node, operands: Sequence[Interval]) -> Interval:
    permutation = node.integers("permutation")
    return _result(node, operands[0].lo.transpose(permutation), operands[0].hi.transpose(permutation), operands)


def _slice(node: Node, operands: Sequence[Interval]) -> Interval:
    bounds = zip(node.integers("start_indices"), node.integers("limit_indices"), node.integers("strides"), strict=True)
    index = tuple(slice(*b) for b in bounds)

    def cut(array: Any) -> Any:
        return array[tuple(i if size != 1 else slice(None) for i, size in zip(index, array.shape, strict=True))]

    # A dim that is kept at size 1 is uniform: any slice of it is the same, an empty one is never read.
    return _result(node, cut(operands[0].lo), cut(operands[0].hi), operands)


def _concatenate(node: Node, operands: Sequence[Interval]) -> Interval:
    dim = node.integer("dimension")
    lows, highs = zip(*(operand.full() for operand in operands), strict=True)
    return _result(node, np.concatenate(lows, dim), np.concatenate(highs, dim), operands)


def _reverse(node: Node, operands: Sequence[Interval]) -> Interval:
    dims = node.integers("dimensions")
    return _result(node, np.flip(operands[0].lo, dims), np.flip(operands[0].hi, dims), operands)


def _hull(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Each element of the result is some element of the first operand."""
    if operands[0].lo.size == 0:
        return None
    ones, dtype = (1,) * len(node.result().shape), bounds_dtype(operands[0].element_type)
    low, high = operands[0].hull()
    return _result(node, np.full(ones, low, dtype), np.full(ones, high, dtype), operands[:1])


# --- arithmetic ---


def _convert(node: Node, operands: Sequence[Interval]) -> Interval | None:
    operand, element_type = operands[0], node.result().element_type
    if type_range(element_type) is None:
        return None
    if element_type == "i1":  # convert to i1 is "not equal to zero"
        zero_possible, zero_only = (operand.lo <= 0) & (operand.hi >= 0), (operand.lo == 0) & (operand.hi == 0)
        return _result(node, (~zero_possible).astype(np.int64), (~zero_only).astype(np.int64), operands)
    low, high = type_range(element_type) or (0, 0)
    dtype = object if object in (operand.lo.dtype, bounds_dtype(element_type)) else np.int64
    outside = np.asarray((operand.lo < low) | (operand.hi > high), np.bool_)
    lo = pick(outside, np.asarray(low, dtype), operand.lo.astype(dtype))
    hi = pick(outside, np.asarray(high, dtype), operand.hi.astype(dtype))
    return _result(node, lo, hi, operands)


def _add(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    if a.element_type == "i1":
        return _or(node, operands)
    return _result(node, a.lo + b.lo, a.hi + b.hi, operands)


def _subtract(node: Node, operands: Sequence[Interval]) -> Interval | None:
    a, b = operands
    return None if a.element_type == "i1" else _result(node, a.lo - b.hi, a.hi - b.lo, operands)


def _multiply(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    if a.element_type == "i1":
        return _and_bool(node, operands)
    # Python integers: a product of two 32-bit bounds fits int64, but not of two unsigned ones.
    corners = [np.asarray(x.astype(object) * y.astype(object), object) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo = lesser(lesser(corners[0], corners[1]), lesser(corners[2], corners[3]))
    hi = greater(greater(corners[0], corners[1]), greater(corners[2], corners[3]))
    low, high = type_range(a.element_type) or (0, 0)
    outside = np.asarray((lo < low) | (hi > high), np.bool_)
    return _result(node, pick(outside, low, lo), pick(outside, high, hi), operands)


def _negate(node: Node, operands: Sequence[Interval]) -> Interval:
    return _result(node, -operands[0].hi, -operands[0].lo, operands)


def _clamp(node: Node, operands: Sequence[Interval]) -> Interval:
    low, x, high = operands
    low, high = (_scalar_like(b, x) if len(b.shape) != len(x.shape) else b for b in (low, high))
    lo = lesser(greater(x.lo, low.lo), high.lo)
    hi = lesser(greater(x.hi, low.hi), high.hi)
    told = _result(node, lo, hi, operands)
    least, greatest = told.hull()
    return told.because(_evidence(node, operands, f"clamped to [{least}, {greatest}]"))


def _scalar_like(scalar: Interval, like: Interval) -> Interval:
    ones = (1,) * len(like.shape)
    return Interval(like.shape, scalar.element_type, scalar.lo.reshape(ones), scalar.hi.reshape(ones), scalar.evidence)


def _minimum(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    return _result(node, lesser(a.lo, b.lo), lesser(a.hi, b.hi), operands, "minimum")


def _maximum(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    return _result(node, greater(a.lo, b.lo), greater(a.hi, b.hi), operands, "maximum")


def _remainder(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """The remainder takes the dividend's sign and is less than the divisor: |x rem d| <= min(|x|, |d| - 1)."""
    x, d = operands
    if not (np.all(d.lo > 0) or np.all(d.hi < 0)):
        return None
    limit = greater(abs(d.lo), abs(d.hi)) - 1
    lo = pick(x.lo < 0, greater(x.lo, -limit), 0)
    hi = pick(x.hi > 0, lesser(x.hi, limit), 0)
    return _result(node, lo, hi, operands, f"remainder by at most {int(np.max(limit)) + 1 if limit.size else 0}")


# --- booleans and choice ---


def compare_outcome(direction: str, a: Interval, b: Interval) -> tuple[Any, Any]:
    """Arrays of booleans: where the comparison is surely true, and where it may be true."""
    if direction in ("LT", "GE"):
        sure, may = a.hi < b.lo, a.lo < b.hi
    elif direction in ("LE", "GT"):
        sure, may = a.hi <= b.lo, a.lo <= b.hi
    else:
        sure, may = (a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo), (a.lo <= b.hi) & (b.lo <= a.hi)
    return (~may, ~sure) if direction in ("GE", "GT", "NE") else (sure, may)


def comparison_direction(node: Node) -> str:
    """The direction of a `stablehlo.compare`: EQ, NE, GE, GT, LE or LT."""
    return mlir.enum_value(node.attribute("comparison_direction"))


def _compare(node: Node, operands: Sequence[Interval]) -> Interval:
    sure, may = compare_outcome(comparison_direction(node), operands[0], operands[1])
    return _result(node, np.asarray(sure).astype(np.int64), np.asarray(may).astype(np.int64), operands)


def _and_bool(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    return _result(node, a.lo & b.lo, a.hi & b.hi, operands)


def _and(node: Node, operands: Sequence[Interval]) -> Interval | None:
    a, b = operands
    if a.element_type == "i1":
        return _and_bool(node, operands)
    # x & m with m >= 0 is in [0, m]: the mask of a power of two.
    masks = [m for m in (a, b) if np.all(m.lo >= 0)]
    if not masks:
        return None
    hi = masks[0].hi if len(masks) == 1 else lesser(masks[0].hi, masks[1].hi)
    return _result(node, np.zeros_like(hi), hi, operands, "masked")


def _or(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    if a.element_type == "i1":
        return _result(node, a.lo | b.lo, a.hi | b.hi, operands)
    return Interval.of_type(node.result().static_shape, a.element_type)


def _not(node: Node, operands: Sequence[Interval]) -> Interval:
    a = operands[0]
    if a.element_type == "i1":
        return _result(node, 1 - a.hi, 1 - a.lo, operands)
    return Interval.of_type(node.result().static_shape, a.element_type)


def choose(node: Node, predicate: Interval, on_true: Interval, on_false: Interval) -> Interval:
    """The interval of a `select` whose branches are known."""
    if len(predicate.shape) != len(on_true.shape):
        predicate = _scalar_like(predicate, on_true)
    always, never = predicate.lo == 1, predicate.hi == 0
    lo = pick(always, on_true.lo, pick(never, on_false.lo, lesser(on_true.lo, on_false.lo)))
    hi = pick(always, on_true.hi, pick(never, on_false.hi, greater(on_true.hi, on_false.hi)))
    return _result(node, lo, hi, (predicate, on_true, on_false))


def _select(node: Node, operands: Sequence[Interval]) -> Interval:
    return choose(node, operands[0], operands[1], operands[2])


TRANSFER: Mapping[str, Transfer] = {
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.slice": _slice,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse,
    "stablehlo.dynamic_slice": _hull,
    "stablehlo.convert": _convert,
    "stablehlo.add": _add,
    "stablehlo.subtract": _subtract,
    "stablehlo.multiply": _multiply,
    "stablehlo.negate": _negate,
    "stablehlo.clamp": _clamp,
    "stablehlo.minimum": _minimum,
    "stablehlo.maximum": _maximum,
    "stablehlo.remainder": _remainder,
    "stablehlo.compare": _compare,
    "stablehlo.and": _and,
    "stablehlo.or": _or,
    "stablehlo.not": _not,
    "stablehlo.select": _select,
}
"""Only the operands that have integer elements are asked for; a transfer whose op has others is not called."""

ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("convert", "add", "subtract", "multiply", "negate", "clamp", "minimum"),
        *("maximum", "remainder", "compare", "and", "or", "not", "select"),
    )
)
"""Those whose element i depends on element i of each operand alone (a scalar clamp bound or predicate aside)."""
