"""`dynamic_slice` and `dynamic_update_slice`: the start is brought to where the whole slice lies inside."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.operation import Operation
from hlo_lower.verify.proof.starts import clamped_starts
from hlo_lower.verify.proof.tensors import Place, Tensor, built, scalar, selected
from hlo_lower.verify.proof.terms import Term, both, chosen


def dynamic_slice(op: Operation) -> list[Tensor]:
    """`dynamic_slice`, one dim after the other: a mux of the slices at all its places."""
    value = op.operands[0]
    for dim, (size, starts) in enumerate(zip(op.shape(), _starts(op, op.shape(), first=1), strict=True)):
        parts = [np.take(value, range(place, place + size), dim) for place in range(len(starts))]
        value = _mux(starts, parts, op.element())
    return [value]


def _mux(conditions: Sequence[Term], parts: Sequence[Tensor], element: ProofType) -> Tensor:
    """The part whose condition holds; one of them does, so the first is what is left."""
    found = parts[0]
    for condition, part in zip(conditions[1:], parts[1:], strict=True):
        found = selected(scalar(condition), part, found, element)
    return found


def dynamic_update_slice(op: Operation) -> list[Tensor]:
    """`dynamic_update_slice`: each element is the update's where a start puts one there, else what it was."""
    operand, update = op.operands[:2]
    starts, element = _starts(op, update.shape, first=2), op.element()

    def after(place: Place) -> Term:
        found = operand[place]
        for source in np.ndindex(*update.shape):
            moved = [x - k for x, k in zip(place, source, strict=True)]
            if all(0 <= m < len(own) for m, own in zip(moved, starts, strict=True)):
                hit = both(*(own[m] for m, own in zip(moved, starts, strict=True)))
                found = chosen(hit, update[source], found, element)
        return found

    return [built(operand.shape, after)]


def _starts(op: Operation, window: Sequence[int], first: int) -> list[list[Term]]:
    """For each dim and each place in it whether the slice is there."""
    shape = op.operands[0].shape
    return [
        clamped_starts(op.operands[first + d][()], size - extent, op.operand_element(first + d))
        for d, (size, extent) in enumerate(zip(shape, window, strict=True))
    ]
