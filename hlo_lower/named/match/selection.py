"""argmax, argmin and top_k, from what a reducer or a comparator computes: its region run on small numbers."""

from typing import Any, cast

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.facts.ranges.transfer import comparison_direction, comparison_of
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.named.match.axis_atoms import View
from hlo_lower.named.match.matches import AttributeValue, Found, Match, NearMiss, matchers
from hlo_lower.named.match.positions import is_counting
from hlo_lower.named.match.rows import combiner_of, dims_of, reduction_of, rows
from hlo_lower.named.match.terms import LOGIC, Term
from hlo_lower.ops.names import REDUCE, SORT

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
        found = _evaluate(name, raw, [known.get(value) for value in raw.operands])
        if found is None:
            return None
        known[raw.results[0]] = found
    return None


def _evaluate(name: str, raw: mlir.RawOperation, values: "list[Any]") -> Any:
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


NAMES = {1: "argmax", -1: "argmin"}


@matchers.finds("argmax", "argmin", at=(REDUCE,))
def argmax(anchor: Term) -> Found:
    """The position of an extreme element."""
    raw = anchor.node.raw
    if len(raw.results) == 2:
        return _of_pairs(anchor)
    return _of_equal(anchor) if element_type(anchor.element).is_integer and len(anchor.shape) >= 0 else None


def _of_pairs(anchor: Term) -> Found:
    values, positions, start, first = anchor.operands
    dims = anchor.integers("dimensions")
    results = anchor.node.raw.results
    if len(dims) != 1 or not mlir.is_used(results[1]) or not is_counting(positions, dims[0]):
        return None
    sign = extreme_of(anchor)
    if not sign or not _is_end(start, -sign) or not first.is_number(0):
        return None
    return Match(NAMES[sign], {"x": values}, [anchor.terms.of(results[1], anchor.frame)], {"axis": dims[0]})


def _is_end(start: Term, sign: int) -> bool:
    """Whether no element lies further towards an end than a number."""
    ends = type_range(start.element)
    if ends is not None:
        return start.is_number(ends[1] if sign > 0 else ends[0])
    return start.is_number(sign * np.inf)


def _of_equal(anchor: Term) -> Found:
    """The smallest of the positions at which a value is its own maximum or minimum."""
    dims = anchor.integers("dimensions")
    chosen = anchor.operands[0]
    if len(dims) != 1 or chosen.op != "select" or _reducer(anchor) != "minimum":
        return None
    test, positions, none = chosen.operands
    size = chosen.shape[dims[0]]
    ends = type_range(anchor.element)
    if ends is None or not anchor.operands[1].is_number(ends[1]) or none.scalar is None or int(none.scalar) < size - 1:
        return None
    if test.op != "compare" or comparison_direction(test.node) != "EQ" or not is_counting(positions, dims[0]):
        return None
    for x, other in (test.operands, test.operands[::-1]):
        for sign, combiner in ((1, "maximum"), (-1, "minimum")):
            view = View.of(x)
            extreme = reduction_of(view.on(other), combiner)
            if extreme is None:
                continue
            over = rows(view, extreme)
            if over is None or dims_of(view, over) != dims:
                return NearMiss(NAMES[sign], Code.OTHER_VALUE(f"the {combiner}"), anchor)
            return Match(NAMES[sign], {"x": x}, [anchor], {"axis": dims[0]})
    return None


def _reducer(term: Term) -> str:
    operations = list(term.node.raw.regions[0].blocks[0].operations)
    return operations[0].operation.name.removeprefix("stablehlo.") if len(operations) == 2 else combiner_of(term)


@matchers.finds("top_k", at=("chlo.top_k",))
def top_k(anchor: Term) -> Found:
    """The op itself."""
    positions = anchor.terms.of(anchor.node.raw.results[1], anchor.frame)
    attributes = _attributes(anchor.shape[-1], len(anchor.shape) - 1, "both")
    return Match("top_k", {"x": anchor.operands[0]}, [anchor, positions], attributes)


def _attributes(k: int, axis: int, gives: str, largest: bool = True) -> dict[str, AttributeValue]:
    return {"k": k, "axis": axis, "largest": largest, "gives": gives}


@matchers.finds("top_k", at=(SORT, "func.call stablehlo.sort", "func.call stablehlo.reverse"))
def sorted_first(anchor: Term) -> Found:
    """The first k of what is sorted."""
    sort = anchor.operands[0] if anchor.op == "reverse" else anchor
    if sort.op != "sort":
        return None
    axis, results = sort.node.integer("dimension"), sort.node.raw.results
    direction = order_of(sort)
    if not direction or len(results) > 2 or (len(results) == 2 and not is_counting(sort.operands[1], axis)):
        return None
    x = sort.operands[0]
    is_negated = x.op == "negate"
    if is_negated:
        x, direction = x.operands[0], -direction
    values, positions = _of_results(anchor, sort, axis)
    if values is None and positions is None and len(results) == 1 and sort.surface is not None:
        anchor = next((user for user in sort.users if user.op == "reverse"), anchor)
        values, _ = _of_results(anchor, sort, axis)
    if anchor.op == "reverse":
        direction, positions = -direction, None
        if anchor.integers("dimensions") != (axis,):
            return None
    if values is not None and is_negated:
        values = next((user for user in values.users if user.op == "negate"), None)
    found = [one for one in (values, positions) if one is not None]
    if not found or len({one.shape for one in found}) > 1:
        return None
    gives = "both" if len(found) == 2 else "values" if values is not None else "positions"
    return Match("top_k", {"x": x}, found, _attributes(found[0].shape[axis], axis, gives, direction < 0))


def _of_results(anchor: Term, sort: Term, axis: int) -> tuple[Term | None, Term | None]:
    """The first k of what is sorted, and of the positions that are sorted along; None where nothing takes them."""
    results = sort.node.raw.results
    if anchor.op == "reverse":
        return (_first(anchor, axis), None) if len(results) == 1 else (None, None)
    firsts = [_first(sort.terms.of(result, sort.frame), axis) for result in results]
    is_kept = len(results) == 2 and mlir.is_true(sort.node.raw, "is_stable") and sorts_by_the_first(sort)
    return firsts[0], firsts[1] if is_kept else None


def _first(term: Term, axis: int) -> Term | None:
    """What takes the first of a value along an axis, and all along others."""
    for user in term.users:
        if user.op != "slice" or user.shape[axis] == term.shape[axis]:
            continue
        whole = all(n == m for d, (n, m) in enumerate(zip(user.shape, term.shape, strict=True)) if d != axis)
        if whole and not any(user.integers("start_indices")) and user.integers("strides")[axis] == 1:
            return user
    return None
