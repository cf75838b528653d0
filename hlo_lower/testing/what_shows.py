"""Whether a case bites: what changes in the result if an overhang, a drop or a duplicate were treated otherwise."""

from collections.abc import Callable, Set
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.testing.case import Case
from hlo_lower.testing.case_arguments import Arguments
from hlo_lower.testing.drawn_types import TYPES
from hlo_lower.testing.update_computations import evaluate
from hlo_lower.verify.compare import first_difference
from hlo_lower.verify.reference.scatter import scatter, windows

Array = NDArray[Any]
Policy = Literal["xla", "spec"]
FloatMode = Literal["exact", "reassociate"]
POLICIES: tuple[Policy, Policy] = ("xla", "spec")


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
    for window in windows(form.operand, arguments.indices, form.updates, form.numbers):
        spans = list(zip(window.start, window.sizes, form.operand, strict=True))
        inside = all(s >= 0 and s + w <= d for s, w, d in spans)
        if not inside and not any(s + w <= 0 or s >= d for s, w, d in spans):
            return True
    return False


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
        "drop": lambda: _scatter(case, arguments, _clamped(case, arguments.indices), oob),
        "duplicate": lambda: _once(case, arguments, oob),
    }
    return {
        name
        for name, compute in tests.items()
        if name not in known and first_difference(expected, compute()) is not None
    }


def _clamped(case: Case, indices: Array) -> Array:
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
    """The scatter in which only the first update to an element counts."""
    form, region = case.form, case.region
    dtypes = [TYPES[e].dtype for e in region.elements]
    results = [o.astype(t) for o, t in zip(arguments.operands, dtypes, strict=True)]
    sources = [u.astype(t) for u, t in zip(arguments.updates, dtypes, strict=True)]
    free = np.ones(form.operand, np.bool_)
    for window in windows(form.operand, arguments.indices, form.updates, form.numbers):
        low = [max(0, -s) for s in window.start]
        high = [min(w, d - s) for s, w, d in zip(window.start, window.sizes, form.operand, strict=True)]
        whole = all(lo == 0 and hi == w for lo, hi, w in zip(low, high, window.sizes, strict=True))
        if any(lo >= hi for lo, hi in zip(low, high, strict=True)) or (oob == "xla" and not whole):
            continue
        source = tuple(slice(lo, hi) for lo, hi in zip(low, high, strict=True))
        target = tuple(slice(s + lo, s + hi) for s, lo, hi in zip(window.start, low, high, strict=True))
        values = [u[window.update_index].reshape(window.sizes)[source] for u in sources]
        new = evaluate(region, [r[target].copy() for r in results], values, arguments.captured)
        for result, value in zip(results, new, strict=True):
            result[target] = np.where(free[target], value, result[target])
        free[target] = False
    return results
