"""What ops give in NumPy: those that move elements, comparisons, and those that compute integers and truth values.

One table for all of the judge that computes: constants are folded by it, sizes and truth
values are chosen by it (`drive/sample_sizes`, `drive/ranges`), and scatters are run by it (`judges/definitions`).
The rules have meanings of their own (`ops/knowledge.py`), so that a mistake in one of the two shows.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import WIDE_FLOATS, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMPARISONS

Array = NDArray[Any]

Move: TypeAlias = Callable[[mlir.RawOperation, Sequence[Array], tuple[int, ...]], Array]
"""The result of an operation, given its operands and its shape; perhaps a view of one of them."""


def _broadcast_in_dim(raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    dims = mlir.integers_of(raw.attributes["broadcast_dimensions"])
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    sizes = [1] * len(shape)
    for i, dim in enumerate(dims):
        sizes[dim] = operands[0].shape[i]
    return np.broadcast_to(operands[0].transpose(order).reshape(sizes), shape)


def _slice(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    bounds = (mlir.integers_of(raw.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    return operands[0][tuple(slice(*b) for b in zip(*bounds, strict=True))]


def _concatenate(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return np.concatenate(operands, mlir.integer_of(raw.attributes["dimension"]))


def _reshape(_: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...]) -> Array:
    return operands[0].reshape(shape)


def _transpose(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return operands[0].transpose(mlir.integers_of(raw.attributes["permutation"]))


def _reverse(raw: mlir.RawOperation, operands: Sequence[Array], _: tuple[int, ...]) -> Array:
    return np.flip(operands[0], mlir.integers_of(raw.attributes["dimensions"]))


MOVES: Mapping[str, Move] = {
    names.BROADCAST_IN_DIM: _broadcast_in_dim,
    names.CONCATENATE: _concatenate,
    names.RESHAPE: _reshape,
    names.REVERSE: _reverse,
    names.SLICE: _slice,
    names.TRANSPOSE: _transpose,
}
"""Ops that move elements to places that the module fixes, on arrays of whatever elements: numbers, or terms."""


def _quotient(a: Array, b: Array) -> Array:
    """Towards zero; the least number by -1 is itself, as products wrap; by 0 all bits are set, as in XLA."""
    by = np.where(b == 0, np.ones_like(b), b)
    floor = np.floor_divide(a, by)
    is_less = (floor * by != a) & ((a < 0) != (by < 0))
    return np.where(b == 0, np.invert(np.zeros_like(a)), floor + is_less.astype(floor.dtype))


def _rest(a: Array, b: Array) -> Array:
    """Of the sign of the dividend; by 0 the dividend, as in XLA."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


INTEGERS: Mapping[str, Callable[..., Any]] = {
    names.ADD: np.add,
    names.SUBTRACT: np.subtract,
    names.MULTIPLY: np.multiply,
    names.DIVIDE: _quotient,
    names.REMAINDER: _rest,
    names.NEGATE: np.negative,
    names.ABS: np.abs,
    names.SIGN: np.sign,
    names.MAXIMUM: np.maximum,
    names.MINIMUM: np.minimum,
    names.CLAMP: _clamp,
    names.AND: np.bitwise_and,
    names.OR: np.bitwise_or,
    names.XOR: np.bitwise_xor,
    names.NOT: np.invert,
}
"""Ops on integers of one type, which wrap around, and on truth values, of which a sum is `or` and a product `and`.

A divisor of 0 has a result here only because XLA gives one: the specification leaves it open."""

DIVISIONS = frozenset({names.DIVIDE, names.REMAINDER})
"""Those of them whose result is left open where the second operand is 0."""


# --- constants by value ---
#
# Constants by value: what an operation gives where all its operands are known.
#
# Numbers that are moved, integer arithmetic, and conversions that are exact are folded; no float arithmetic, so nothing
# rounds here. A tensor of one value (a splat) is one value with its shape, never an array of that shape (the arrays
# below are broadcast views).


MAX_ELEMENTS = 1 << 16
"""Elements up to which a tensor is known element by element."""


def is_splat(array: Array) -> bool:
    """Whether an array is one value, everywhere; one that is not stored so is not looked at."""
    return array.size > 0 and not any(s for s, n in zip(array.strides, array.shape, strict=True) if n > 1)


def identity(array: Array) -> tuple[str, bytes]:
    """What tells a known tensor from others of its type."""
    if is_splat(array):
        return "splat", array[(0,) * array.ndim].tobytes()
    return "dense", array.tobytes()


def fold_constant(raw: mlir.RawOperation, known: Sequence[Array | None]) -> Array | None:
    """The value of an op with one result of static shape; None if it is unknown.

    Args:
      raw: the operation.
      known: the values of its operands.
    """
    operands = [value for value in known if value is not None]
    fold = _FOLDS.get(raw.name) if len(operands) == len(known) else None
    tensor = mlir.read_tensor_type(raw.results[0].type) if fold is not None and len(raw.results) == 1 else None
    if fold is None or tensor is None or not tensor.is_static:
        return None
    dtype = mlir.dtype_of(tensor.element_name)
    if dtype is None:
        return None
    shape = tuple(int(size or 0) for size in tensor.shape)
    if prod(shape) > MAX_ELEMENTS and not _stays_splat(raw, operands):
        return None
    with np.errstate(all="ignore"):
        value = fold(raw, operands, shape, dtype)
    if value is None:
        return None
    if value.size and is_splat(value):  # kept as one value
        return np.broadcast_to(np.asarray(value[(0,) * value.ndim]).astype(dtype), shape)
    return np.ascontiguousarray(value).astype(dtype, copy=False).reshape(shape)


Value = TypeVar("Value", bound=Hashable)


