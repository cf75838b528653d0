"""Transfer functions: the interval of an operation's result from the intervals of its operands.

One function per op of the chains that produce indices. An op without one says nothing, and its result may be anything
that its type allows. All functions are sound for wrap-around: `interval.wrap_interval` widens what may leave the type.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.facts.ranges.interval import Interval, bounds_dtype, greater, lesser, pick, wrap_interval
from hlo_lower.facts.values.evidence import Evidence, merge, plain_name
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMPARISONS, OPS

Transfer = Callable[[Node, Sequence[Interval]], Interval | None]


def result(node: Node, lo: Any, hi: Any, operands: Sequence[Interval], step: Cause | None = None) -> Interval:
    tensor = node.result().tensor_type
    assert tensor is not None
    shape = cast(tuple[int, ...], tensor.shape)
    return wrap_interval(shape, tensor.element_name, lo, hi, evidence_of(node, operands, step))


def evidence_of(node: Node, operands: Sequence[Interval], step: Cause | None = None) -> Evidence | None:
    """What the operands rest on; with a step of its own, that on top."""
    parents = merge(tuple(o.evidence for o in operands))
    if step is not None:
        return Evidence.at(node, step, parents)
    if len(parents) > 1:
        return Evidence.at(node, Code.OPERATION(plain_name(node.name)), parents)
    return parents[0] if parents else None


# --- comparisons, logic and choice ---


def compare_outcome(direction: str, a: Interval, b: Interval) -> tuple[Any, Any]:
    """Arrays of booleans: where the comparison is surely true, and where it may be true."""
    if direction in ("LT", "GE"):
        sure, may = a.hi < b.lo, a.lo < b.hi
    elif direction in ("LE", "GT"):
        sure, may = a.hi <= b.lo, a.lo <= b.hi
    else:
        sure, may = (a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo), (a.lo <= b.hi) & (b.lo <= a.hi)
    return (~may, ~sure) if direction in ("GE", "GT", "NE") else (sure, may)


def comparison_direction(node: Node) -> str:
    """The direction of a `stablehlo.compare`: EQ, NE, GE, GT, LE or LT."""
    return mlir.enum_value(node.attribute("comparison_direction"))


def comparison_of(node: Node) -> Callable[..., Any]:
    """The NumPy function of a `stablehlo.compare`; on floats it is compare_type FLOAT, which is IEEE 754's."""
    return COMPARISONS[comparison_direction(node)]


def _compare(node: Node, operands: Sequence[Interval]) -> Interval:
    sure, may = compare_outcome(comparison_direction(node), operands[0], operands[1])
    return result(node, np.asarray(sure).astype(np.int64), np.asarray(may).astype(np.int64), operands)


def both(node: Node, operands: Sequence[Interval]) -> Interval:
    """`and` of booleans, which is also their product."""
    a, b = operands
    return result(node, a.lo & b.lo, a.hi & b.hi, operands)


def _and(node: Node, operands: Sequence[Interval]) -> Interval | None:
    a, b = operands
    if a.element_type == "i1":
        return both(node, operands)
    # x & m with m >= 0 is in [0, m]: the mask of a power of two.
    masks = [m for m in (a, b) if np.all(m.lo >= 0)]
    if not masks:
        return None
    hi = masks[0].hi if len(masks) == 1 else lesser(masks[0].hi, masks[1].hi)
    return result(node, np.zeros_like(hi), hi, operands, Code.MASKED())


def either(node: Node, operands: Sequence[Interval]) -> Interval:
    """`or`, which is also the sum of booleans."""
    a, b = operands
    if a.element_type == "i1":
        return result(node, a.lo | b.lo, a.hi | b.hi, operands)
    return _below_power(node, a, b, at_least_either=True)


def _xor(node: Node, operands: Sequence[Interval]) -> Interval:
    """Of booleans: whether they differ."""
    a, b = operands
    if a.element_type == "i1":
        known = (a.lo == a.hi) & (b.lo == b.hi)
        return result(node, pick(known, a.lo ^ b.lo, 0), pick(known, a.lo ^ b.lo, 1), operands)
    return _below_power(node, a, b, at_least_either=False)


def _below_power(node: Node, a: Interval, b: Interval, *, at_least_either: bool) -> Interval:
    """`or` and `xor` of numbers that are not negative set no bit above their highest one; `or` clears none."""
    if not (np.all(a.lo >= 0) and np.all(b.lo >= 0)):
        return Interval.of_type(node.result().static_shape, a.element_type)
    most = (1 << max(a.hull()[1].bit_length(), b.hull()[1].bit_length())) - 1
    lo = greater(a.lo, b.lo) if at_least_either else np.zeros_like(a.lo)
    return result(node, lo, np.full_like(lo, most), (a, b))


