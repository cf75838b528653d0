"""Whether a case bites: what changes in the result if an overhang, a drop or a duplicate were treated otherwise."""

from collections.abc import Callable, Set
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.case_arguments import Arguments
from hlo_lower.testing.fuzz.drawn_types import TYPES
from hlo_lower.testing.fuzz.update_computations import evaluate
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import count_hits, scatter

Array = NDArray[Any]
Policy = Literal["xla", "spec"]
FloatMode = Literal["exact", "reassociate"]


def reference(case: Case, arguments: Arguments, oob: Policy) -> list[Array]:
    """The results of a case by the NumPy scatter, its region evaluated in NumPy."""
    return _scatter(case, arguments, arguments.indices, oob)


def _scatter(case: Case, arguments: Arguments, indices: Array, oob: Policy) -> list[Array]:
    def combine(currents: list[Array], updates: list[Array]) -> list[Array]:
        return evaluate(case.region, currents, updates, arguments.captured)

    dtypes = [TYPES[e].dtype for e in case.region.elements]
    return scatter(arguments.operands, indices, arguments.updates, case.form.numbers, combine, dtypes, oob=oob)


def overhangs(case: Case, arguments: Arguments) -> bool:
    """Whether any window lies in the operand in part, on which the policies differ."""
    form = case.form
    return count_hits(form.operand, arguments.indices, form.updates, form.numbers).overhanging > 0


def bites(
    case: Case, arguments: Arguments, expected: list[Array], oob: Policy, known: Set[str] = frozenset()
) -> set[str]:
    """Which of "overhang", "drop" and "duplicate" change the result; those that are known are not tried again.

    overhang: the other policy gives another result. drop: so does clamping the starts, as `dynamic_update_slice` does.
    duplicate: so does writing each result element once only, by the first update that reaches it.
    """
    other: Policy = "spec" if oob == "xla" else "xla"
    tests: dict[str, Callable[[], list[Array]]] = {
        "overhang": lambda: _scatter(case, arguments, arguments.indices, other),
        "drop": lambda: _scatter(case, arguments, _clamp_indices(case, arguments.indices), oob),
        "duplicate": lambda: _once(case, arguments, oob),
    }
    return {
        name
        for name, compute in tests.items()
        if name not in known and first_difference(expected, compute()) is not None
    }


def _clamp_indices(case: Case, indices: Array) -> Array:
    """The indices with every start moved into [0, D - W]."""
    form = case.form
    found = np.asarray(indices, object).copy()
    for k, column in enumerate(form.columns):
        size, window = form.extent(column)
        where: tuple[Any, ...] = (slice(None),) * form.index_vector_dim + (k,)
        place = () if form.implicit else where
        found[place] = np.clip(found[place], 0, max(size - window, 0))
    return found


def _once(case: Case, arguments: Arguments, oob: Policy) -> list[Array]:
    """The scatter in which only the first update to an element counts: a flag that it clears goes along."""
    form, region = case.form, case.region

    def combine(currents: list[Array], updates: list[Array]) -> list[Array]:
        *values, free = currents
        new = evaluate(region, values, updates[:-1], arguments.captured)
        return [*(np.where(free, n, v) for n, v in zip(new, values, strict=True)), updates[-1]]

    dtypes = [*(TYPES[e].dtype for e in region.elements), np.dtype(np.bool_)]
    operands = [*arguments.operands, np.ones(form.operand, np.bool_)]
    updates = [*arguments.updates, np.zeros(form.updates, np.bool_)]
    return scatter(operands, arguments.indices, updates, form.numbers, combine, dtypes, oob=oob)[:-1]
