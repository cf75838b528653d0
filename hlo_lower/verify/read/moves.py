"""Ops that move elements to places that the module fixes, on NumPy arrays of whatever elements: numbers, or terms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir

Array = NDArray[Any]

Move: TypeAlias = Callable[[mlir.RawOperation, Sequence[Array], tuple[int, ...]], Array]
"""The result of an operation, given its operands and its shape; perhaps a view of one of them."""


def _broadcast_in_dim(raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    dims = mlir.integers_of(raw.attributes["broadcast_dimensions"])
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    sizes = [1] * len(shape)
    for i, dim in enumerate(dims):
        sizes[dim] = operands[0].shape[i]
    return np.broadcast_to(operands[0].transpose(order).reshape(sizes), shape)


def _slice(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    names = ("start_indices", "limit_indices", "strides")
    bounds = zip(*(mlir.integers_of(raw.attributes[name]) for name in names), strict=True)
    return operands[0][tuple(slice(*b) for b in bounds)]


def _concatenate(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return np.concatenate(operands, mlir.integer_of(raw.attributes["dimension"]))


def _reshape(_: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return operands[0].reshape(shape)


def _transpose(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return operands[0].transpose(mlir.integers_of(raw.attributes["permutation"]))


def _reverse(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return np.flip(operands[0], mlir.integers_of(raw.attributes["dimensions"]))


MOVES: Mapping[str, Move] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}
"""By the name of the StableHLO operation."""
