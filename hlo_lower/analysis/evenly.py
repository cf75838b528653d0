"""Constants that go up or down evenly: base and strides recovered from a table of numbers (trap 33)."""

import numpy as np

from hlo_lower.analysis.evidence import Evidence
from hlo_lower.analysis.interval import Bounds
from hlo_lower.analysis.linear import Linear, width_of
from hlo_lower.analysis.places import Place
from hlo_lower.graph import Node


def of_constant(node: Node, place: Place) -> Linear | None:
    """An element of a constant: a number where the place is known, else what `fitted` recovers."""
    values = node.constant()
    width, step = width_of(node.result()), Evidence.at(node, "constant")
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
    """Base and strides of an integer array that is `base + sum of stride * index`, or None where it is not."""
    if values.size == 0:
        return None
    dtype = object if values.dtype.kind in "uO" or values.dtype.itemsize == 8 else np.int64
    exact: Bounds = np.asarray(values.astype(dtype), dtype)  # at rank 0 astype gives a Python integer
    origin = (0,) * values.ndim
    base = int(exact[origin])
    strides = tuple(
        int(exact[(*origin[:d], 1, *origin[d + 1 :])]) - base if size > 1 else 0 for d, size in enumerate(exact.shape)
    )
    rebuilt: Bounds = np.full((1,) * values.ndim, base, exact.dtype)
    for d, (stride, size) in enumerate(zip(strides, exact.shape, strict=True)):
        along: Bounds = np.arange(size, dtype=np.int64).astype(exact.dtype) * stride
        rebuilt = rebuilt + along.reshape([size if other == d else 1 for other in range(values.ndim)])
    return (base, strides) if bool(np.all(rebuilt == exact)) else None
