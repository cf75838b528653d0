"""Compare results: bit for bit, or within a stated bound where XLA may round differently."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """The first element that is not the same bit for bit; any NaN equals any NaN, but +0 is not -0."""
    for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
        found = _shape_difference(number, a, b)
        if found is not None:
            return found
        found = _difference(number, a, b, ~_same(a, b), "bit for bit")
        if found is not None:
            return found
    return None


def only_signs_of_zeros(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether two results are equal numbers everywhere, or NaN, so that they differ in signs of zeros at most."""
    return all(
        a.shape == b.shape and a.dtype == b.dtype and bool(np.all((a == b) | ((a != a) & (b != b))))
        for a, b in zip(expected, actual, strict=True)
    )


def first_difference_within(
    expected: Sequence[Array], actual: Sequence[Array], units: int, scales: Sequence[float]
) -> Difference | None:
    """The first element that differs by more than `units` machine epsilons of its scale.

    Args:
      expected, actual: results.
      units: n in the bound |a - b| <= n * eps * max(|a|, |b|, scale). A sum of k terms in another order, or with
        contracted products, moves by at most k roundings of the largest partial sum; hence the scale.
      scales: for each result, the largest magnitude of a term.
    """
    for number, (a, b, scale) in enumerate(zip(expected, actual, scales, strict=True)):
        found = _shape_difference(number, a, b)
        if found is not None:
            return found
        different = ~_same(a, b)
        if _is_inexact(a):
            with np.errstate(all="ignore"):
                x, y = (np.asarray(v, np.complex128 if a.dtype.kind == "c" else np.float64) for v in (a, b))
                limit = units * epsilon(a.dtype) * np.maximum(np.maximum(np.abs(x), np.abs(y)), scale)
                # An infinity is within no bound: only an equal one will do.
                near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= limit)
                different &= ~((x == y) | near)
        found = _difference(number, a, b, different, f"bound {units} eps of max(|a|, |b|, {scale:.3g})")
        if found is not None:
            return found
    return None


def epsilon(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number of a float type."""
    one = np.ones((), np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype)
    if one.dtype.type in (np.float16, np.float32, np.float64):
        return float(np.finfo(one.dtype).eps)
    bits = one.view(f"u{one.dtype.itemsize}") + np.asarray(1, f"u{one.dtype.itemsize}")
    return float(np.asarray(bits.view(one.dtype), np.float64)) - 1.0


def largest_magnitude(array: Array) -> float:
    """The largest finite magnitude in an array; 0 if there is none."""
    if not _is_inexact(array) or not array.size:
        return 0.0
    with np.errstate(all="ignore"):
        magnitudes = np.abs(np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64))
    finite = magnitudes[np.isfinite(magnitudes)]
    return float(finite.max()) if finite.size else 0.0


def nan_share(array: Array) -> float:
    """The share of NaN among the elements of a float array."""
    return float(np.mean(np.asarray(array != array, np.bool_))) if _is_inexact(array) and array.size else 0.0


def _is_inexact(array: Array) -> bool:
    """Whether it holds floats; ml_dtypes' types are of kind V or f."""
    return array.dtype.kind in "fcV" and not array.dtype.name.startswith(("int", "uint"))


def _same(a: Array, b: Array) -> NDArray[np.bool_]:
    if not _is_inexact(a):
        return np.asarray(a == b, np.bool_)
    nan = (a != a) & (b != b)
    if a.dtype.kind == "c":
        return np.asarray((_same(np.real(a), np.real(b)) & _same(np.imag(a), np.imag(b))) | nan, np.bool_)
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
