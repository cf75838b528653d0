"""one_hot(positions): 1 where the place along a new axis is the position, else 0.

    convert(positions == iota)      select(positions == iota, 1, 0)       rows of the identity at positions

It is that and nothing else: one side of the comparison is 0, 1, 2, ... along the new axis, which is computed, and the
same along all others; the other side does not depend on that axis and has all others in their order. Positions that are
out of bounds give zeros; of rows of the identity the row that the gather clamps to. Attributes: `depth`, `axis`, and
`negative` and `outside` as of embedding_lookup.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.named.match.axis_atoms import View, are_same
from hlo_lower.named.match.found import AttributeValue, Found, Match, matchers
from hlo_lower.named.match.pointwise import all_of, dims_looked_at, value_at
from hlo_lower.named.match.positions import filled, vector_of
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import COMPARE, GATHER

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
        axes = dims_looked_at(counting)
        if axes is None or len(axes) != 1 or dims_looked_at(other) is not None:
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
    """What is broadcast along the axis, the others in their order."""
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
    result = filled(anchor)
    attributes = {"depth": table.shape[0], "axis": len(anchor.shape) - 1}
    attributes |= places.attributes("clamp" if result is None else "fill")
    return Match("one_hot", {"positions": places.term}, [result or anchor], attributes)


def _is_identity(table: Term) -> bool:
    found = all_of(table) if table.shape[0] <= 1024 else None
    return found is not None and np.array_equal(found, np.eye(table.shape[0]))
