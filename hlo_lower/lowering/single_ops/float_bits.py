"""Floats from their bits, and their bits, by arithmetic: for targets without `bitcast_convert`."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.ops import names
from hlo_lower.ops.origins import read_at_calls
from hlo_lower.ops.spec import ANY_NAN, LAYOUT

rules = RuleList()

BITS = 23
"""Of the mantissa of f32."""

BIAS = 127
UNITS = 1 << BITS
SIGN = -(1 << 31)
SIZES = tuple(1 << k for k in reversed(range(7)))
"""Powers of two that add up to each exponent of f32."""


def _check_types(floats: Value, integers: Value) -> None:
    """Check that these are f32 and integers as wide.

    Raises:
      DoesNotApply: they are others.
    """
    if floats.element_type != "f32" or integers.element.integer_bits != 32:
        raise DoesNotApply("it is for the bits of f32")


@rules.lowers(
    PLAIN,
    named={PlainOp.BITCAST_CONVERT},
    elements={Elements.FLOAT},
    when=When("every NaN may be the positive one", lambda facts: facts.has_one_nan),
    form="the exponent, found by comparing, and the mantissa as a whole number",
)
def bits_of_float_to_arithmetic(op: PlainLowering) -> Sequence[Value]:
    """Compute the bits of floats.

        m = |x|, e = 0;  for k = 64, 32, ..., 1: m >= 2^k ? (m, e) = (m / 2^k, e + k) : m < 2^(1 - k) ? (m 2^k, e - k)
        bits = (e + 127) 2^23 + (m - 1) 2^23, with the sign's bit where x < 0 or 1 / x < 0

    Equal: products with powers of two are exact, so m comes to lie from 1 up to 2, and (m - 1) 2^23 is a whole number.
    Zeros, infinities and NaN are chosen. A NaN has the bits of the positive one, which it may have where it was
    computed. Subnormal numbers are what the target's arithmetic makes of them, as that may take them for 0. Costs 70
    ops.
    """
    [x], result = op.node.operands, op.node.result()
    _check_types(x, result)
    [bits] = on_each(op.build, _bits, x)
    return [op.build.convert(bits, result.element_type)]


def _bits(x: Array) -> Array:
    size = jnp.abs(x)
    m, exponent = size, jnp.int32(0)
    for k in SIZES:
        is_large = m >= 2.0**k
        m, exponent = jnp.where(is_large, m * 2.0**-k, m), jnp.where(is_large, exponent + k, exponent)
    for k in SIZES:
        is_small = m < 2.0 ** (1 - k)
        m, exponent = jnp.where(is_small, m * 2.0**k, m), jnp.where(is_small, exponent - k, exponent)
    found = (exponent + BIAS) * UNITS + jnp.floor((m - 1.0) * float(UNITS)).astype(jnp.int32)
    found = jnp.where(size < 2.0**-126, jnp.floor(size * 2.0**75 * 2.0**74).astype(jnp.int32), found)
    found = jnp.where(size == np.float32(np.inf), 255 * UNITS, found)
    signed = jnp.where((x < 0.0) | (1.0 / x < 0.0), found + SIGN, found)
    return jnp.where(x != x, 511 * (UNITS // 2), signed)


COMPUTING = ANY_NAN | {names.COMPARE, names.IS_FINITE}
"""Ops to which every NaN is one, and a subnormal number may be 0."""

MOST_READERS = 50
"""Readers that are looked at."""


def _is_computed_with(graph: Graph, value: Value) -> bool:
    """Whether all that reads floats computes with them or compares them; also once they are moved, chosen among, given
    to a function or returned by one."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().raw.uses:
            user = Node(use.owner.operation)
            if user.name in COMPUTING:
                continue
            more = read_at_calls(graph, user, use.operand_number)
            if user.name in LAYOUT or user.name == names.SELECT:
                more = [user.result()]
            if not more or len(seen) > MOST_READERS:
                return False
            pending += [one for one in more if one not in seen]
            seen.update(more)
    return True


@rules.lowers(
    PLAIN,
    named={PlainOp.BITCAST_CONVERT},
    elements={Elements.SIGNED, Elements.UNSIGNED},
    form="(1 + m / 2^23) 2^e, the power as products",
)
def float_of_bits_to_arithmetic(op: PlainLowering) -> Sequence[Value]:
    """Compute floats from their bits.

        b = bits without the sign's;  e = b / 2^23 - 127, m = b % 2^23;  r = 1 + m / 2^23
        for k = 64, 32, ..., 1: e >= k ? (r, e) = (r 2^k, e - k) : e <= -k ? (r / 2^k, e + k)

    Equal: all products with powers of two are exact. Infinities, NaN and zeros are chosen. What reads the floats
    computes with them, so the bits of a NaN are open, and subnormal numbers may count as 0. Costs 70 ops.
    """
    [given], result = op.node.operands, op.node.result()
    _check_types(result, given)
    if not _is_computed_with(op.graph, result):
        raise DoesNotApply("the bits of a NaN, or of a subnormal number, may be read later")
    return on_each(op.build, _float, op.build.convert(given, "i32"))


def _float(bits: Array) -> Array:
    size = jnp.where(bits < 0, bits - SIGN, bits)
    exponent, mantissa = lax.div(size, np.int32(UNITS)), lax.rem(size, np.int32(UNITS))
    part = mantissa.astype(jnp.float32)
    found, left = 1.0 + part * (1.0 / UNITS), exponent - BIAS
    for k in SIZES:
        is_large, is_small = left >= k, left <= -k
        found = jnp.where(is_large, found * 2.0**k, jnp.where(is_small, found * 2.0**-k, found))
        left = jnp.where(is_large, left - k, jnp.where(is_small, left + k, left))
    found = jnp.where(exponent == 0, part * 2.0**-75 * 2.0**-74, found)
    endless = jnp.where(mantissa == 0, np.float32(np.inf), np.float32(np.nan))
    found = jnp.where(exponent == 255, endless, found)
    return jnp.where(bits < 0, -found, found)
