"""Transfer functions of ops that move elements: the bounds move as the elements do."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Interval, bounds_dtype
from hlo_lower.facts.ranges.transfer.result import Transfer, result
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.ir.view import Node
from hlo_lower.ops import names


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
    evidence = Evidence.at(node, Code.IOTA(size - 1))
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

    return result(node, spread(operand.lo), spread(operand.hi), operands)


def _reshape(node: Node, operands: Sequence[Interval]) -> Interval:
    operand, shape = operands[0], node.result().static_shape
    if operand.lo.size == 1 and operand.hi.size == 1:
        ones = (1,) * len(shape)
        return result(node, operand.lo.reshape(ones), operand.hi.reshape(ones), operands)
    lo, hi = operand.full()
    return result(node, lo.reshape(shape), hi.reshape(shape), operands)


def _transpose(node: Node, operands: Sequence[Interval]) -> Interval:
    permutation = node.integers("permutation")
    return result(node, operands[0].lo.transpose(permutation), operands[0].hi.transpose(permutation), operands)


def _slice(node: Node, operands: Sequence[Interval]) -> Interval:
    bounds = zip(node.integers("start_indices"), node.integers("limit_indices"), node.integers("strides"), strict=True)
    index = tuple(slice(*b) for b in bounds)

    def cut(array: Any) -> Any:
        return array[tuple(i if size != 1 else slice(None) for i, size in zip(index, array.shape, strict=True))]

    # A dim that is kept at size 1 is uniform: any slice of it is the same, an empty one is never read.
    return result(node, cut(operands[0].lo), cut(operands[0].hi), operands)


def _concatenate(node: Node, operands: Sequence[Interval]) -> Interval:
    dim = node.integer("dimension")
    lows, highs = zip(*(operand.full() for operand in operands), strict=True)
    return result(node, np.concatenate(lows, dim), np.concatenate(highs, dim), operands)


def _reverse(node: Node, operands: Sequence[Interval]) -> Interval:
    dims = node.integers("dimensions")
    return result(node, np.flip(operands[0].lo, dims), np.flip(operands[0].hi, dims), operands)


def _hull(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Each element of the result is some element of the first operand."""
    return _hull_of_all(node, operands[:1])


def _hull_of_all(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Each element of the result is an element of one of the operands."""
    parts = [o for o in operands if o.lo.size]
    if not parts:
        return None
    dtype = bounds_dtype(parts[0].element_type)
    low, high = min(o.hull()[0] for o in parts), max(o.hull()[1] for o in parts)
    ones = (1,) * len(node.result().shape)
    return result(node, np.full(ones, low, dtype), np.full(ones, high, dtype), operands)


PLACES: Mapping[str, Transfer] = {
    names.CONSTANT: _constant,
    names.IOTA: _iota,
    names.BROADCAST_IN_DIM: _broadcast_in_dim,
    names.RESHAPE: _reshape,
    names.TRANSPOSE: _transpose,
    names.SLICE: _slice,
    names.CONCATENATE: _concatenate,
    names.REVERSE: _reverse,
    names.DYNAMIC_SLICE: _hull,
    names.GATHER: _hull,
    names.PAD: _hull_of_all,
    names.DYNAMIC_UPDATE_SLICE: _hull_of_all,
}