def _not(node: Node, operands: Sequence[Interval]) -> Interval:
    a = operands[0]
    if a.element_type == "i1":
        return result(node, 1 - a.hi, 1 - a.lo, operands)
    # All bits turned round: -1 - x, or 2^n - 1 - x for an unsigned x.
    ones = -1 if element_type(a.element_type).is_signed else int(element_type(a.element_type).most)
    return result(node, ones - a.hi, ones - a.lo, operands)


def scalar_like(scalar: Interval, like: Interval) -> Interval:
    """A scalar's interval with the rank of another, to be compared with it element by element."""
    ones = (1,) * len(like.shape)
    return Interval(like.shape, scalar.element_type, scalar.lo.reshape(ones), scalar.hi.reshape(ones), scalar.evidence)


def choose(node: Node, predicate: Interval, on_true: Interval, on_false: Interval) -> Interval:
    """The interval of a `select` whose branches are known."""
    if len(predicate.shape) != len(on_true.shape):
        predicate = scalar_like(predicate, on_true)
    always, never = predicate.lo == 1, predicate.hi == 0
    lo = pick(always, on_true.lo, pick(never, on_false.lo, lesser(on_true.lo, on_false.lo)))
    hi = pick(always, on_true.hi, pick(never, on_false.hi, greater(on_true.hi, on_false.hi)))
    return result(node, lo, hi, (predicate, on_true, on_false))


BOOLEANS: Mapping[str, Transfer] = {
    names.COMPARE: _compare,
    names.AND: _and,
    names.OR: either,
    names.XOR: _xor,
    names.NOT: _not,
    names.SELECT: lambda node, operands: choose(node, *operands),
}


# --- ops that move elements: the bounds move as the elements do ---


def _constant(node: Node, _: Sequence[Interval]) -> Interval | None:
    values = node.constant()
    if values is None:
        return None
    return Interval.exactly(values, node.result().element_type)


def _iota(node: Node, _: Sequence[Interval]) -> Interval:
    value, dim = node.result(), node.integer("iota_dimension")
    size = value.static_shape[dim]
    shape = [1] * len(value.shape)
    shape[dim] = size
    bounds = np.arange(size).astype(bounds_dtype(value.element_type)).reshape(shape)
    low, high = type_range(value.element_type) or (0, 0)
    if size - 1 > high:  # it wraps around
        bounds = (bounds - low) % (high - low + 1) + low
    evidence = Evidence.at(node, Code.IOTA(size - 1))
    return Interval(value.static_shape, value.element_type, bounds, bounds, evidence)


def spread(node: Node, array: Any) -> Any:
    """The operand of a `broadcast_in_dim` at its result's rank, of size 1 along the dims that are new."""
    dims, sizes = node.integers("broadcast_dimensions"), [1] * len(node.result().shape)
    for i, dim in enumerate(dims):
        sizes[dim] = array.shape[i]
    return array.transpose(sorted(range(len(dims)), key=lambda i: dims[i])).reshape(sizes)


def _broadcast_in_dim(node: Node, operands: Sequence[Interval]) -> Interval:
    return result(node, spread(node, operands[0].lo), spread(node, operands[0].hi), operands)


def _reshape(node: Node, operands: Sequence[Interval]) -> Interval:
    operand, shape = operands[0], node.result().static_shape
    if operand.lo.size == 1 and operand.hi.size == 1:
        ones = (1,) * len(shape)
        return result(node, operand.lo.reshape(ones), operand.hi.reshape(ones), operands)
    lo, hi = operand.full()
    return result(node, lo.reshape(shape), hi.reshape(shape), operands)


def _transpose(node: Node, operands: Sequence[Interval]) -> Interval:
    permutation = node.integers("permutation")
    return result(node, operands[0].lo.transpose(permutation), operands[0].hi.transpose(permutation), operands)


def _slice(node: Node, operands: Sequence[Interval]) -> Interval:
    bounds = zip(node.integers("start_indices"), node.integers("limit_indices"), node.integers("strides"), strict=True)
    index = tuple(slice(*b) for b in bounds)

    def cut(array: Any) -> Any:
        return array[tuple(i if size != 1 else slice(None) for i, size in zip(index, array.shape, strict=True))]

    # A dim that is kept at size 1 is uniform: any slice of it is the same, an empty one is never read.
    return result(node, cut(operands[0].lo), cut(operands[0].hi), operands)


