"""Constants by value: what an operation gives where all its operands are known.

Numbers that are moved, integer arithmetic, and conversions that are exact are folded; no float arithmetic, so nothing
rounds here. A tensor of one value (a splat) is one value with its shape, never an array of that shape (the arrays below
are broadcast views).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import WIDE_FLOATS, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.verify.read.moves import MOVES, Move

Array = NDArray[Any]

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


def folded(raw: mlir.RawOperation, known: Sequence[Array | None]) -> Array | None:
    """The value of an operation with one result of static shape, or None where it is not known.

    Args:
      raw: the operation.
      known: the values of its operands.
    """
    fold = _FOLDS.get(raw.name.removeprefix("stablehlo."))
    tensor = mlir.read_tensor_type(raw.results[0].type) if fold is not None and len(raw.results) == 1 else None
    if fold is None or tensor is None or not tensor.is_static:
        return None
    operands = [value for value in known if value is not None]
    dtype = mlir.dtype_of(tensor.element_name)
    if dtype is None or len(operands) < len(known):
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


def settled(
    value: Value,
    known: dict[Value, Array | None],
    made: Callable[[Value], tuple[mlir.RawOperation, Sequence[Value]] | None],
) -> Array | None:
    """What a value is where known ones make it; None where it is not known.

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
            known[pending.pop()] = folded(raw, [known[operand] for operand in operands])
    return known[value]


def _stays_splat(raw: mlir.RawOperation, operands: Sequence[Array]) -> bool:
    if raw.name == "stablehlo.constant":
        return mlir.is_splat(raw)
    return raw.name != "stablehlo.iota" and bool(operands) and all(is_splat(value) for value in operands)


_Fold = Callable[[mlir.RawOperation, Sequence[Array], tuple[int, ...], np.dtype[Any]], Array | None]


def _one(array: Array) -> Array:
    return array[(0,) * array.ndim]


def _moved(move: Move) -> _Fold:
    """An operation that moves elements: of splats of one value it makes a splat."""

    def fold(
        raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array | None:
        if all(is_splat(o) for o in operands) and len({_one(o).tobytes() for o in operands}) == 1 and 0 not in shape:
            return np.broadcast_to(_one(operands[0]), shape)
        return move(raw, operands, shape) if prod(shape) <= MAX_ELEMENTS else None

    return fold


def _computed(compute: Callable[..., Array]) -> _Fold:
    """Integer arithmetic, element by element."""

    def fold(
        raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array | None:
        if any(o.dtype.kind not in "iub" for o in operands) or dtype.kind not in "iub":
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


_COMPARE = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    return _computed(_COMPARE[mlir.enum_value(raw.attributes["comparison_direction"])])(raw, operands, shape, dtype)


def _convert(
    raw: mlir.RawOperation, operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array | None:
    """Between integers, and to floats that hold each of these integers or floats exactly."""

    def converted(x: Array) -> Array:
        return np.asarray(x).astype(dtype)

    given = operands[0]
    if _holds(dtype, given):
        one = all(is_splat(o) for o in operands) and 0 not in shape
        return np.broadcast_to(converted(_one(given)), shape) if one else converted(given)
    return _computed(converted)(raw, operands, shape, dtype) if dtype.kind in "iu" else None


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


def _sum(a: Array, b: Array) -> Array:
    return np.asarray(a | b if a.dtype == np.bool_ else a + b)


def _product(a: Array, b: Array) -> Array:
    return np.asarray(a & b if a.dtype == np.bool_ else a * b)


def _clamped(low: Array, x: Array, high: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(x, low), high))


_FOLDS: Mapping[str, _Fold] = {
    "constant": _constant,
    "iota": _iota,
    **{name: _moved(move) for name, move in MOVES.items()},
    "compare": _compare,
    "select": _select,
    "convert": _convert,
    "bitcast_convert": _same_bits,
    "add": _computed(_sum),
    "subtract": _computed(np.subtract),
    "multiply": _computed(_product),
    "minimum": _computed(np.minimum),
    "maximum": _computed(np.maximum),
    "and": _computed(np.bitwise_and),
    "or": _computed(np.bitwise_or),
    "xor": _computed(np.bitwise_xor),
    "not": _computed(np.invert),
    "clamp": _computed(_clamped),
}
