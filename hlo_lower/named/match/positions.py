"""Positions as exports write them: wrapped where they are negative, with an axis of one behind them, beside iotas.

NumPy counts negative positions from the end, so exports have `select(p < 0, p + size, p)`; a gather takes them with an
axis for the vector of an index; what is out of bounds is clamped by a gather, dropped by a scatter, and made NaN by a
select around it (`jnp.take`).
"""

from dataclasses import dataclass

import numpy as np

from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.named.match.arithmetic import plus
from hlo_lower.named.match.axis_atoms import LAYOUT, View, are_same
from hlo_lower.named.match.matches import AttributeValue
from hlo_lower.named.match.pointwise import all_of
from hlo_lower.named.match.rows import reduction_of
from hlo_lower.named.match.terms import Term

LARGEST = 1 << 20
"""Most elements of a value that is computed to be seen as an iota."""


@dataclass(frozen=True)
class Positions:
    """Positions along one axis."""

    term: Term  # the positions as they are given
    from_end: bool  # whether negative ones are counted from the end

    def attributes(self, outside: str) -> dict[str, AttributeValue]:
        """The attributes for them, and for the handling of those that are out of bounds."""
        return {"negative": "from_end" if self.from_end else "outside", "outside": outside}


def unwrap_negative(term: Term, size: int) -> Positions:
    """The positions p beneath `select(p < 0, p + size, p)`; else the term itself."""
    if term.op == "select":
        predicate, moved, given = term.operands
        if (
            predicate.op == "compare"
            and comparison_direction(predicate.node) == "LT"
            and predicate.operands[0].is_same(given)
            and predicate.operands[1].is_number(0)
        ):
            base = plus(moved, size)
            if base is not None and base.is_same(given):
                return Positions(given, True)
    return Positions(term, False)


def vector_of(indices: Term, dim: int, size: int) -> Positions | None:
    """The positions of indices whose index vectors hold one number; None where they hold more."""
    if dim < len(indices.shape) and indices.shape[dim] != 1:
        return None
    wanted = tuple(n for d, n in enumerate(indices.shape) if d != dim)
    found = _of_shape(indices, wanted)
    return None if found is None else unwrap_negative(found, size)


def _of_shape(term: Term, shape: tuple[int, ...]) -> Term | None:
    """The same elements in the same order, of a shape without axes of one."""
    while term.shape != shape:
        if term.op not in ("reshape", "broadcast_in_dim") or np.prod(term.operands[0].shape) != np.prod(shape):
            return None
        if term.op == "broadcast_in_dim" and list(places := term.integers("broadcast_dimensions")) != sorted(places):
            return None
        term = term.operands[0]
    return term


def columns_of(indices: Term, dim: int) -> tuple[Term, ...]:
    """The parts that are concatenated to index vectors, each along the axes before it; one where there is one."""
    is_joined = indices.op == "concatenate" and indices.node.integer("dimension") == dim
    if is_joined and all(part.shape[dim] == 1 for part in indices.operands):
        return indices.operands
    return (indices,)


def is_counting(term: Term, dim: int) -> bool:
    """Whether a value made of iotas and constants is 0, 1, 2, ... along one of its dims, the same along others."""
    if not 0 < int(np.prod(term.shape)) <= LARGEST:
        return False
    while term.op in ("reshape", "broadcast_in_dim", "convert") and term.operands[0].shape == term.shape:
        term = term.operands[0]
    term = unwrap_negative(term, term.shape[dim]).term
    if term.op == "iota":
        return term.node.integer("iota_dimension") == dim
    found = all_of(term)
    return found is not None and bool((found == np.indices(term.shape, sparse=True)[dim]).all())


def beneath_moves(term: Term) -> Term:
    """A value beneath reshapes, transposes, broadcasts and conversions."""
    while term.op in LAYOUT or term.op == "convert":
        term = term.operands[0]
    return term


def fill_select(found: Term) -> Term | None:
    """The select that puts NaN, of integers the lowest or largest number, where positions are out of bounds."""
    for user in found.users:
        if user.op == "select" and user.operands[1] is found and _is_filling(user.operands[2]):
            test = _index_test(View(user.operands[0], View.of(user).axes), found)
            if test is not None and _is_inside(test, found.operands[1], found):
                return user
    return None


def _index_test(view: View, gather: Term) -> Term | None:
    """The test of each index, if the mask has it at the places of that index's own slice."""
    numbers = mlir.gather_dimension_numbers(gather.node.raw)
    batch = [axis for dim, axis in enumerate(view.axes) if dim not in numbers.offset_dims]
    vector = numbers.index_vector_dim
    every = reduction_of(view, "and")
    if every is not None:
        test, axes = every.operand.term, every.result.axes
        if every.result.term.integers("dimensions") != (vector,):
            return None
    else:
        root = view.root(casts=False)
        test, axes = root.term, tuple(axis for dim, axis in enumerate(root.axes) if dim != vector)
        if len(root.axes) > vector and root.term.shape[vector] != 1:
            return None
    if test.shape != gather.operands[1].shape or len(axes) != len(batch):
        return None
    return test if all(are_same(a, b) for a, b in zip(axes, batch, strict=True)) else None


def _is_filling(term: Term) -> bool:
    number = term.scalar
    if number is None:
        return False
    ends = type_range(term.element)
    if ends is not None:
        return int(number) == (ends[1] if element_type(term.element).is_unsigned else ends[0])
    return bool(number != number)


def _is_inside(test: Term, indices: Term, gather: Term) -> bool:
    """Whether a predicate is that all indices lie between 0 and the last place where a slice fits."""
    if test.op != "and":
        return False
    numbers = mlir.gather_dimension_numbers(gather.node.raw)
    sizes, shape = gather.integers("slice_sizes"), gather.operands[0].shape
    last = [shape[d] - sizes[d] for d in numbers.start_index_map]
    seen: set[str] = set()
    for part in test.operands:
        if part.op != "compare" or not part.operands[0].is_same(indices):
            return False
        direction, bound = comparison_direction(part.node), part.operands[1]
        if direction == "GE" and bound.is_number(0):
            seen.add("first")
        elif direction == "LE" and _is_last(bound, last, numbers.index_vector_dim):
            seen.add("last")
    return seen == {"first", "last"}


def _is_last(bound: Term, last: list[int], dim: int) -> bool:
    if len(set(last)) == 1:
        return bound.is_number(last[0])
    found = all_of(bound)
    return found is not None and bool((np.moveaxis(found, dim, -1) == last).all())
