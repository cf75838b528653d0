"""Transfer functions of integer arithmetic. A result that may leave its type may be anything in it (`wrapped`)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.facts.ranges.interval import Interval, bounds_dtype, greater, lesser, pick
from hlo_lower.facts.ranges.transfer.booleans import both, either, scalar_like
from hlo_lower.facts.ranges.transfer.result import Transfer, evidence_of, result
from hlo_lower.ir.view import Node
from hlo_lower.ops import names


def _convert(node: Node, operands: Sequence[Interval]) -> Interval | None:
    operand, element_type = operands[0], node.result().element_type
    if type_range(element_type) is None:
        return None
    if element_type == "i1":  # convert to i1 is "not equal to zero"
        zero_possible, zero_only = (operand.lo <= 0) & (operand.hi >= 0), (operand.lo == 0) & (operand.hi == 0)
        return result(node, (~zero_possible).astype(np.int64), (~zero_only).astype(np.int64), operands)
    low, high = type_range(element_type) or (0, 0)
    dtype = object if object in (operand.lo.dtype, bounds_dtype(element_type)) else np.int64
    outside = np.asarray((operand.lo < low) | (operand.hi > high), np.bool_)
    lo = pick(outside, np.asarray(low, dtype), operand.lo.astype(dtype))
    hi = pick(outside, np.asarray(high, dtype), operand.hi.astype(dtype))
    return result(node, lo, hi, operands)


def _add(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    if a.element_type == "i1":
        return either(node, operands)
    return result(node, a.lo + b.lo, a.hi + b.hi, operands)


def _subtract(node: Node, operands: Sequence[Interval]) -> Interval | None:
    a, b = operands
    return None if a.element_type == "i1" else result(node, a.lo - b.hi, a.hi - b.lo, operands)


def _multiply(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    if a.element_type == "i1":
        return both(node, operands)
    # Python integers: a product of two 32-bit bounds fits int64, but not of two unsigned ones.
    corners = [np.asarray(x.astype(object) * y.astype(object), object) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo = lesser(lesser(corners[0], corners[1]), lesser(corners[2], corners[3]))
    hi = greater(greater(corners[0], corners[1]), greater(corners[2], corners[3]))
    low, high = type_range(a.element_type) or (0, 0)
    outside = np.asarray((lo < low) | (hi > high), np.bool_)
    return result(node, pick(outside, low, lo), pick(outside, high, hi), operands)


def _negate(node: Node, operands: Sequence[Interval]) -> Interval:
    return result(node, -operands[0].hi, -operands[0].lo, operands)


def _clamp(node: Node, operands: Sequence[Interval]) -> Interval:
    low, x, high = operands
    low, high = (scalar_like(b, x) if len(b.shape) != len(x.shape) else b for b in (low, high))
    lo = lesser(greater(x.lo, low.lo), high.lo)
    hi = lesser(greater(x.hi, low.hi), high.hi)
    told = result(node, lo, hi, operands)
    return told.because(evidence_of(node, operands, Code.CLAMPED(*told.hull())))


def _minimum(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    return result(node, lesser(a.lo, b.lo), lesser(a.hi, b.hi), operands, Code.MINIMUM())


def _maximum(node: Node, operands: Sequence[Interval]) -> Interval:
    a, b = operands
    return result(node, greater(a.lo, b.lo), greater(a.hi, b.hi), operands, Code.MAXIMUM())


def _remainder(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """The remainder takes the dividend's sign and is less than the divisor: |x rem d| <= min(|x|, |d| - 1)."""
    x, d = operands
    if not (np.all(d.lo > 0) or np.all(d.hi < 0)):
        return None
    limit = greater(abs(d.lo), abs(d.hi)) - 1
    lo = pick(x.lo < 0, greater(x.lo, -limit), 0)
    hi = pick(x.hi > 0, lesser(x.hi, limit), 0)
    # What is less than the divisor stays what it is; and a known number has a known remainder.
    least = lesser(abs(d.lo), abs(d.hi))
    same, known = (x.lo > -least) & (x.hi < least), (x.lo == x.hi) & (d.lo == d.hi)
    left = x.lo - d.lo * _truncated_any(x.lo, d.lo)
    lo, hi = (pick(known, left, pick(same, bound, found)) for bound, found in ((x.lo, lo), (x.hi, hi)))
    return result(node, lo, hi, operands, Code.REMAINDER(int(np.max(limit)) + 1 if np.size(limit) else 0))


