"""What a reducer or a comparator computes: its region run on all ways in which its arguments can be ordered.

A region of comparisons, selects and logic asks its arguments for nothing but their order. So it is known from a few
numbers: smaller, equal, greater, infinite, both zeros, NaN. What has any other op in it is not looked at.
"""

from typing import Any, cast

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.transfer.booleans import comparison_of
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.named.match.terms import LOGIC, Term

NUMBERS = (-np.inf, -1.0, 0.0, 1.0, np.inf)
"""Numbers in all orders that two of them can have."""


def ordered_only(term: Term, arguments: "list[np.ndarray[Any, Any]]") -> "list[np.ndarray[Any, Any]] | None":
    """What the region of an op gives for arguments, arrays of one length; None where it asks for more than order."""
    block = term.node.raw.regions[0].blocks[0]
    known: dict[mlir.RawValue, np.ndarray[Any, Any]] = dict(zip(block.arguments, arguments, strict=True))
    for operation in block.operations:
        raw = operation.operation
        name = raw.name.removeprefix("stablehlo.")
        if name == "return":
            return [known[value] for value in raw.operands]
        found = _computed(name, raw, [known.get(value) for value in raw.operands])
        if found is None:
            return None
        known[raw.results[0]] = found
    return None


def _computed(name: str, raw: mlir.RawOperation, values: "list[Any]") -> Any:
    if name == "constant":
        constant: Any = mlir.constant_value(raw)
        if constant is None or constant.shape != ():
            return None
        return constant if constant.dtype == bool or constant == 0 or constant != constant else None
    if any(value is None for value in values):
        return None
    if name == "compare":
        return comparison_of(Node(raw))(*values)
    if name == "select":
        return cast(Any, np).where(*values)
    return LOGIC[name](*values) if name in LOGIC and values[0].dtype == bool else None


def order_of(sort: Term) -> int:
    """By what a sort sorts: 1 where the numbers of its first operand go up, -1 where they go down, 0 of others.

    Where a NaN goes, and which zero is before the other, is not asked.
    """
    if len(sort.node.raw.regions) != 1 or sort.element == "i1" or element_type(sort.element).is_complex:
        return 0
    a, b = (one.reshape(-1) for one in np.meshgrid(NUMBERS, NUMBERS))
    directions: set[int] = set()
    for p, q in ((0.0, 1.0), (1.0, 0.0)):  # what is sorted along with it does not count
        others = [np.full(a.shape, value) for value in (p, q)] * (len(sort.operands) - 1)
        found = ordered_only(sort, [a, b, *others])
        if found is None:
            return 0
        before = np.broadcast_to(found[0], a.shape)[a != b]
        directions.add(next((s for s in (1, -1) if np.array_equal(before, (s * a < s * b)[a != b])), 0))
    return directions.pop() if len(directions) == 1 else 0


def sorts_by_the_first(sort: Term) -> bool:
    """Whether elements that are equal in the first operand are equal to the comparator."""
    numbers = np.array(NUMBERS)
    for p, q in ((0.0, 1.0), (1.0, 0.0)):
        others = [np.full(numbers.shape, value) for value in (p, q)] * (len(sort.operands) - 1)
        found = ordered_only(sort, [numbers, numbers, *others])
        if found is None or np.any(found[0]):
            return False
    return True


def extreme_of(reduce: Term) -> int:
    """1 where a reduction of values and positions gives the first largest, -1 where the first smallest, 0 of others."""
    columns = [one.reshape(-1) for one in np.meshgrid(NUMBERS, NUMBERS, (0.0, 1.0), (0.0, 1.0))]
    a, b, i, j = columns
    found = ordered_only(reduce, [a, i, b, j])
    if found is None or len(found) != 2:
        return 0
    for sign in (1, -1):
        is_first = (sign * a > sign * b) | ((a == b) & (i <= j))
        if np.array_equal(found[0], np.where(is_first, a, b)) and np.array_equal(found[1], np.where(is_first, i, j)):
            return sign
    return 0
