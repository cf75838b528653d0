"""Rows by their positions: one_hot, embedding_lookup and take_along_axis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.named.match.axis_atoms import View, are_same
from hlo_lower.named.match.matches import AttributeValue, Found, Match, matchers
from hlo_lower.named.match.pointwise import all_of, value_at, varying_dims
from hlo_lower.named.match.positions import Positions, columns_of, fill_select, is_counting, unwrap_negative, vector_of
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import COMPARE, DOT_GENERAL, GATHER

_OUTSIDE: dict[str, AttributeValue] = {"negative": "outside", "outside": "zero"}


@dataclass(frozen=True)
class OneHot:
    """Positions, and the axis along which 1 stands at them."""

    positions: Term
    axis: int


def compared_places(test: Term) -> OneHot | None:
    """The positions of a comparison of them with 0, 1, 2, ... along an axis."""
    if test.op != "compare" or comparison_direction(test.node) != "EQ":
        return None
    if not element_type(test.operands[0].element).is_integer:
        return None
    for counting, other in (test.operands, test.operands[::-1]):
        axes = varying_dims(counting)
        if axes is None or len(axes) != 1 or varying_dims(other) is not None:
            continue
        [axis] = axes
        size = test.shape[axis]
        along = tuple(np.arange(size) if d == axis else np.zeros(1, int) for d in range(len(test.shape)))
        found = value_at(counting, along)
        if found is None or not np.array_equal(np.broadcast_to(found, (size,)), np.arange(size)):
            continue
        positions = _positions(View.of(test).on(other), axis)
        if positions is not None:
            return OneHot(positions, axis)
    return None


def _positions(view: View, axis: int) -> Term | None:
    """The value that is broadcast along the axis, its own axes in order."""
    wanted = [atoms for dim, atoms in enumerate(view.axes) if dim != axis]
    shape = tuple(size for dim, size in enumerate(view.term.shape) if dim != axis)
    last: Term | None = None
    at: View | None = view
    while at is not None:
        if at.term.shape == shape and all(are_same(a, b) for a, b in zip(at.axes, wanted, strict=True)):
            last = at.term
        at = at.beneath()
    return last


def one_hot_of(term: Term) -> OneHot | None:
    """The positions of which a value is the one_hot."""
    if term.op == "convert" and term.operands[0].element == "i1":
        return compared_places(term.operands[0])
    if term.op == "select" and term.operands[1].is_number(1) and term.operands[2].is_number(0):
        return compared_places(term.operands[0])
    return None


@matchers.finds("one_hot", at=(COMPARE,))
def one_hot(anchor: Term) -> Found:
    """1 at positions along a new axis."""
    found = compared_places(anchor)
    if found is None:
        return None
    for user in _numbers(anchor):
        attributes: dict[str, AttributeValue] = {"depth": anchor.shape[found.axis], "axis": found.axis, **_OUTSIDE}
        return Match("one_hot", {"positions": found.positions}, [user], attributes)
    return None


def _numbers(test: Term) -> Iterator[Term]:
    """1 where a predicate holds, else 0."""
    for user in test.users:
        one = user.op == "select" and user.operands[1].is_number(1) and user.operands[2].is_number(0)
        if (user.op == "convert" or one) and user.operands[0] is test:
            yield user


@matchers.finds("one_hot", at=(GATHER,))
def rows_of_the_identity(anchor: Term) -> Found:
    """Rows of 1 on the diagonal and 0 elsewhere."""
    table, indices = anchor.operands
    if (
        len(table.shape) != 2
        or table.shape[0] != table.shape[1]
        or anchor.integers("slice_sizes") != (1, table.shape[1])
    ):
        return None
    numbers = mlir.gather_dimension_numbers(anchor.node.raw)
    if numbers.collapsed_slice_dims != (0,) or numbers.offset_dims != (len(anchor.shape) - 1,):
        return None
    if table.shape[0] == 1 or not _is_identity(table):
        return None
    places = vector_of(indices, numbers.index_vector_dim, table.shape[0])
    if places is None:
        return None
    result = fill_select(anchor)
    attributes = {"depth": table.shape[0], "axis": len(anchor.shape) - 1}
    attributes |= places.attributes("clamp" if result is None else "fill")
    return Match("one_hot", {"positions": places.term}, [result or anchor], attributes)


def _is_identity(table: Term) -> bool:
    found = all_of(table) if table.shape[0] <= 1024 else None
    return found is not None and np.array_equal(found, np.eye(table.shape[0]))


@matchers.finds("embedding_lookup", at=(GATHER,))
def embedding_lookup(anchor: Term) -> Found:
    """Rows of a table."""
    table, indices = anchor.operands
    if len(table.shape) != 2 or not table.is_float or anchor.integers("slice_sizes") != (1, table.shape[1]):
        return None
    numbers = mlir.gather_dimension_numbers(anchor.node.raw)
    if numbers.start_index_map == (0, 1):
        return _vmapped_lookup(anchor)
    if numbers.collapsed_slice_dims != (0,) or numbers.start_index_map != (0,) or table.shape[1] == 1:
        return None
    if numbers.offset_dims != (len(anchor.shape) - 1,) or one_hot_of(table) is not None:
        return None
    places = vector_of(indices, numbers.index_vector_dim, table.shape[0])
    if places is None or places.term.scalar is not None:
        return None
    result = fill_select(anchor)
    attributes = places.attributes("clamp" if result is None else "fill")
    return Match("embedding_lookup", {"table": table, "positions": places.term}, [result or anchor], attributes)


def _vmapped_lookup(anchor: Term) -> Found:
    """A lookup of one row under `vmap`: a gather by index vectors (position, 0), then a reshape without that axis."""
    table, indices = anchor.operands
    numbers, rank = mlir.gather_dimension_numbers(anchor.node.raw), len(anchor.shape)
    columns, result = columns_of(indices, numbers.index_vector_dim), anchor.only_user
    if len(columns) != 2 or numbers.collapsed_slice_dims or numbers.offset_dims != (rank - 2, rank - 1):
        return None
    if numbers.index_vector_dim != len(indices.shape) - 1 or result is None or result.op != "reshape":
        return None
    places = vector_of(columns[0], numbers.index_vector_dim, table.shape[0])
    if places is None or places.term.scalar is not None or result.shape != (*places.term.shape, table.shape[1]):
        return None
    inputs = {"table": table, "positions": places.term}
    return Match("embedding_lookup", inputs, [result], places.attributes("clamp"))


@matchers.finds("embedding_lookup", at=(DOT_GENERAL,))
def product_with_one_hot(anchor: Term) -> Found:
    """A one_hot times a table."""
    numbers = mlir.dot_dimension_numbers(anchor.node.raw)
    first, table = anchor.operands
    if len(numbers.lhs_batching_dimensions) or len(table.shape) != 2 or list(numbers.rhs_contracting_dimensions) != [0]:
        return None
    if list(numbers.lhs_contracting_dimensions) != [len(first.shape) - 1]:
        return None
    found = one_hot_of(first)
    if found is None or found.axis != len(first.shape) - 1 or one_hot_of(table) is not None:
        return None
    attributes: dict[str, AttributeValue] = {"negative": "outside", "outside": "zero"}
    return Match("embedding_lookup", {"table": table, "positions": found.positions}, [anchor], attributes)


@matchers.finds("take_along_axis", at=(GATHER,))
def take_along_axis(anchor: Term) -> Found:
    """Elements of a value at positions along one axis."""
    x, indices = anchor.operands
    if any(size != 1 for size in anchor.integers("slice_sizes")) or len(x.shape) < 2:
        return None
    numbers = mlir.gather_dimension_numbers(anchor.node.raw)
    vector = numbers.index_vector_dim
    if vector != len(indices.shape) - 1:
        return None
    if len(numbers.start_index_map) == 1:
        axis = numbers.start_index_map[0]
        others = tuple(dim for dim in range(len(x.shape)) if dim != axis)
        if numbers.operand_batching_dims != others or x.shape[axis] == 1:
            return None
        places = vector_of(indices, vector, x.shape[axis])
        batching = numbers.start_indices_batching_dims
    elif not numbers.operand_batching_dims and numbers.start_index_map == tuple(range(len(x.shape))):
        found = _beside_counting(x, indices, vector)
        if found is None:
            return None
        axis, places = found
        others = batching = tuple(dim for dim in range(len(x.shape)) if dim != axis)
        if len(places.term.shape) < len(x.shape):
            batching = tuple(range(len(others)))
    else:
        return None
    if places is None or batching not in (others, tuple(range(len(others)))):
        return None
    is_single = len(places.term.shape) == len(others)
    if len(places.term.shape) != len(others) + (not is_single) or (not is_single and batching != others):
        return None
    result = fill_select(anchor)
    attributes = {"axis": axis, **places.attributes("clamp" if result is None else "fill")}
    result = _without_axis(result or anchor, places.term.shape)
    if result is None:
        return None
    return Match("take_along_axis", {"x": x, "positions": places.term}, [result], attributes)


def _beside_counting(x: Term, indices: Term, vector: int) -> tuple[int, Positions] | None:
    """The one axis of index vectors whose number is a position; along all others they count."""
    columns = columns_of(indices, vector)
    if len(columns) != len(x.shape) or any(beneath is indices for beneath in columns):
        return None
    rank = len(indices.shape) - 1
    chosen: list[int] = []
    for axis, column in enumerate(columns):
        at = axis if rank == len(x.shape) else axis - len(chosen)
        if at < rank and column.shape[at] == x.shape[axis] and _counts(column, at, vector):
            continue
        chosen.append(axis)
    if len(chosen) != 1 or rank not in (len(x.shape), len(x.shape) - 1):
        return None
    places = vector_of(columns[chosen[0]], vector, x.shape[chosen[0]])
    return None if places is None else (chosen[0], places)


def _counts(column: Term, dim: int, vector: int) -> bool:
    places = vector_of(column, vector, column.shape[dim])
    if places is not None:
        return is_counting(places.term, dim)
    return is_counting(unwrap_negative(column, column.shape[dim]).term, dim)


def _without_axis(result: Term, shape: tuple[int, ...]) -> Term | None:
    """What has the shape of the positions: a mapped gather has an axis of one more."""
    if result.shape == shape:
        return result
    user = result.only_user
    is_squeezed = user is not None and user.op == "reshape" and user.shape == shape
    return user if is_squeezed and [n for n in result.shape if n != 1] == [n for n in shape if n != 1] else None
