"""Elementwise ops in NumPy, by the specification: integers wrap, conversions round once and saturate."""

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
BF16 = np.dtype(ml_dtypes.bfloat16)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a float, also one that NumPy does not know as such."""
    return bool(dtype.kind == "f" or (dtype.kind == "V" and dtype.itemsize <= 2))


def _odd(x: Array, to: type[Any]) -> Array:
    """A float or integer rounded to odd, so that it can be rounded once more."""
    nearest = np.asarray(x.astype(to))
    if x.dtype.kind in "iu":
        exact = np.vectorize(lambda a, b: int(a) - int(b) if np.isfinite(b) else 0, otypes=[object])(x, nearest)
        off = np.sign(np.asarray(exact, dtype=object).astype(np.float64))
    else:
        off = np.sign(x.astype(np.float64) - nearest.astype(np.float64))
        off = np.where(np.isfinite(x) & np.isfinite(nearest), off, 0)
    bits = nearest.view(f"u{nearest.itemsize}")
    even = bits % 2 == 0
    moved = np.nextafter(nearest, np.where(off > 0, np.inf, -np.inf).astype(to))
    return np.where((off != 0) & even, moved, nearest).astype(to)


def converted(x: Array, to: np.dtype[Any]) -> Array:
    """Convert with one rounding; to integers truncate, saturate, NaN becomes 0."""
    x = np.asarray(x)
    if x.dtype == to:
        return x
    if to == np.bool_:
        return np.asarray(x != np.zeros((), x.dtype))
    if x.dtype == np.bool_:
        return x.astype(np.uint8).astype(to)
    if to.kind in "iu" and is_float(x.dtype):
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        ends = np.iinfo(to)
        inside = (wide >= float(ends.min)) & (wide < float(ends.max) + 1)
        safe = np.where(inside, wide, 0.0).astype(to)
        return np.where(inside, safe, np.where(wide > 0, ends.max, ends.min)).astype(to)
    if to.kind in "iu" and x.dtype.kind == "c":
        return converted(x.real, to)
    if x.dtype.kind == "c" and to.kind != "c":
        return converted(x.real, to)
    if to == BF16 and x.dtype.kind in "iuf" and x.dtype.itemsize >= 4:
        if x.dtype != np.float32:
            x = _odd(_odd(x, np.float64), np.float32) if x.dtype.kind in "iu" else _odd(x, np.float32)
        return x.astype(to)
    return x.astype(to)


def _divide(node: Any, a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return a / b
    low = np.iinfo(a.dtype).min
    zero, over = b == 0, (a == low) & (b == -1) if a.dtype.kind == "i" else np.zeros(np.shape(b), bool)
    safe = np.where(zero | over, np.ones_like(b), b)
    quotient = a // safe
    inexact = quotient * safe != a
    negative = (a < 0) != (safe < 0) if a.dtype.kind == "i" else np.zeros(np.shape(quotient), bool)
    quotient = quotient + (inexact & negative).astype(a.dtype)
    ones = np.array(-1 if a.dtype.kind == "i" else np.iinfo(a.dtype).max, a.dtype)
    return np.where(zero, ones, np.where(over, low, quotient)).astype(a.dtype)


def _remainder(node: Any, a: Array, b: Array) -> Array:
    if a.dtype.kind == "c":
        raise NotImplementedError
    if a.dtype.kind not in "iu":
        return np.fmod(a.astype(np.float32), b.astype(np.float32)) if a.dtype == BF16 else np.fmod(a, b)
    low = np.iinfo(a.dtype).min
    over = (a == low) & (b == -1) if a.dtype.kind == "i" else np.zeros(np.shape(b), bool)
    safe = np.where((b == 0) | over, np.ones_like(b), b)
    return np.where(b == 0, a, np.where(over, 0, np.fmod(a, safe))).astype(a.dtype)


def _shift(kind: str) -> Callable[..., Array]:
    def shift(node: Any, a: Array, b: Array) -> Array:
        bits = a.dtype.itemsize * 8
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        signed = np.dtype(f"i{a.dtype.itemsize}")
        count = b.astype(unsigned)
        beyond = count >= bits
        count = np.where(beyond, 0, count).astype(unsigned)
        if kind == "left":
            return np.where(beyond, 0, a.astype(unsigned) << count).astype(unsigned).astype(a.dtype)
        if kind == "logical":
            return np.where(beyond, 0, a.astype(unsigned) >> count).astype(unsigned).astype(a.dtype)
        s = a.astype(signed)
        return (
            np.where(beyond, s >> np.array(bits - 1, signed), s >> count.astype(signed)).astype(signed).astype(a.dtype)
        )

    return shift


def _pick(kind: str) -> Callable[..., Array]:
    """Minimum or maximum: NaN wins, and -0.0 is below 0.0."""

    def pick(node: Any, a: Array, b: Array) -> Array:
        a, b = np.broadcast_arrays(a, b)
        if a.dtype == np.bool_:
            return a & b if kind == "minimum" else a | b
        if a.dtype.kind in "iu":
            return np.minimum(a, b) if kind == "minimum" else np.maximum(a, b)
        if a.dtype.kind == "c":
            first = (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))
            return np.where(first == (kind == "minimum"), a, b)
        below = (a < b) | ((a == b) & np.signbit(a) & ~np.signbit(b))
        chosen = np.where(below == (kind == "minimum"), a, b)
        return np.where(np.isnan(a), a, np.where(np.isnan(b), b, chosen)).astype(a.dtype)

    return pick


def ordinal(x: Array) -> Array:
    """Floats as integers in their total order."""
    signed = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}").reshape(x.shape)
    return np.where(signed < 0, signed ^ np.array(np.iinfo(signed.dtype).max, signed.dtype), signed)


def _compare(node: Any, a: Array, b: Array) -> Array:
    if "TOTALORDER" in str(node.attributes.get("compare_type", "")):
        a, b = ordinal(a), ordinal(b)
    if a.dtype.kind == "c" and node.attributes["comparison_direction"] not in ("EQ", "NE"):
        raise NotImplementedError
    run = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal,
           "NE": np.not_equal}  # fmt: skip
    return run[node.attributes["comparison_direction"]](a, b)


def _reduce_precision(node: Any, x: Array) -> Array:
    exponent, mantissa = node.attributes["exponent_bits"], node.attributes["mantissa_bits"]
    wide = x.astype(np.float64)
    fraction, power = np.frexp(wide)
    bias = 2 ** (exponent - 1) - 1
    smallest = 1 - bias
    rounded = np.ldexp(np.rint(np.ldexp(fraction, mantissa + 1)), power - mantissa - 1)
    limit = (2 - 2.0**-mantissa) * 2.0**bias
    rounded = np.where(np.abs(rounded) > limit, np.copysign(np.inf, wide), rounded)
    rounded = np.where(np.abs(rounded) < 2.0**smallest, np.copysign(0.0, wide), rounded)  # XLA flushes
    return np.where(np.isfinite(wide) & (wide != 0), rounded, wide).astype(x.dtype)


def _in_float(run: Callable[..., Array]) -> Callable[..., Array]:
    """In the type itself, or in f32 where that is smaller, rounded back."""

    def wide(node: Any, *values: Array) -> Array:
        small = values[0].dtype.itemsize == 2
        taken = [v.astype(np.float32) for v in values] if small else values
        return np.asarray(run(*taken)).astype(values[0].dtype)

    return wide


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), np.copysign(whole, x)).astype(x.dtype)


def _popcount(node: Any, x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def _leading_zeros(node: Any, x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    unsigned = x.astype(f"u{x.dtype.itemsize}").astype(np.uint64)
    count = np.zeros(x.shape, np.int64)
    for n in range(bits):
        count = np.where(unsigned >> np.uint64(n) != 0, n + 1, count)
    return (bits - count).astype(x.dtype)


def _select(node: Any, p: Array, a: Array, b: Array) -> Array:
    return np.where(p, a, b)


def _clamp(node: Any, low: Array, x: Array, high: Array) -> Array:
    return _pick("minimum")(node, _pick("maximum")(node, x, low), high)


def _sign(node: Any, x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.where(x == 0, x, x / np.abs(x))
    if is_float(x.dtype):
        return np.where(np.isnan(x) | (x == 0), x, np.copysign(np.ones_like(x), x)).astype(x.dtype)
    return np.sign(x)


def _joined(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    result = np.empty(a.shape, np.complex64 if a.dtype == np.float32 else np.complex128)
    result.real, result.imag = a, b
    return result


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "add": lambda n, a, b: a | b if a.dtype == np.bool_ else a + b,
    "subtract": lambda n, a, b: a - b,
    "multiply": lambda n, a, b: a & b if a.dtype == np.bool_ else a * b,
    "divide": _divide,
    "remainder": _remainder,
    "minimum": _pick("minimum"),
    "maximum": _pick("maximum"),
    "and": lambda n, a, b: a & b,
    "or": lambda n, a, b: a | b,
    "xor": lambda n, a, b: a ^ b,
    "not": lambda n, a: ~a,
    "negate": lambda n, a: -a,
    "abs": lambda n, a: np.abs(a),
    "sign": _sign,
    "shift_left": _shift("left"),
    "shift_right_logical": _shift("logical"),
    "shift_right_arithmetic": _shift("arithmetic"),
    "popcnt": _popcount,
    "count_leading_zeros": _leading_zeros,
    "compare": _compare,
    "select": _select,
    "clamp": _clamp,
    "convert": lambda n, a: converted(a, _to(n)),
    "reduce_precision": _reduce_precision,
    "is_finite": lambda n, a: np.isfinite(a),
    "complex": lambda n, a, b: _joined(a, b),
    "real": lambda n, a: a.real,
    "imag": lambda n, a: a.imag if a.dtype.kind == "c" else np.zeros_like(a),
    "atan2": _in_float(np.arctan2),
    "power": lambda n, a, b: np.power(a, b) if a.dtype.kind == "u" or is_float(a.dtype) or a.dtype.kind == "c"
    else _int_power(a, b),
    "exponential": _in_float(np.exp),
    "exponential_minus_one": _in_float(np.expm1),
    "log": _in_float(np.log),
    "log_plus_one": _in_float(np.log1p),
    "logistic": _in_float(_logistic),
    "tanh": _in_float(np.tanh),
    "tan": _in_float(np.tan),
    "sine": _in_float(np.sin),
    "cosine": _in_float(np.cos),
    "sqrt": _in_float(np.sqrt),
    "rsqrt": _in_float(lambda x: 1 / np.sqrt(x)),
    "cbrt": _in_float(np.cbrt),
    "floor": _in_float(np.floor),
    "ceil": _in_float(np.ceil),
    "round_nearest_even": _in_float(np.rint),
    "round_nearest_afz": _in_float(_round_away),
    "square": lambda n, a: a * a,
    "erf": _in_float(np.vectorize(erf, otypes=[np.float64])),
    "next_after": lambda n, a, b: np.nextafter(a, b),
    "cosh": _in_float(np.cosh),
    "sinh": _in_float(np.sinh),
    "asin": _in_float(np.arcsin),
    "acos": _in_float(np.arccos),
    "atan": _in_float(np.arctan),
    "asinh": _in_float(np.arcsinh),
    "acosh": _in_float(np.arccosh),
    "atanh": _in_float(np.arctanh),
    "is_inf": lambda n, a: np.isinf(a),
}  # fmt: skip


def _int_power(a: Array, b: Array) -> Array:
    safe = np.where(b < 0, 0, b)
    result = np.power(a, safe)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, result).astype(a.dtype)


def _to(node: Any) -> np.dtype[Any]:
    from mutating.evaluator import dtype_of

    return dtype_of(node.types[0])
