"""Ops that need a form of their own on carriers: quotients of unsigned integers, bit counts, shifts, conversions."""

from collections.abc import Callable, Mapping, Sequence

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.types.carried.carrier import Carrier, Carrying, Form
from hlo_lower.ops import names

Written = Callable[[Carrying, Carrier, Sequence[Value]], Value]
"""A form of an op: on a carrier, of operands that are carried; its result is in the range of the type."""


# --- unsigned integers in signed ones of the same bits ---


def half_of(c: Carrying, x: Value) -> Value:
    """Half of an unsigned number, rounded down: it has no sign bit."""
    bits = x.element.bits
    if c.takes("shift_right_logical", x.element_type):
        return c.do(names.SHIFT_RIGHT_LOGICAL, x, 1)
    is_large = c.holds(x, "LT", 0)
    small = c.choose(is_large, c.do("add", x, int(x.element.least)), x)
    half = c.do("divide", small, 2)
    return c.choose(is_large, c.do("add", half, 1 << bits - 2), half)


def _not_below(c: Carrying, left: Value, right: Value) -> Value:
    return c.holds(c.flip(left), "GE", c.flip(right))


def unsigned_divide(c: Carrying, _carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The quotient of unsigned numbers, by signed ones.

        d >= 2^(w-1):   1 where x >= d, else 0
        else            q = 2 (x / 2 / d);   q + 1 where x - q d >= d, else q
        d known, even:  x / 2 / (d / 2)

    Exact: twice the quotient of the half is the quotient or one less, so that the rest is below 2 d, below 2^w.
    By 0 the signed quotient is -1, q is -2, the rest is not below 0: -1, all ones, as XLA gives. Of an even divisor the
    quotient of the halves, both rounded down, is the quotient.
    """
    x, d = operands
    known = d.repeated_integer
    if known is not None and known > 0 and known % 2 == 0:
        return c.divide(half_of(c, x), known // 2) if known > 2 else half_of(c, x)
    q = c.divide(half_of(c, x), d)
    q = c.add(q, q)
    rest = c.subtract(x, c.multiply(q, d))
    quotient = c.choose(_not_below(c, rest, d), c.add(q, 1), q)
    if _is_small_constant(d):
        return quotient
    at_most_one = c.choose(_not_below(c, x, d), 1, c.number(0, x))
    return c.choose(c.holds(d, "LT", 0), at_most_one, quotient)


def _is_small_constant(d: Value) -> bool:
    values = d.constant()
    return values is not None and bool((values >= 0).all())


def unsigned_remainder(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """x - (x / d) d modulo 2^w; by 0 x itself."""
    x, d = operands
    return c.subtract(x, c.multiply(unsigned_divide(c, carrier, operands), d))


def is_other_than_zero(c: Carrying, _carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The sign of an unsigned number: 1, or 0 of 0."""
    return c.choose(c.holds(operands[0], "NE", 0), 1, c.number(0, operands[0]))


# --- narrow integers in wider ones ---


def _by_zeros(c: Carrying, carrier: Carrier, x: Value) -> Value:
    """A number extended by zeros: its bits as an unsigned number."""
    return c.settle(x, _other_sign(carrier.before)) if element_type(carrier.before).is_signed else x


def _by_sign(c: Carrying, carrier: Carrier, x: Value) -> Value:
    """A number extended by its top bit: its bits as a signed number."""
    return x if element_type(carrier.before).is_signed else c.settle(x, _other_sign(carrier.before))


def _other_sign(element: str) -> str:
    if element == "i1":
        raise DoesNotApply("a predicate has no sign")
    declared = element_type(element)
    return declared.signed_type if declared.is_unsigned else declared.unsigned_type


def shift_in_zeros(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The number extended by zeros, shifted; of a signed type it is settled, as a shift by 0 leaves its top bit."""
    moved = c.build.elementwise("shift_right_logical", _by_zeros(c, carrier, operands[0]), operands[1])
    return c.settle(moved, carrier.before) if element_type(carrier.before).is_signed else moved


def shift_in_signs(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The number extended by its top bit, shifted; of an unsigned type it is settled."""
    moved = c.build.elementwise("shift_right_arithmetic", _by_sign(c, carrier, operands[0]), operands[1])
    return moved if element_type(carrier.before).is_signed else c.settle(moved, carrier.before)


def count_ones(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The ones of the number extended by zeros."""
    return c.build.elementwise(names.POPCNT, _by_zeros(c, carrier, operands[0]))


def count_zeros(c: Carrying, carrier: Carrier, operands: Sequence[Value]) -> Value:
    """The leading zeros of the number extended by zeros, less those that extend it."""
    counted = c.build.elementwise("count_leading_zeros", _by_zeros(c, carrier, operands[0]))
    return c.do("subtract", counted, element_type(carrier.after).bits - element_type(carrier.before).bits)


ON_SIGNED: Mapping[str, Written] = {
    names.DIVIDE: unsigned_divide,
    names.REMAINDER: unsigned_remainder,
    names.SIGN: is_other_than_zero,
}
"""Unsigned integers in signed ones."""

ON_WIDER: Mapping[str, Written] = {
    names.SHIFT_RIGHT_LOGICAL: shift_in_zeros,
    names.SHIFT_RIGHT_ARITHMETIC: shift_in_signs,
    names.POPCNT: count_ones,
    names.COUNT_LEADING_ZEROS: count_zeros,
}
"""Narrow integers in wider ones."""


# --- conversions ---


def convert_carried(c: Carrying, node: Node, x: Value) -> tuple[Value, bool]:
    """A `stablehlo.convert` on carriers.

    Args:
      c: builds.
      node: the conversion.
      x: its operand, on its carrier where that is carried.

    Returns:
      The result, on its carrier where that is carried, and whether it is a number of its type.
    """
    before, after = node.operand(0).element_type, node.result().element_type
    given, wanted = c.scheme.get(before), c.scheme.get(after)
    if wanted is None:
        return _plain(c, x, given, after), True
    if after == "i1":
        return c.choose(c.holds(x, "NE", 0), 1, c.number(0, _like(c, x, wanted.after))), True
    if wanted.form is Form.FLOAT:
        return _plain(c, x, given, wanted.after), False
    if element_type(before).is_float:
        return _of_float(c, x, wanted), True
    if wanted.form is Form.SIGNED or before == "i1":
        return _plain(c, x, given, wanted.after), True
    return c.settle(_plain(c, x, given, wanted.after), after), True


def _like(c: Carrying, x: Value, element: str) -> Value:
    """A constant of another element type and the same shape, to choose the type by."""
    if not x.is_static:
        raise DoesNotApply("of dynamic shape")
    return c.build.constant(0, x.static_shape, element)


def _plain(c: Carrying, x: Value, given: Carrier | None, element: str) -> Value:
    """A number in another type that is not carried: modulo 2^w in an integer type, rounded once in a float."""
    if element == "i1":
        return c.holds(x, "NE", 0)
    if given is None or given.form is not Form.SIGNED:
        return c.build.convert(x, element)
    if element_type(element).is_float:
        return _float_of_unsigned(c, x, element)
    if element_type(element).bits <= x.element.bits:
        return c.build.convert(x, element)
    wide = c.build.convert(x, element)
    return c.choose(c.holds(x, "LT", 0), c.do("add", wide, 1 << x.element.bits), wide)


def _float_of_unsigned(c: Carrying, x: Value, element: str) -> Value:
    """An unsigned number as a float: its upper and its lower half are exact ones, their sum is rounded once.

    So it is in f32 and f64, whose precision is that of half a number at least; a narrower float is made of f32, which
    holds each number that is in its range.
    """
    bits = x.element.bits
    if element not in ("f32", "f64") or bits > 32:
        if bits > 32:
            raise DoesNotApply("an unsigned integer of 64 bits is not rounded to a float")
        return c.build.convert(_float_of_unsigned(c, x, "f32"), element)
    if bits < 32:
        raise DoesNotApply("a narrow integer is converted in a wider one")
    unit = 1 << bits // 2
    upper = c.divide(half_of(c, x), unit // 2)
    lower = c.subtract(x, c.multiply(upper, unit))
    high, low = c.build.convert(upper, element), c.build.convert(lower, element)
    return c.add(c.multiply(high, unit), low)


def _of_float(c: Carrying, x: Value, wanted: Carrier) -> Value:
    """A float cut to an integer, on the carrier: the nearest one of the type, and 0 of NaN, as XLA gives."""
    if wanted.form is Form.WIDER:
        return c.saturate(c.build.convert(x, wanted.after), wanted.before)
    if x.element_type not in ("f32", "f64"):
        x = c.build.convert(x, "f32")
    bits = element_type(wanted.after).bits
    is_large = c.holds(x, "GE", 1 << bits - 1)
    beyond = c.flip(c.build.convert(c.subtract(x, 1 << bits - 1), wanted.after))
    small = c.build.convert(c.maximum(x, 0), wanted.after)
    return c.choose(is_large, beyond, small)


def clamped_index(c: Carrying, x: Value, given: Carrier) -> Value:
    """An index on its carrier, to be clamped into a dim: of an unsigned one beyond the carrier the greatest."""
    if given.form is Form.SIGNED:
        return c.choose(c.holds(x, "LT", 0), int(x.element.most), x)
    return x