def _concatenate(node: Node, operands: Sequence[Interval]) -> Interval:
    dim = node.integer("dimension")
    lows, highs = zip(*(operand.full() for operand in operands), strict=True)
    return result(node, np.concatenate(lows, dim), np.concatenate(highs, dim), operands)


def _reverse(node: Node, operands: Sequence[Interval]) -> Interval:
    dims = node.integers("dimensions")
    return result(node, np.flip(operands[0].lo, dims), np.flip(operands[0].hi, dims), operands)


def _hull(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Each element of the result is some element of the first operand."""
    return _hull_of_all(node, operands[:1])


def _hull_of_all(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Each element of the result is an element of one of the operands."""
    parts = [o for o in operands if o.lo.size]
    if not parts:
        return None
    dtype = bounds_dtype(parts[0].element_type)
    low, high = min(o.hull()[0] for o in parts), max(o.hull()[1] for o in parts)
    ones = (1,) * len(node.result().shape)
    return result(node, np.full(ones, low, dtype), np.full(ones, high, dtype), operands)


PLACES: Mapping[str, Transfer] = {
    names.CONSTANT: _constant,
    names.IOTA: _iota,
    names.BROADCAST_IN_DIM: _broadcast_in_dim,
    names.RESHAPE: _reshape,
    names.TRANSPOSE: _transpose,
    names.SLICE: _slice,
    names.CONCATENATE: _concatenate,
    names.REVERSE: _reverse,
    names.DYNAMIC_SLICE: _hull,
    names.GATHER: _hull,
    names.PAD: _hull_of_all,
    names.DYNAMIC_UPDATE_SLICE: _hull_of_all,
}


# --- integer arithmetic: a result that may leave its type may be anything in it (`wrap_interval`) ---


def _convert(node: Node, operands: Sequence[Interval]) -> Interval | None:
    operand, element_type = operands[0], node.result().element_type
    if type_range(element_type) is None:
        return None
    if element_type == "i1":  # convert to i1 is "not equal to zero"
        zero_possible, zero_only = (operand.lo <= 0) & (operand.hi >= 0), (operand.lo == 0) & (operand.hi == 0)
        return result(node, (~zero_possible).astype(np.int64), (~zero_only).astype(np.int64), operands)
    return result(node, operand.lo, operand.hi, operands)


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
    return result(node, lo, hi, operands)


def _negate(node: Node, operands: Sequence[Interval]) -> Interval:
    return result(node, -operands[0].hi, -operands[0].lo, operands)


ASSUMED = "hlo_lower.assumed"
"""The attribute of a clamp of indices that is assumed to change nothing: the greatest start of each component."""


def _clamp(node: Node, operands: Sequence[Interval]) -> Interval:
    low, x, high = operands
    low, high = (scalar_like(b, x) if len(b.shape) != len(x.shape) else b for b in (low, high))
    lo = lesser(greater(x.lo, low.lo), high.lo)
    hi = lesser(greater(x.hi, low.hi), high.hi)
    told = result(node, lo, hi, operands)
    code = Code.CLAMPED if node.attribute(ASSUMED) is None else Code.ASSUMED
    return told.because(evidence_of(node, operands, code(*told.hull())))


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
    left = x.lo - d.lo * _trunc_divide(x.lo, d.lo)
    lo, hi = (pick(known, left, pick(same, bound, found)) for bound, found in ((x.lo, lo), (x.hi, hi)))
    return result(node, lo, hi, operands, Code.REMAINDER(int(np.max(limit)) + 1 if np.size(limit) else 0))


def _divide(node: Node, operands: Sequence[Interval]) -> Interval | None:
    """Integer division rounds towards zero; for a positive divisor it grows with the dividend."""
    x, d = operands
    if not np.all(d.lo > 0):
        return None
    corners = [_trunc_divide(a, b) for a in (x.lo, x.hi) for b in (d.lo, d.hi)]
    return result(node, lesser(corners[0], corners[1]), greater(corners[2], corners[3]), operands)


def _trunc_divide(a: Any, b: Any) -> Any:
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
    return result(node, lesser(corners[0], corners[1]), greater(corners[2], corners[3]), operands)


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


TRANSFER: Mapping[str, Transfer] = {**PLACES, **ARITHMETIC, **BOOLEANS}
"""Only the operands that have integer elements are asked for; a transfer whose op has others is not called."""

ELEMENTWISE = frozenset({*ARITHMETIC, *BOOLEANS})
"""Those whose element i depends on element i of each operand alone (a scalar clamp bound or predicate aside)."""

LEADING_OPERANDS: Mapping[str, int] = {name: len(op.moved) for name, op in OPS.items() if op.moved}
"""How many operands say what the elements are, for ops whose others only say where."""
