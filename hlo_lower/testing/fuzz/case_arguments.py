"""The arguments of a case: index values in every regime, and data with special values."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.testing.fuzz.case import Case
from hlo_lower.testing.fuzz.drawn_types import TYPES, DrawnType
from hlo_lower.testing.fuzz.index_columns import compute
from hlo_lower.verify.drive.input_roles import Column as Extent
from hlo_lower.verify.drive.input_roles import starts_in, with_special_values

Array = NDArray[Any]


@dataclass(frozen=True)
class Arguments:
    """One set of arguments."""

    # operands, updates: one per operand
    operands: tuple[Array, ...]
    updates: tuple[Array, ...]
    given: tuple[Array, ...]  # the runtime arguments that the indices are computed from
    captured: tuple[Array, ...]  # the runtime values that the region captures
    indices: Array  # the index tensor that `given` makes, as NumPy computes it

    @property
    def all(self) -> tuple[Array, ...]:
        """In the order in which the function takes them."""
        return (*self.operands, *self.updates, *self.given, *self.captured)


def arguments_of(case: Case, number: int) -> Arguments:
    """The set of arguments of a number, from 0."""
    rng = np.random.default_rng([case.values, number])
    special = number % 2 == 1
    form = case.form
    operands = tuple(data(rng, form.operand, TYPES[e], special=special) for e in case.operands)
    updates = tuple(data(rng, form.updates, TYPES[e], special=special) for e in case.operands)
    captured = tuple(data(rng, (), TYPES[e.element], special=False) for e in case.region.captured_values)
    given, indices = _indices(case, rng, case.regimes[number])
    return Arguments(operands, updates, given, captured, indices)


def _indices(case: Case, rng: np.random.Generator, regime: str) -> tuple[tuple[Array, ...], Array]:
    form = case.form
    positions, final = form.positions, TYPES[case.final_index_type].dtype
    given: list[Array] = []
    columns: list[Array] = []
    for column in form.columns:
        shape = column.argument_shape(positions)
        leaf = None
        if shape is not None:
            size, window = form.extent(column)
            dtype = TYPES[case.index_type].dtype
            leaf = starts_in(rng, regime, shape, dtype, Extent(size, window))
            given.append(leaf)
        _, _, value = compute(column, positions, case.index_type, form.extent(column), ("%i", leaf), "v")
        columns.append(value.astype(final))
    if form.implicit:
        indices = columns[0]
    else:
        indices = np.stack(columns, form.index_vector_dim) if columns else np.zeros(form.indices, final)
    return ((indices,) if case.is_direct else tuple(given)), indices


def data(rng: np.random.Generator, shape: tuple[int, ...], element: DrawnType, *, special: bool) -> Array:
    """Data of a type: numbers of every sign and size, with NaN, infinities and signed zeros if asked for.

    No subnormal numbers of f32 and f64: XLA's arithmetic on CPU flushes them to zero.
    """
    if element.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if element.kind in ("signed", "unsigned"):
        low, high = element.limits
        small = rng.integers(max(low, -4), min(high, 4), size=shape, endpoint=True)
        wide = np.uint64 if element.kind == "unsigned" else np.int64
        whole = rng.integers(low, high, size=shape, dtype=wide, endpoint=True)
        return np.asarray(np.where(rng.random(shape) < 0.5, small.astype(wide), whole)).astype(element.dtype)
    if element.kind == "scale":
        return np.asarray(2.0 ** rng.integers(-8, 9, size=shape)).astype(element.dtype)
    if element.kind == "complex":
        parts = [with_special_values(rng, rng.standard_normal(shape)) if special else rng.standard_normal(shape)]
        parts.append(rng.standard_normal(shape))
        array = np.empty(shape, np.complex128)
        array.real, array.imag = parts
        return array.astype(element.dtype)
    array = np.asarray(rng.standard_normal(shape))
    if element.dtype.itemsize == 1:  # few bits: numbers that they hold, and some that they round
        array = np.where(rng.random(shape) < 0.7, rng.integers(-6, 7, size=shape) / 2.0, array)
        array = array.astype(element.dtype)
        return _with_small_special_values(rng, array) if special and prod(shape) else np.asarray(array)
    array = array.astype(element.dtype)
    return with_special_values(rng, array) if special else array


def _with_small_special_values(rng: np.random.Generator, array: Array) -> Array:
    """Zeros of both signs, and NaN and infinity as far as the type has them, in a third of the places."""
    with np.errstate(all="ignore"):
        special = np.asarray([0.0, -0.0, np.nan, np.inf]).astype(array.dtype)
    chosen = special[rng.integers(len(special), size=array.shape)]
    return np.where(rng.random(array.shape) < 0.33, chosen, array)
