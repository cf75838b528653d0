"""Compare results: bit for bit, or within a stated bound where XLA may round differently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of

Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """The first place where two results differ.

    Attributes:
      result: number of the result, from 0.
      index: index into it.
      expected, actual: the two values.
      count: how many elements of this result differ.
      what: "bit for bit", or the bound that was exceeded, or the difference in type.
    """

    result: int
    index: tuple[int, ...]
    expected: str
    actual: str
    count: int
    what: str

    def __str__(self) -> str:
        where = f"result {self.result} at {list(self.index)}"
        return f"{where}: expected {self.expected}, got {self.actual} ({self.count} elements differ, {self.what})"


def first_difference(expected: Sequence[Array], actual: Sequence[Array]) -> Difference | None:
    """The first element that is not the same bit for bit; any NaN equals any NaN, but +0 is not -0.

    Of complex numbers each part by itself.
    """
    for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
        found = _shape_difference(number, a, b)
        if found is not None:
            return found
        found = _difference(number, a, b, ~is_same(a, b), "bit for bit")
        if found is not None:
            return found
    return None


def only_signs_of_zeros(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether two results are equal numbers everywhere, or NaN, so that they differ in signs of zeros at most."""
    return all(
        a.shape == b.shape and a.dtype == b.dtype and bool(np.all((a == b) | ((a != a) & (b != b))))
        for a, b in zip(expected, actual, strict=True)
    )


def first_difference_beyond(
    expected: Sequence[Array], actual: Sequence[Array], bounds: Sequence[Array]
) -> Difference | None:
    """The first element that is further from what is expected than its own bound.

    Args:
      expected, actual: results.
      bounds: for each result an array of its shape in f64 (see `rounding_bounds`): how far each element may be off; 0
        for not at all, the sign of a zero aside, and inf where anything may stand, NaN included. An infinity is within
        no other bound, and NaN is only NaN.
    """
    for number, (a, b, bound) in enumerate(zip(expected, actual, bounds, strict=True)):
        found = _shape_difference(number, a, b)
        if found is not None:
            return found
        with np.errstate(all="ignore"):
            x, y = wide(a), wide(b)
            near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= bound)
            if not is_inexact(a):  # f64 does not tell large integers apart
                near &= bound > 0
            different = ~(is_same(a, b) | np.asarray(a == b, np.bool_) | near | np.isinf(bound))
        found = _difference(number, a, b, different, "the bound of this element's own rounding")
        if found is not None:
            return replace(found, what=f"beyond {float(bound[found.index]):.2g}, {found.what}")
    return None


def overflow_taken(expected: Sequence[Array], actual: Sequence[Array]) -> list[Array]:
    """The actual results, with what is expected where one of the two is NaN or infinite: of terms that overflow, the
    order of a sum decides between infinities, NaN and numbers."""
    taken: list[Array] = []
    for a, b in zip(expected, actual, strict=True):
        if not is_inexact(a) or a.shape != b.shape or a.dtype != b.dtype:
            taken.append(b)
            continue
        taken.append(np.where(np.isfinite(wide(a)) & np.isfinite(wide(b)), b, a))
    return taken


def wide(array: Array) -> Array:
    """Floats in f64, complex numbers in two of them."""
    with np.errstate(all="ignore"):
        return np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64)


def are_apart(a: Array, b: Array, share: float) -> bool:
    """Whether two arrays are no roundings of each other: by more than a share of the largest magnitude of the two, at
    some finite element; integers if they are not equal."""
    return bool(which_are_apart(a, b[np.newaxis], share)[0])


def which_are_apart(a: Array, others: Array, share: float) -> NDArray[np.bool_]:
    """Which arrays of a stack are no roundings of another array of their shape (`are_apart`)."""
    elements = tuple(range(1, others.ndim))
    if not is_inexact(a):
        return np.asarray(np.any(a != others, elements))
    with np.errstate(all="ignore"):
        x, y = wide(a), wide(others)
        finite = np.isfinite(x) & np.isfinite(y)
        largest = np.maximum(np.abs(x), np.abs(y))
        most = np.max(largest, elements, initial=0.0, where=finite, keepdims=True)
        return np.asarray(np.any(finite & (np.abs(x - y) > share * most), elements))


def nan_share(array: Array) -> float:
    """The share of NaN among the elements of a float array."""
    return float(np.mean(np.asarray(array != array, np.bool_))) if is_inexact(array) and array.size else 0.0


def is_inexact(array: Array) -> bool:
    """Whether it holds floats, or complex numbers."""
    return element_type_of(array.dtype).is_inexact


def is_same(a: Array, b: Array) -> NDArray[np.bool_]:
    """Where two results of one type are the same bit for bit; any NaN equals any NaN."""
    if not is_inexact(a):
        return np.asarray(a == b, np.bool_)
    if a.dtype.kind == "c":
        return np.asarray(is_same(np.real(a), np.real(b)) & is_same(np.imag(a), np.imag(b)), np.bool_)
    nan = (a != a) & (b != b)
    bits = f"u{a.dtype.itemsize}"
    return np.asarray((np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)).reshape(a.shape) | nan)


def _shape_difference(number: int, a: Array, b: Array) -> Difference | None:
    if a.shape == b.shape and a.dtype == b.dtype:
        return None
    return Difference(number, (), f"{a.dtype}{list(a.shape)}", f"{b.dtype}{list(b.shape)}", 1, "types")


def _difference(number: int, a: Array, b: Array, different: NDArray[np.bool_], what: str) -> Difference | None:
    count = int(np.count_nonzero(different))
    if not count:
        return None
    index = tuple(int(i) for i in np.argwhere(different)[0])
    return Difference(number, index, str(a[index]), str(b[index]), count, what)
