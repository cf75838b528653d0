"""Intervals: for each element of an integer tensor the least and the greatest value it can have.

Bounds are arrays of the tensor's rank that broadcast to its shape, so a uniform tensor costs one element. They are
int64 for types up to 32 bits and Python integers (dtype object) for 64-bit ones; either way sums and products of two
bounds are exact, and a result that leaves its type is widened to the whole type, because it may wrap around.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import type_range
from hlo_lower.facts.values.evidence import Evidence

Bounds = NDArray[Any]


def wrapped_number(number: int, low: int, high: int) -> int:
    """A number brought into a type's range, as arithmetic in the type wraps around."""
    return (number - low) % (high - low + 1) + low


def bounds_dtype(element_type: str) -> Any:
    """The NumPy dtype for bounds of this element type."""
    return object if element_type.endswith("64") else np.int64


@dataclass(slots=True, eq=False)
class Interval:
    """The values that the elements of a tensor can have.

    Attributes:
      shape: the tensor's shape.
      element_type: its integer element type.
      lo, hi: bounds, inclusive, that broadcast to the shape.
      evidence: why, or None where it says no more than the type.
    """

    shape: tuple[int, ...]
    element_type: str
    lo: Bounds
    hi: Bounds
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        # Arithmetic on arrays of rank 0 gives scalars, whose integers would be int64 again.
        dtype = bounds_dtype(self.element_type)
        self.lo = np.asarray(self.lo, dtype)
        self.hi = self.lo if self.hi is self.lo else np.asarray(self.hi, dtype)

    @classmethod
    def of_type(cls, shape: tuple[int, ...], element_type: str, evidence: Evidence | None = None) -> "Interval":
        """Everything that the type allows."""
        low, high = type_range(element_type) or (0, 0)
        dtype, ones = bounds_dtype(element_type), (1,) * len(shape)
        return cls(shape, element_type, np.full(ones, low, dtype), np.full(ones, high, dtype), evidence)

    @classmethod
    def exactly(cls, values: NDArray[Any], element_type: str, evidence: Evidence | None = None) -> "Interval":
        """Known values; an array that is uniform along a dim is kept with size 1 there."""
        shape = tuple(int(size) for size in values.shape)
        squeezed = values[tuple(slice(0, 1) if stride == 0 and size else slice(None) for stride, size in _axes(values))]
        bounds = np.asarray(np.asarray(squeezed).astype(bounds_dtype(element_type)))
        return cls(shape, element_type, bounds, bounds, evidence)

    @property
    def is_constant(self) -> bool:
        """Whether every element is known exactly."""
        return self.lo is self.hi or bool(np.all(self.lo == self.hi))

    @property
    def is_unbounded(self) -> bool:
        """Whether it says no more than the type."""
        low, high = type_range(self.element_type) or (0, 0)
        return bool(np.all(self.lo == low) and np.all(self.hi == high))

    @property
    def values(self) -> NDArray[Any]:
        """The elements of a constant tensor."""
        return np.broadcast_to(self.lo, self.shape)

    def hull(self) -> tuple[int, int]:
        """The least and the greatest value of any element; of an empty tensor (0, 0)."""
        return (int(self.lo.min()), int(self.hi.max())) if self.lo.size else (0, 0)

    def because(self, evidence: Evidence | None) -> "Interval":
        """The same interval with this evidence."""
        return Interval(self.shape, self.element_type, self.lo, self.hi, evidence)

    def between(self, lo: Bounds, hi: Bounds) -> "Interval":
        """The same tensor with other bounds."""
        return Interval(self.shape, self.element_type, lo, hi, self.evidence)

    def part(self, index: tuple[slice | int, ...]) -> tuple[Bounds, Bounds]:
        """Both bounds at an index of whole dims and single places, of size 1 along dims in which they are uniform.

        What is known of millions of runtime indices is one number; at the full shape it would be millions.
        """
        if 0 in self.shape:
            lo, hi = self.full()
            return lo[index], hi[index]
        at = tuple(0 if isinstance(i, int) and n == 1 else i for i, n in zip(index, self.lo.shape, strict=True))
        high_at = tuple(0 if isinstance(i, int) and n == 1 else i for i, n in zip(index, self.hi.shape, strict=True))
        return _bounds(self.lo[at]), _bounds(self.hi[high_at])

    def full(self) -> tuple[Bounds, Bounds]:
        """Both bounds at the tensor's full shape."""
        return np.broadcast_to(self.lo, self.shape), np.broadcast_to(self.hi, self.shape)


def _bounds(value: Any) -> Bounds:
    """Bounds that stay exact: NumPy gives Python integers for objects of rank 0, and makes int64 of those again."""
    if isinstance(value, np.ndarray):
        return cast(Bounds, value)
    return np.asarray(value, object) if isinstance(value, int) else np.asarray(value)


def lesser(a: Any, b: Any) -> Bounds:
    """`numpy.minimum` of bounds, exact at every width and rank."""
    return _bounds(np.minimum(_bounds(a), _bounds(b)))


def greater(a: Any, b: Any) -> Bounds:
    """`numpy.maximum` of bounds, exact at every width and rank."""
    return _bounds(np.maximum(_bounds(a), _bounds(b)))


def pick(condition: Any, a: Any, b: Any) -> Bounds:
    """`numpy.where` on bounds, exact at every width and rank."""
    return _bounds(np.where(condition, _bounds(a), _bounds(b)))


def _axes(values: NDArray[Any]) -> list[tuple[int, int]]:
    return list(zip(values.strides, values.shape, strict=True))


def wrap_interval(
    shape: tuple[int, ...], element_type: str, lo: Bounds, hi: Bounds, evidence: Evidence | None
) -> Interval:
    """The interval of an arithmetic result: an element that may leave the type may wrap around to any number in it."""
    low, high = type_range(element_type) or (0, 0)
    outside = (lo < low) | (hi > high)
    if np.any(outside):
        lo, hi = pick(outside, low, lo), pick(outside, high, hi)
    return Interval(shape, element_type, lo, hi, evidence)
