"""`sort`, as a network that compares neighbours, whose result is the stable order for every comparator that is one.

A sort that is not stable may leave equal elements in any order. It is a network only where no two elements can be
equal; else it is an uninterpreted function of all of its operands.
"""

from itertools import combinations

import numpy as np

from hlo_lower.verify.proof.elements import TRUTH
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.reductions import whole
from hlo_lower.verify.proof.tensors import Place, Tensor
from hlo_lower.verify.proof.terms import Term, both, chosen, either, opposite, simplified

Row = list[Term]
"""One element of each operand, which move together."""


def sort(op: Operation) -> list[Tensor]:
    """`sort` along a dim."""
    results = [tensor.copy() for tensor in op.operands]
    shape = results[0].shape
    dim = op.integer("dimension") % len(shape) if "dimension" in op.raw.attributes else len(shape) - 1
    is_stable = "is_stable" in op.raw.attributes and str(op.raw.attributes["is_stable"]) == "true"
    for place in np.ndindex(*(size for d, size in enumerate(shape) if d != dim)):
        ats: list[Place] = [(*place[:dim], k, *place[dim:]) for k in range(shape[dim])]
        rows: list[Row] = [[tensor[at] for tensor in results] for at in ats]
        if not is_stable and _may_tie(op, rows):
            return whole(op)
        for at, row in zip(ats, _sorted(op, rows), strict=True):
            for tensor, term in zip(results, row, strict=True):
                tensor[at] = term
    return results


def _before(op: Operation, a: Row, b: Row) -> Term:
    """Whether the comparator puts a in front of b."""
    given = [term for pair in zip(a, b, strict=True) for term in pair]
    return simplified(op.evaluator.scalars(op.region(), given, op.scope)[0], TRUTH)


def _may_tie(op: Operation, rows: list[Row]) -> bool:
    ties = (both(opposite(_before(op, a, b)), opposite(_before(op, b, a))) for a, b in combinations(rows, 2))
    return op.world.is_possible(either(*ties))


def _sorted(op: Operation, rows: list[Row]) -> list[Row]:
    """Insertion: each row moves in front of those that it belongs before, and stays behind its equals."""
    rows = list(rows)
    for last in range(1, len(rows)):
        for k in range(last, 0, -1):
            front, back = rows[k - 1], rows[k]
            swapped = _before(op, back, front)
            rows[k - 1] = _either(op, swapped, back, front)
            rows[k] = _either(op, swapped, front, back)
    return rows


def _either(op: Operation, condition: Term, yes: Row, no: Row) -> Row:
    return [chosen(condition, a, b, e) for a, b, e in zip(yes, no, op.elements, strict=True)]
