"""Elementwise ops of integers, of any numbers, and of the bits of floats, out of plainer ones, bit for bit."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from hlo_lower.base.element_types import ElementType
from hlo_lower.base.registry import RuleList, When
from hlo_lower.ir.mlir import is_splat
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import of_elements, on_each
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.lowering.types.carried.carrier import MARK, Form, carriers_of
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.on_carriers import lowered
from hlo_lower.ops.names import BROADCAST_IN_DIM, CONSTANT

INTEGERS = {Elements.SIGNED, Elements.UNSIGNED}

rules = RuleList()


@rules.lowers(PLAIN, named={PlainOp.CLAMP}, form="minimum(maximum(x, low), high)")
def clamp_to_minimum(op: PlainLowering) -> Sequence[Value]:
    """Write it out. Equal: it is the specification's definition; of NaN both are NaN."""
    low, x, high = op.node.operands
    low, high = (op.build.broadcast(v, x.static_shape) if v.shape == () else v for v in (low, high))
    return [op.build.minimum(op.build.maximum(x, low), high)]


@rules.lowers(PLAIN, named={PlainOp.SIGN}, elements={Elements.SIGNED}, form="1 above 0, -1 below, else 0")
@of_elements
def sign_to_select(x: Array) -> Array:
    """Compare with zero. Equal: that is what the sign is."""
    return jnp.where(x > 0, 1, jnp.where(x < 0, -1, _number(x, 0)))


@rules.lowers(PLAIN, named={PlainOp.POPCNT}, elements=INTEGERS, form="sums of bits, then of pairs, of fours, ...")
@of_elements
def popcnt_to_sums(x: Array) -> Array:
    """Add neighbouring bits, then neighbouring pairs, and so on.

        x - ((x >> 1) & 0x55);  (x & 0x33) + ((x >> 2) & 0x33);  (x + (x >> 4)) & 0x0f

    Equal: each step holds the counts of fields of twice as many bits, which have room for them.
    """
    return _ones(x)


def _ones(x: Array) -> Array:
    """The number of bits that are 1."""
    twos, fours, eights = (np.frombuffer(bytes([byte]) * x.dtype.itemsize, x.dtype)[0] for byte in b"\x55\x33\x0f")
    x = x - (_right(x, 1) & twos)
    x = (x & fours) + (_right(x, 2) & fours)
    x, bits = (x + _right(x, 4)) & eights, 8
    while bits < _width(x):
        x, bits = x + _right(x, bits), 2 * bits
    return x & _number(x, 0xFF) if bits > 8 else x


@rules.lowers(PLAIN, named={PlainOp.COUNT_LEADING_ZEROS}, elements=INTEGERS, form="the zeros left of the highest bit")
@of_elements
def count_leading_zeros_to_sums(x: Array) -> Array:
    """Fill all bits below the highest one, and count those that are 0.

        x |= x >> 1;  x |= x >> 2;  x |= x >> 4;  ...;  popcnt(~x)

    Equal: what is 0 then is left of the highest bit; of 0 that is all bits.
    """
    bits = 1
    while bits < _width(x):
        x, bits = x | _right(x, bits), 2 * bits
    return _ones(~x)


def _width(x: Array) -> int:
    """Bits of each."""
    return 8 * x.dtype.itemsize


def _number(x: Array, value: int) -> Any:
    """A number of the same type, of more bits than that has the low ones."""
    return np.uint64(value % (1 << _width(x))).astype(x.dtype)


def _right(x: Array, bits: int) -> Array:
    return lax.shift_right_logical(x, _number(x, bits))


# --- shifts ---


@rules.lowers(PLAIN, named={PlainOp.SHIFT_LEFT}, elements=INTEGERS, form="x * 2^s, 0 where s is no bit's number")
def shift_left_to_multiply(op: PlainLowering) -> Sequence[Value]:
    """Multiply by the power of two.

    Equal: products wrap. Shifting by as many bits as there are, or by more, gives 0, as StableHLO has it; a negative
    number is a large one.
    """
    return on_each(op.build, _times, *op.node.operands, known=_known(op.node.operand(1)))


def _times(x: Array, s: Array, *, known: int | None) -> Array:
    return x * _power(s, 0, known)


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.UNSIGNED}, form="x / 2^s")
def shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two. Equal: unsigned division rounds down; where s is no bit's number, 0 is chosen."""
    return on_each(op.build, _divided, *op.node.operands, known=_known(op.node.operand(1)))


def _divided(x: Array, s: Array, *, known: int | None) -> Array:
    return jnp.where(s < _width(x), lax.div(x, _power(s, 1, known)), 0)


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT}, elements={Elements.SIGNED}, form="x / 2^s, rounded down")
def shift_right_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two, of negative numbers their complement.

        x < 0 ? -1 - (-1 - x) / 2^s : x / 2^s

    Equal: -1 - x is not negative, so both divisions round down, and nothing overflows. From the highest bit on, which
    has no positive power, all bits are the sign's.
    """
    return on_each(op.build, _down, *op.node.operands, known=_known(op.node.operand(1)))


def _down(x: Array, s: Array, *, known: int | None) -> Array:
    power = _power(s, 1, known)
    found = jnp.where(x < 0, -1 - lax.div(-1 - x, power), lax.div(x, power))
    return jnp.where((s >= 0) & (s < _width(x) - 1), found, jnp.where(x < 0, -1, _number(x, 0)))


@rules.lowers(
    PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.SIGNED}, form="x / 2^s, rounded down, high bits 0"
)
def signed_shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Shift the sign in, and take it away again.

        (x < 0 ? x shifted with its sign + 2^(width - s) : x / 2^s)

    Equal: of a negative number the s high bits are 1, and adding 2^(width - s) makes them 0 and wraps.
    """
    return on_each(op.build, _without_sign, *op.node.operands, known=_known(op.node.operand(1)))