def _divide(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Integer division rounds towards zero; for a positive divisor it grows with the dividend."""
    x, d = operands
    if not np.all(d.lo > 0):
        return None
    corners = [_truncated(a, b) for a in (x.lo, x.hi) for b in (d.lo, d.hi)]
    return result(node, lesser(corners[0], corners[1]), greater(corners[2], corners[3]), operands)


def _truncated(a: Any, b: Any) -> Any:
    quotient = abs(a) // b
    return pick(np.asarray(a) < 0, -quotient, quotient)


def _truncated_any(a: Any, b: Any) -> Any:
    """Division that rounds towards zero, by a divisor of either sign."""
    quotient = abs(a) // abs(b)
    return pick((np.asarray(a) < 0) != (np.asarray(b) < 0), -quotient, quotient)


def _popcnt(node: Node, operands: Sequence[Interval]) -> Interval:
    """As many ones as the type has bits, at most; a number below 2^n that is not negative has at most n."""
    x = operands[0]
    low, high = x.hull()
    most = high.bit_length() if low >= 0 else element_type(x.element_type).bits
    return result(node, np.zeros_like(x.lo), np.full_like(x.hi, most), operands, Code.ONES(most))


def _leading_zeros(node: Node, operands: Sequence[Interval]) -> Interval:
    """As many zeros as the type has bits, at most."""
    x = operands[0]
    return result(node, np.zeros_like(x.lo), np.full_like(x.hi, element_type(x.element_type).bits), operands)


def _shift_left(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Multiplication by a power of two, where nothing is shifted out."""
    x, s = operands
    if x.element_type == "i1" or not (np.all(s.lo >= 0) and np.all(s.hi < element_type(x.element_type).bits)):
        return None
    one = np.asarray(1, object)
    corners = [np.asarray(a, object) * (one << np.asarray(b, object)) for a in (x.lo, x.hi) for b in (s.lo, s.hi)]
    lo, hi = lesser(corners[0], corners[1]), greater(corners[2], corners[3])
    low, high = type_range(x.element_type) or (0, 0)
    outside = np.asarray((lo < low) | (hi > high), np.bool_)
    return result(node, pick(outside, low, lo), pick(outside, high, hi), operands)


def _sign(node: Node, operands: Sequence[Interval]) -> Interval:
    x = operands[0]
    lo = pick(x.lo > 0, 1, pick(x.lo == 0, 0, -1))
    return result(node, lo, pick(x.hi > 0, 1, pick(x.hi == 0, 0, -1)), operands)


def _abs(node: Node, operands: Sequence[Interval]) -> Interval:
    x = operands[0]
    lo = pick(x.lo > 0, x.lo, pick(x.hi < 0, -x.hi, 0))
    return result(node, lo, greater(abs(x.lo), abs(x.hi)), operands)


def _shift_right(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Division by a power of two, rounded down, where the first bit means what the op takes it for: a sign, or 2^n."""
    x, s = operands
    bits = element_type(x.element_type).bits
    if not (np.all(s.lo >= 0) and np.all(s.hi < bits)):
        return None
    if node.name.endswith("logical") and not np.all(x.lo >= 0):
        return None
    if node.name.endswith("arithmetic") and not np.all(x.hi < 1 << (bits - 1)):
        return None
    corners = [a // (np.asarray(1, object) << np.asarray(b, object)) for a in (x.lo, x.hi) for b in (s.lo, s.hi)]
    return result(node, lesser(corners[0], corners[1]), greater(corners[2], corners[3]), operands)


ARITHMETIC: Mapping[str, Transfer] = {
    names.CONVERT: _convert,
    names.ADD: _add,
    names.SUBTRACT: _subtract,
    names.MULTIPLY: _multiply,
    names.DIVIDE: _divide,
    names.NEGATE: _negate,
    names.ABS: _abs,
    names.SIGN: _sign,
    names.CLAMP: _clamp,
    names.MINIMUM: _minimum,
    names.MAXIMUM: _maximum,
    names.REMAINDER: _remainder,
    names.POPCNT: _popcnt,
    names.COUNT_LEADING_ZEROS: _leading_zeros,
    names.SHIFT_LEFT: _shift_left,
    names.SHIFT_RIGHT_ARITHMETIC: _shift_right,
    names.SHIFT_RIGHT_LOGICAL: _shift_right,
}