def find_constant(
    value: Value,
    known: dict[Value, Array | None],
    made: Callable[[Value], tuple[mlir.RawOperation, Sequence[Value]] | None],
) -> Array | None:
    """The value that a chain of ops on known values gives; None if it is unknown.

    Args:
      value: the value.
      known: values that are known, and with None those that are not; what is found out comes to them. However many
        operations stand behind one another, each is looked at once.
      made: the operation of one result that makes a value, and its operands; None where nothing is known of it.
    """
    pending = [value]
    while pending:
        if pending[-1] in known:
            pending.pop()
            continue
        raw, operands = made(pending[-1]) or (None, ())
        if raw is None or any(operand in known and known[operand] is None for operand in operands):
            known[pending.pop()] = None
        elif missing := [operand for operand in operands if operand not in known]:
            pending.append(missing[0])
        else:
            known[pending.pop()] = fold_constant(raw, [known[operand] for operand in operands])
    return known[value]


def maker_and_operands(value: mlir.RawValue) -> tuple[mlir.RawOperation, list[mlir.RawValue]] | None:
    """The operation of one result that makes a value, and its operands: `made` of `find_constant`."""
    maker = mlir.producer(value)
    return (maker, list(maker.operands)) if maker and len(maker.results) == 1 and not len(maker.regions) else None


def _stays_splat(raw: mlir.RawOperation, operands: Sequence[Array]) -> bool:
    if raw.name == names.CONSTANT:
        return mlir.is_splat(raw)
    return raw.name != names.IOTA and bool(operands) and all(is_splat(value) for value in operands)


_Fold = Callable[[mlir.RawOperation, Sequence[Array], tuple[int, ...], np.dtype[Any]], Array | None]


def _one(array: Array) -> Array:
    return array[(0,) * array.ndim]


def _fold_of_move(move: Move) -> _Fold:
    """The fold of an op that moves elements: it turns equal splats into a splat."""

    def fold(
        raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array | None:
        if all(is_splat(o) for o in operands) and len({_one(o).tobytes() for o in operands}) == 1 and 0 not in shape:
            return np.broadcast_to(_one(operands[0]), shape)
        return move(raw, operands, shape) if prod(shape) <= MAX_ELEMENTS else None

    return fold


def _fold_of_arithmetic(compute: Callable[..., Array]) -> _Fold:
    """The fold of elementwise integer arithmetic."""

    def fold(
        raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array | None:
        if any(o.dtype.kind not in "iub" for o in operands) or dtype.kind not in "iub":
            return None
        if raw.name in DIVISIONS and not np.all(operands[1]):
            return None
        if all(is_splat(o) for o in operands) and 0 not in shape:
            return np.broadcast_to(np.asarray(compute(*map(_one, operands))).astype(dtype), shape)
        return compute(*operands) if prod(shape) <= MAX_ELEMENTS else None

    return fold


def _constant(raw: mlir.RawOperation, _: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    return mlir.constant_value(raw) if mlir.is_splat(raw) or prod(shape) <= MAX_ELEMENTS else None


def _iota(raw: mlir.RawOperation, _: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    if dtype.kind not in "iu":
        return None
    dim = mlir.integer_of(raw.attributes["iota_dimension"])
    along = np.arange(shape[dim]).astype(dtype).reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return np.broadcast_to(along, shape)


def _compare(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    return _fold_of_arithmetic(COMPARISONS[mlir.enum_value(raw.attributes["comparison_direction"])])(
        raw, operands, shape, dtype
    )


def _convert(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    """Between integers, and to floats that hold each of these integers or floats exactly."""

    def convert(x: Array) -> Array:
        return np.asarray(x).astype(dtype)

    given = operands[0]
    if _holds(dtype, given):
        one = all(is_splat(o) for o in operands) and 0 not in shape
        return np.broadcast_to(convert(_one(given)), shape) if one else convert(given)
    return _fold_of_arithmetic(convert)(raw, operands, shape, dtype) if dtype.kind in "iu" else None


def _holds(dtype: np.dtype[Any], given: Array) -> bool:
    """Whether a wide float type holds all numbers of an array exactly; of NaN nothing is said."""
    wide, narrow = element_type_of(dtype), element_type_of(given.dtype)
    if wide.name not in WIDE_FLOATS:
        return False
    if given.dtype.kind not in "iub":
        return narrow.name in WIDE_FLOATS - {wide.name} and wide.holds(narrow) and not np.any(given != given)
    bits = wide.mantissa + 1
    least, most = (int(end) for end in (given.min(initial=0), given.max(initial=0)))
    return -(1 << bits) <= least and most <= 1 << bits


def _same_bits(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    given = operands[0]
    if given.shape != shape or given.dtype.itemsize != dtype.itemsize or dtype.kind in "bc" or given.dtype.kind in "bc":
        return None
    if given.size and is_splat(given):
        return np.broadcast_to(_one(given).reshape(1).view(dtype)[0], shape)
    return np.ascontiguousarray(given).view(dtype)


def _select(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    predicate, on_true, on_false = operands
    if predicate.size and is_splat(predicate):
        return on_true if bool(_one(predicate)) else on_false
    return np.where(predicate, on_true, on_false) if prod(shape) <= MAX_ELEMENTS else None


_FOLDS: Mapping[str, _Fold] = {
    **{name: _fold_of_arithmetic(compute) for name, compute in INTEGERS.items()},
    **{name: _fold_of_move(move) for name, move in MOVES.items()},
    names.CONSTANT: _constant,
    names.IOTA: _iota,
    names.COMPARE: _compare,
    names.SELECT: _select,
    names.CONVERT: _convert,
    names.BITCAST_CONVERT: _same_bits,
}