def _without_sign(x: Array, s: Array, *, known: int | None) -> Array:
    last, shifted = _width(x) - 1, _down(x, s, known=known)
    # 2^(width - s) as -2^(width - 1 - s) twice, which wraps to 0 for s = 0.
    gap = _power(last - s, 0, None if known is None else last - known)
    return jnp.where((s >= 0) & (s <= last), jnp.where(x < 0, shifted + gap + gap, shifted), 0)


def _wide_shift(op: PlainLowering) -> Sequence[Value]:
    """A shift of 64 bits on the two halves."""
    element = op.node.result().element_type
    [halves] = (carrier for carrier in carriers_of(element) if carrier.form is Form.HALVES)
    [found] = lowered(op.node, Carrying(op.build, {element: halves}, lambda _op, _element: False))
    if found.node is not None:
        del found.node.raw.attributes[MARK]  # a note of the stage of element types, in which this is not built
    return [found]


WIDE = When("64 bits", lambda facts: facts.bits == 64)
on_halves = partial(rules.lowers, PLAIN, when=WIDE)


@on_halves(
    named={PlainOp.SHIFT_RIGHT_LOGICAL},
    elements={Elements.UNSIGNED},
    form="the lower and the upper 32 bits, shifted by products and quotients",
)
def wide_shift_right_logical_to_halves(op: PlainLowering) -> Sequence[Value]:
    """Shift the two halves of 32 bits.

        %x >> 32    ->   the upper half in the place of the lower one, and 0

    Equal: by less than 32 what leaves the upper half enters the lower one, by more that is the upper half shifted by
    the rest; what is not known is shifted by each power of two that it has. The halves are `bitcast_convert`s.
    """
    return _wide_shift(op)


@on_halves(
    named={PlainOp.SHIFT_RIGHT_LOGICAL},
    elements={Elements.SIGNED},
    form="the lower and the upper 32 bits, shifted by products and quotients",
)
def wide_signed_shift_right_logical_to_halves(op: PlainLowering) -> Sequence[Value]:
    """The same of signed integers. Equal: the shift moves in zeros, whatever the sign."""
    return _wide_shift(op)


@on_halves(
    named={PlainOp.SHIFT_RIGHT},
    elements={Elements.SIGNED},
    form="the lower and the upper 32 bits, shifted by products and quotients, the sign moved in",
)
def wide_shift_right_to_halves(op: PlainLowering) -> Sequence[Value]:
    """The same where the sign moves in. Equal: the bits that enter the upper half are its sign's."""
    return _wide_shift(op)


def _power(s: Array, otherwise: int, known: int | None) -> Any:
    """2^s for each bit's number s; else another number. Each is chosen by comparing, from powers that are constants."""
    if known is not None:
        return _number(s, 1 << known if 0 <= known < _width(s) else otherwise)
    found = _number(s, otherwise)
    for bit in range(_width(s)):
        found = lax.select(lax.eq(s, _number(s, bit)), _number(s, 1 << bit), found)
    return found


def _known(s: Value) -> int | None:
    """The one number that all elements are, where they are a constant, or are spread from one."""
    node = s.node
    while node is not None and node.name == BROADCAST_IN_DIM:
        node = node.operand(0).node
    if node is None or node.name != CONSTANT or not is_splat(node.raw):
        return None
    values = node.constant()
    return None if values is None or not values.size else int(values.reshape(-1)[0])


# --- the bits of floats ---


@rules.lowers(PLAIN, named={PlainOp.REDUCE_PRECISION}, elements={Elements.FLOAT}, form="the bits rounded to even")
def reduce_precision_to_bits(op: PlainLowering) -> Sequence[Value]:
    """Round the mantissa to even by adding to the bits, then cut the exponent.

        bits + (half - 1) + lowest kept bit, the dropped bits 0;  too large an exponent: infinity, too small: zero

    Equal, bit for bit: a carry out of the mantissa goes into the exponent, as rounding up does. NaN comes back itself.
    """
    kept = {"kept_exponent": op.node.integer("exponent_bits"), "kept": op.node.integer("mantissa_bits")}
    return on_each(op.build, _reduced, op.node.operand(0), element=op.node.result().element, **kept)


def _reduced(x: Array, *, element: ElementType, kept_exponent: int, kept: int) -> Array:
    exponent, mantissa = element.exponent, element.mantissa
    found = bits = lax.bitcast_convert_type(x, f"uint{element.bits}")
    if (dropped := mantissa - kept) > 0:
        last = _right(bits, dropped) & 1
        found = (bits + (last + ((1 << (dropped - 1)) - 1))) & _number(bits, -(1 << dropped))
    if kept_exponent < exponent:
        ones = ((1 << exponent) - 1) << mantissa
        bias, kept_bias = (1 << (exponent - 1)) - 1, (1 << (kept_exponent - 1)) - 1
        size, sign = found & ones, bits & (1 << (exponent + mantissa))
        large = jnp.where(size > ((bias + kept_bias) << mantissa), sign | ones, found)
        found = jnp.where(size <= ((bias - kept_bias) << mantissa), sign, large)
    return jnp.where(x != x, x, lax.bitcast_convert_type(found, x.dtype))
