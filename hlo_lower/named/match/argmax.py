"""argmax(x), argmin(x): the position of the first largest, or smallest, element along an axis.

    reduce of values and positions      jnp.argmax: (a, i) or (b, j), whichever is larger, of equal ones the first
    min(where(x == max(x), iota, n))    the smallest position of those that are the maximum

It is that and nothing else: the reducer is run on all orders of its arguments (`small_programs`), the positions are
0, 1, 2, ... along the axis, the start is no element; the maximum is that of the same rows. A row with a NaN gives what
the decomposition gives. Attribute: `axis`.
"""

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.ir import mlir
from hlo_lower.named.match.axis_atoms import View
from hlo_lower.named.match.found import Found, Match, NearMiss, matchers
from hlo_lower.named.match.positions import is_counting
from hlo_lower.named.match.rows import combiner_of, dims_of, reduced, rows
from hlo_lower.named.match.small_programs import extreme_of
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import REDUCE

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
            extreme = reduced(view.on(other), combiner)
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
