"""What a value made of iotas and constants is at some places: masks, without computing all of them.

Each op is followed from the places of its result to those of its operands. Places of a grid are given as rows and
columns, and what depends on one of them is computed for that one. What depends on an argument is unknown.
"""

from typing import Any

import numpy as np

from hlo_lower.facts.ranges.transfer import comparison_of
from hlo_lower.ir import mlir
from hlo_lower.named.match.terms import ARITHMETIC, LOGIC, Term

Places = tuple["np.ndarray[Any, Any]", ...]
"""For each dim of a value the coordinates of the places, which are broadcast against each other."""

_ELEMENTWISE = ARITHMETIC | LOGIC

DEEPEST = 40
"""Most ops one above the other."""


def value_at(term: Term, places: Places, depth: int = DEEPEST) -> "np.ndarray[Any, Any] | None":
    """The elements of a value at places; None where it depends on an argument, or on an op that is not followed."""
    if not depth or -1 in term.shape:
        return None
    if term.op == "constant":
        if term.scalar is not None:
            return np.reshape(term.scalar, 1)
        array = term.node.constant()
        return None if array is None else array[places]
    if term.op == "iota":
        return np.asarray(places[term.node.integer("iota_dimension")]).astype(mlir.dtype_of(term.element))
    moved = beneath(term, places)
    if moved is not None:
        return value_at(term.operands[0], moved, depth - 1)
    if term.op not in ("convert", "compare", "select") and (
        term.op not in _ELEMENTWISE or (term.op in LOGIC and term.element != "i1")
    ):
        return None
    values: list[np.ndarray[Any, Any]] = []
    for operand in term.operands:
        value = value_at(operand, places if operand.shape else (), depth - 1)
        if value is None:
            return None
        values.append(value)
    if term.op == "convert":
        dtype = mlir.dtype_of(term.element)
        return None if dtype is None else values[0].astype(dtype)
    if term.op == "compare":
        return comparison_of(term.node)(*values)
    if term.op == "select":
        return np.where(*values)
    with np.errstate(all="ignore"):
        return _ELEMENTWISE[term.op](*values)


def beneath(term: Term, places: Any) -> Any:
    """The places in the operand of an op that moves elements, coordinates of one place or arrays of many; None of
    another op."""
    shape = term.operands[0].shape if term.operands else ()
    if term.op == "broadcast_in_dim":
        return tuple(places[d] * (n != 1) for d, n in zip(term.integers("broadcast_dimensions"), shape, strict=True))
    if term.op == "transpose":
        moved = dict(zip(term.integers("permutation"), places, strict=True))
        return tuple(moved[d] for d in range(len(places)))
    if term.op == "reshape":
        flat, found = 0, list[Any]()
        for coordinate, size in zip(places, term.shape, strict=True):
            flat = flat * size + coordinate
        for size in reversed(shape):
            flat, within = divmod(flat, size)
            found.append(within)
        return tuple(reversed(found))
    if term.op == "slice":
        starts, strides = term.integers("start_indices"), term.integers("strides")
        return tuple(s + p * t for p, s, t in zip(places, starts, strides, strict=True))
    return None


def all_of(term: Term) -> "np.ndarray[Any, Any] | None":
    """All elements of a value of static shape that is made of iotas and constants; None of others."""
    found = value_at(term, tuple(np.indices(term.shape, sparse=True)))
    return None if found is None else np.broadcast_to(found, term.shape)


def varying_dims(term: Term) -> frozenset[int] | None:
    """The dims along which a value made of iotas and constants can vary; None for any other value.

    It computes the corners of the value: for one place along a dim on which no op depends.
    """
    if any(size < 1 for size in term.shape):
        return None
    corners = np.ix_(*(sorted({0, size - 1}) for size in term.shape))
    found = value_at(term, corners)
    return None if found is None else frozenset(dim for dim, size in enumerate(found.shape) if size > 1)
