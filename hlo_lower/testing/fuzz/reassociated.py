"""How far sums and products of floats may move where their order is free (`float_mode="reassociate"`).

A sum of n terms in any order moves by at most n roundings of a partial sum, and no partial sum exceeds the sum of the
terms' magnitudes. A product of n factors moves by n relative roundings. Where a partial result may overflow, or a
partial product underflow, another order can end in anything, and nothing is asked. An element that nothing is written
to has to stay as it is, bit for bit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.case_arguments import Arguments
from hlo_lower.testing.fuzz.sensitivity import Policy
from hlo_lower.verify.bounds.compare import Difference, first_difference
from hlo_lower.verify.judges.definitions import scatter

Array = NDArray[Any]


def allowances(case: Case, combiner: str, arguments: Arguments, expected: list[Array], oob: Policy) -> list[Array]:
    """For each result the distance from what is expected that another order may come to; 0 asks for equal bits.

    The combiner is as its record has it: "add", or "assign, add" where operands differ.
    """
    names = [name.strip() for name in combiner.split(",")]
    names *= len(expected) // len(names)
    none = [np.zeros(e.shape) for e in expected]
    if not any(name in ("add", "sub", "mul") for name in names):
        return none
    found: list[Array] = []
    for k, (name, zeros) in enumerate(zip(names, none, strict=True)):
        element = case.region.elements[k]
        complex_sum = element_type(element).is_complex and name in ("add", "sub")
        free = name in ("add", "sub", "mul") and (element in WIDE_FLOATS or complex_sum)
        found.append(_allowance(case, name, k, arguments, expected[k], oob) if free else zeros)
    return found


def difference_within(expected: list[Array], actual: list[Array], allowed: list[Array]) -> Difference | None:
    """The first difference beyond what is allowed; what is allowed counts as what was expected."""
    taken: list[Array] = []
    for e, a, limit in zip(expected, actual, allowed, strict=True):
        if e.shape != a.shape or e.dtype != a.dtype or not limit.any():
            taken.append(a)
            continue
        near = np.ones(e.shape, np.bool_)
        for one, other in zip(_parts(e), _parts(a), strict=True):
            with np.errstate(all="ignore"):
                same = (one == other) | (np.isnan(one) & np.isnan(other))
                near &= same | (np.abs(one - other) <= limit) | np.isinf(limit)
        taken.append(np.where((limit > 0) & near, e, a))
    return first_difference(expected, taken)


def _parts(array: Array) -> tuple[Array, ...]:
    """The values in f64; of complex ones the two parts, because a sum adds each by itself."""
    if array.dtype.kind == "c":
        return np.real(array).astype(np.float64), np.imag(array).astype(np.float64)
    return (array.astype(np.float64),)


def _allowance(case: Case, name: str, k: int, arguments: Arguments, expected: Array, oob: Policy) -> Array:
    declared = element_type(case.region.elements[k])
    largest, smallest = declared.most, declared.smallest
    operand, updates = _magnitudes(arguments.operands[k]), _magnitudes(arguments.updates[k])

    def fold(op: np.ufunc, *terms: Array) -> Array:
        return _fold_scatter(case, arguments, terms, op, oob)

    writes = fold(np.add, np.zeros(operand.shape), np.ones(updates.shape))
    with np.errstate(all="ignore"):
        if name == "mul":
            factors = [np.where(t > 0, t, 1.0) for t in (operand, updates)]
            above = fold(np.multiply, *(np.maximum(f, 1.0) for f in factors))
            below = fold(np.multiply, *(np.minimum(f, 1.0) for f in factors))
            is_safe = (above < largest / 2) & (below > smallest * 2)
            size = _magnitudes(expected)
        else:
            size = fold(np.add, operand, updates)
            is_safe = size < largest / 2
        allowed = (writes + 2) * declared.epsilon * size + smallest
    return np.where(writes == 0, 0.0, np.where(is_safe, allowed, np.inf))


def _magnitudes(array: Array) -> Array:
    """The magnitudes in f64; 0 where they are not finite: an infinity or a NaN comes out alike in any order."""
    with np.errstate(all="ignore"):
        found: Array = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return np.where(np.isfinite(found), found, 0.0)


def _fold_scatter(case: Case, arguments: Arguments, terms: Sequence[Array], op: np.ufunc, oob: Policy) -> Array:
    """The scatter of f64 operand and updates by a ufunc."""

    def combine(currents: list[Array], values: list[Array]) -> list[Array]:
        return [op(currents[0], values[0])]

    operand, updates = terms
    dtypes = [np.dtype(np.float64)]
    return scatter((operand,), arguments.indices, (updates,), case.form.numbers, combine, dtypes, oob=oob)[0]
