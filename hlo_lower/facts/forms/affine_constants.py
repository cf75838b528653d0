"""Constants that go up or down evenly: base and strides recovered from a table of numbers (trap 33)."""

from typing import Any

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.facts.forms.linear import Linear
from hlo_lower.facts.forms.places import Place
from hlo_lower.facts.ranges.interval import Bounds
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.ir.view import Node

MAX_PART = 1 << 20
"""Most elements of a constant that are looked at together: 1 Mi, 8 MiB."""


def of_constant(node: Node, place: Place) -> Linear | None:
    """An element of a constant: a number where the place is known, else what `fitted` recovers."""
    values = node.constant()
    width, step = node.result().element.integer_bits, Evidence.at(node, Code.CONSTANT())
    if values is None or values.size == 0:
        return None
    known = values[tuple(p.constant if p.is_constant else slice(None) for p in place)]
    found = fitted(known)
    if found is None:
        return None
    form = Linear(found[0])
    for coordinate, stride in zip([p for p in place if not p.is_constant], found[1], strict=True):
        form = form.plus(coordinate.times(stride))
    return form.in_width(width).because(step)


def fitted(values: Bounds) -> tuple[int, tuple[int, ...]] | None:
    """Base and strides of an integer array that is `base + sum of stride * index`, or None where it is not.

    Along a dim in which it is one and the same memory (a splat, a broadcast) it is looked at in one place, and the rest
    in parts, so nothing of its shape is made.
    """
    if values.size == 0:
        return None
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides)
    looked_at: Bounds = np.asarray(values[once], values.dtype)  # at rank 0 an index gives a number
    origin = (0,) * looked_at.ndim
    base = int(looked_at[origin])
    strides = tuple(
        int(looked_at[(*origin[:d], 1, *origin[d + 1 :])]) - base if size > 1 else 0
        for d, size in enumerate(looked_at.shape)
    )
    last = tuple(size - 1 for size in looked_at.shape)
    ends = [stride * n for stride, n in zip(strides, last, strict=True)]
    if int(looked_at[last]) != base + sum(ends):
        return None
    low, high = base + sum(min(0, end) for end in ends), base + sum(max(0, end) for end in ends)
    if low < 0 and looked_at.dtype.kind == "u":
        return None
    is_narrow = low >= -(1 << 62) and high < 1 << 62  # so that every difference is one of 64 bits, too
    return (base, strides) if _is_even(looked_at, base, strides, np.int64 if is_narrow else object) else None


def _is_even(values: Bounds, base: int, strides: tuple[int, ...], dtype: Any) -> bool:
    """Whether an array is `base + sum of stride * index`, all of which are numbers of this dtype; part by part."""
    dim = max(range(values.ndim), key=lambda d: values.shape[d], default=0)
    length = values.shape[dim] if values.ndim else 1
    rows = max(1, MAX_PART * length // values.size)
    for begin in range(0, length, rows):
        own = tuple(slice(begin, begin + rows) if d == dim else slice(None) for d in range(values.ndim))
        part: Bounds = np.asarray(values[own], values.dtype)
        rebuilt: Bounds = np.full((1,) * values.ndim, base + (strides[dim] * begin if values.ndim else 0), dtype)
        for d, (stride, size) in enumerate(zip(strides, part.shape, strict=True)):
            along: Bounds = np.arange(size, dtype=np.int64).astype(dtype) * stride
            rebuilt = rebuilt + along.reshape([size if other == d else 1 for other in range(values.ndim)])
        # An unsigned number of 2^63 and more becomes a negative one here, of which its form has none.
        exact: Bounds = part if part.dtype == object else np.asarray(part.astype(dtype), dtype)
        if not bool(np.all(rebuilt == exact)):
            return False
    return True
