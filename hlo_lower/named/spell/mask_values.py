"""Which values the elements of a mask may have, where that follows from how it is made: `where(seen, 0, -inf)`."""

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.named.match.terms import Term, Terms
from hlo_lower.ops.spec import LAYOUT, PICKS, short

MOVES = short(LAYOUT | PICKS)
"""Ops whose result has no values but the first operand's."""

STEPS = 60
MOST = 4
"""Most different values."""


def values_of(term: Term, steps: int = STEPS) -> frozenset[float] | None:
    """The values that elements may have; None where they are not known, or too many."""
    if not steps:
        return None
    if (number := term.scalar) is not None:
        return frozenset({float(number)}) if np.asarray(number).dtype.kind in "fVb" else None
    if term.op == "constant":
        array = mlir.constant_value(term.node.raw)
        found = None if array is None or array.dtype.kind not in "fV" else np.unique(array.astype(np.float64))
        return None if found is None or len(found) > MOST or np.isnan(found).any() else frozenset(map(float, found))
    if term.op in MOVES:
        return values_of(term.operands[0], steps - 1)
    if term.op in ("select", "concatenate"):
        parts = [values_of(operand, steps - 1) for operand in term.operands[term.op == "select" :]]
        together = [value for part in parts if part is not None for value in part]
        return None if None in parts or len(set(together)) > MOST else frozenset(together)
    return None


def low_of_selects(terms: Terms, block: mlir.RawBlock) -> float | None:
    """The one number by which selects of a function hide scores; None where there is none, or several."""
    found: set[float] = set()
    for op in block.operations:
        for result in op.operation.results:
            term = terms.of(result)
            if term.op == "select":
                numbers = [operand.scalar for operand in term.operands[1:]]
                found |= {float(number) for number in numbers if number is not None and float(number) <= -1e4}
    return found.pop() if len(found) == 1 else None
