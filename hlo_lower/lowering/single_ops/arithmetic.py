"""Elementwise ops of floats and integers, out of plainer ones."""

from collections.abc import Sequence
from functools import partial
from math import factorial, pi
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from hlo_lower.base.element_types import ElementType
from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import of_elements, on_each
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, Numbers, PlainLowering, PlainOp
from hlo_lower.lowering.types.carried.carrier import MARK, Carrying, Form, carriers_of
from hlo_lower.lowering.types.carried.on_carriers import lower_on_carriers

# --- elementwise ops of floats out of plainer ones ---
#
# Exact ones bit for bit, functions within a bound where it is allowed.
#
# Bounds are in units in the last place of the true result, if the consumer's own exponential, logarithm, power, sine
# and cosine are within one.


rules = RuleList()

FLOAT, BOUNDED = {Elements.FLOAT}, {Numbers.BOUNDED}


# --- exact ---


@rules.lowers(PLAIN, named={PlainOp.ROUND_AFZ}, elements=FLOAT, form="floor(|x|), one more from a half on, x's sign")
@of_elements
def round_afz_to_floor(x: Array) -> Array:
    """Round halves away from zero.

        t = floor(|x|);  r = |x| - t >= 1/2 ? t + 1 : t;  r == |x| ? x : (x < 0 ? -r : r)

    Equal, bit for bit: |x| - t is exact, so nothing is rounded but by what is asked. What is whole already comes back
    itself: zeros of both signs and infinities.
    """
    size = jnp.abs(x)
    low = jnp.floor(size)
    rest, above = size - low, low + 1.0
    return _with_sign(x, size, jnp.where(rest >= 0.5, above, low))


@rules.lowers(
    PLAIN, named={PlainOp.ROUND_EVEN}, elements=FLOAT, form="floor(|x|), a half to the even neighbour, x's sign"
)
@of_elements
def round_even_to_floor(x: Array) -> Array:
    """Round halves to even.

        t = floor(|x|);  h = |x| - t;  up = h > 1/2 or (h == 1/2 and t - 2 floor(t / 2) == 1)

    Equal, bit for bit: t / 2 and the differences are exact.
    """
    size = jnp.abs(x)
    low = jnp.floor(size)
    rest, above, half = size - low, low + 1.0, jnp.floor(low * 0.5)
    tied = jnp.where(low - (half + half) == 1.0, above, low)
    return _with_sign(x, size, jnp.where(rest > 0.5, above, jnp.where(rest == 0.5, tied, low)))


def _with_sign(x: Array, size: Array, found: Array) -> Array:
    """What was found of the size of a number, with its sign; the number itself where it is that."""
    return jnp.where(found == size, x, jnp.where(x < 0.0, -found, found))


@rules.lowers(PLAIN, named={PlainOp.IS_FINITE}, elements=FLOAT, form="x - x == 0")
@of_elements
def is_finite_to_subtract(x: Array) -> Array:
    """Subtract it from itself. Equal: that is 0 for numbers, NaN for NaN and infinities, and NaN is not equal to 0."""
    return x - x == 0.0


@rules.lowers(PLAIN, named={PlainOp.SIGN}, elements=FLOAT, form="1 above 0, -1 below, else x")
@of_elements
def float_sign_to_select(x: Array) -> Array:
    """Compare with zero. Equal: zeros of both signs and NaN come back themselves."""
    return jnp.where(x > 0.0, 1.0, jnp.where(x < 0.0, -1.0, x))


# --- within a bound ---


@rules.lowers(PLAIN, named={PlainOp.LOGISTIC}, elements=FLOAT, numbers=BOUNDED, form="1 / (1 + exp(-x)), within 4 ulp")
@of_elements
def logistic_to_exponential(x: Array) -> Array:
    """Write it out. Within 4 units in the last place; where exp(-x) overflows, 0."""
    return 1.0 / (jnp.exp(-x) + 1.0)


@rules.lowers(PLAIN, named={PlainOp.TAN}, elements=FLOAT, numbers=BOUNDED, form="sin / cos, within 4 ulp")
@of_elements
def tan_to_sine(x: Array) -> Array:
    """Divide the sine by the cosine. Within 4 units in the last place."""
    return jnp.sin(x) / jnp.cos(x)


@rules.lowers(
    PLAIN, named={PlainOp.LOG1P}, elements=FLOAT, numbers=BOUNDED, form="log(1 + x), near 0 a series, within 4 ulp"
)
@of_elements
def log1p_to_log(x: Array) -> Array:
    """Near zero the series of the inverse hyperbolic tangent, elsewhere the logarithm.

        |x| < 0.29 ? 2 s (1 + s^2 / 3 + s^4 / 5 + ...), s = x / (2 + x) : log(1 + x)

    Within 4 units in the last place: there |s| is below 0.171, so what is left out is less than half a unit; elsewhere
    the rounding of 1 + x is that of a logarithm of 0.25 and more. (That log(u) x / (u - 1) corrects for the rounding is
    not used: XLA makes log(1 + x) exact, and then it does the opposite.)
    """
    if x.dtype == jnp.float64:
        raise DoesNotApply("its series is for f32 and narrower types")
    s = x / (x + 2.0)
    square = s * s
    series = _polynomial(square, [2.0 / (2 * k + 1) for k in reversed(range(1, 8))])
    near = series * square * s + s + s
    return jnp.where(jnp.abs(x) < 0.29, near, jnp.log(x + 1.0))


@rules.lowers(
    PLAIN, named={PlainOp.EXPM1}, elements=FLOAT, numbers=BOUNDED, form="exp(x) - 1, near 0 a series, within 6 ulp"
)
@of_elements
def expm1_to_exponential(x: Array) -> Array:
    """Near zero the series, elsewhere the exponential less one.

        |x| < 0.35 ? x + x^2 (1 / 2! + x / 3! + x^2 / 4! + ...) : exp(x) - 1

    Within 6 units in the last place: what is left out of the series is less than half a unit there, and elsewhere the
    difference is at least 0.29, so that the exponential's rounding is at most four of its units.
    """
    terms = [1.0 / factorial(k) for k in reversed(range(2, (14 if x.dtype == jnp.float64 else 8) + 2))]
    near = x + x * x * _polynomial(x, terms)
    return jnp.where(x == 0.0, x, jnp.where(jnp.abs(x) < 0.35, near, jnp.exp(x) - 1.0))


def _polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """By Horner's scheme, the highest coefficient first."""
    found = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        found = (found + coefficient) * x
    return found + coefficients[-1]


@rules.lowers(PLAIN, named={PlainOp.CBRT}, elements=FLOAT, numbers=BOUNDED, form="|x| ^ (1/3), a step, within 4 ulp")
@of_elements
def cbrt_to_power(x: Array) -> Array:
    """Take the power, and one step of Newton's method.

        y = |x| ^ (1/3);  y - (y - |x| / y^2) / 3;  x's sign

    Within 4 units in the last place. Zeros and infinities come back themselves.
    """
    size = jnp.abs(x)
    y = size ** (1.0 / 3.0)
    better = y - (y - size / y / y) / 3.0
    signed = jnp.where(x < 0.0, -better, better)
    return jnp.where(better - better == 0.0, signed, x)


ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
"""Of S. Moshier's Cephes, for (atan(x) - x) / x^3 in x^2 on |x| <= tan(pi/8), the highest first."""


@rules.lowers(PLAIN, named={PlainOp.ATAN2}, elements=FLOAT, numbers=BOUNDED, form="a polynomial of y / x, within 6 ulp")
@of_elements
def atan2_to_polynomial(y: Array, x: Array) -> Array:
    """The angle of the smaller of |y| and |x| over the larger one, below pi/8 by a polynomial, and the octant.

    Within 6 units in the last place of f32: the polynomial is of f32, so wider types are no better. Signs of zeros, and
    infinities, are those of the op.
    """
    if y.dtype == jnp.float64:
        raise DoesNotApply("its polynomial is of f32")
    ay, ax = jnp.abs(y), jnp.abs(x)
    low, high = jnp.minimum(ay, ax), jnp.maximum(ay, ax)
    ratio = jnp.where(high == 0.0, 0.0, jnp.where(low == high, 1.0, low / high))
    is_far = ratio > 0.4142135623730950
    t = jnp.where(is_far, (ratio - 1.0) / (ratio + 1.0), ratio)
    square = t * t
    angle = _polynomial(square, ATAN) * square * t + t
    angle = jnp.where(is_far, angle + pi / 4, angle)
    angle = jnp.where(ay > ax, pi / 2 - angle, angle)
    # 1 / -0 is below 0, too.
    angle = jnp.where((1.0 / x < 0.0) | (x < 0.0), pi - angle, angle)
    angle = jnp.where((1.0 / y < 0.0) | (y < 0.0), -angle, angle)
    # The sum is NaN if one is NaN; so is inf - inf, which is none here.
    return jnp.where((x != x) | (y != y), x + y, angle)


# --- elementwise ops of integers, of any numbers, and of the bits of floats, out of plainer ones, bit for bit ---


INTEGERS = {Elements.SIGNED, Elements.UNSIGNED}


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
    return 8 * x.dtype.itemsize


def _number(x: Array, value: int) -> Any:
    """A number of the same type, of more bits than that has the low ones."""
    return np.uint64(value % (1 << _width(x))).astype(x.dtype)


def _right(x: Array, bits: int) -> Array:
    return lax.shift_right_logical(x, _number(x, bits))


# --- shifts ---


@rules.lowers(PLAIN, named={PlainOp.SHIFT_LEFT}, elements=INTEGERS, form="x * 2^s, 0 where s is not below the width")
def shift_left_to_multiply(op: PlainLowering) -> Sequence[Value]:
    """Multiply by the power of two.

    Equal: products wrap. Shifting by as many bits as there are, or by more, gives 0, as StableHLO has it; a negative
    number is a large one.
    """
    return on_each(op.build, _times, *op.node.operands, known=op.facts.shift)


def _times(x: Array, s: Array, *, known: int | None) -> Array:
    if known is None:
        return x * _power(s, 0)
    return x * _number(x, 1 << known) if 0 <= known < _width(x) else lax.full_like(x, 0)


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.UNSIGNED}, form="x / 2^s")
def shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two. Equal: unsigned division rounds down; where s is no bit's number, 0 is chosen."""
    return on_each(op.build, _divide_by_power, *op.node.operands, known=op.facts.shift)


def _divide_by_power(x: Array, s: Array, *, known: int | None) -> Array:
    if known is None:
        return jnp.where(s < _width(x), lax.div(x, _power(s, 1)), 0)
    return lax.div(x, _number(x, 1 << known)) if known < _width(x) else lax.full_like(x, 0)


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT}, elements={Elements.SIGNED}, form="x / 2^s, rounded down")
def shift_right_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two, of negative numbers their complement.

        x < 0 ? -1 - (-1 - x) / 2^s : x / 2^s

    Equal: -1 - x is not negative, so both divisions round down, and nothing overflows. From the highest bit on, which
    has no positive power, all bits are the sign's.
    """
    return on_each(op.build, _down, *op.node.operands, known=op.facts.shift)


def _down(x: Array, s: Array, *, known: int | None) -> Array:
    last = _width(x) - 1
    if known is not None:
        return _down_by(x, _number(x, 1 << known)) if 0 <= known < last else _signs(x)
    found = _down_by(x, _power(s, 1))
    return jnp.where((s >= 0) & (s < last), found, _signs(x))


def _down_by(x: Array, power: Any) -> Array:
    return jnp.where(x < 0, -1 - lax.div(-1 - x, power), lax.div(x, power))


def _signs(x: Array) -> Array:
    return jnp.where(x < 0, -1, _number(x, 0))


@rules.lowers(
    PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.SIGNED}, form="x / 2^s, rounded down, high bits 0"
)
def signed_shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Shift the sign in, and take it away again; where s is known, take the sign's bit off first.

        (x < 0 ? x shifted with its sign + 2^(width - s) : x / 2^s)
        s known:  (x < 0 ? x + 2^(width - 1) : x) / 2^s + (x < 0 ? 2^(width - 1 - s) : 0)

    Equal: of a negative number the s high bits are 1, and adding 2^(width - s) makes them 0 and wraps. Without the top
    bit the number is not negative, and the quotient rounds down; that bit comes to stand s places lower.
    """
    return on_each(op.build, _without_sign, *op.node.operands, known=op.facts.shift)


def _without_sign(x: Array, s: Array, *, known: int | None) -> Array:
    last = _width(x) - 1
    if known is not None:
        return _without_sign_by(x, known) if 0 <= known <= last else lax.full_like(x, 0)
    shifted = _down(x, s, known=None)
    # 2^(width - s) as -2^(width - 1 - s) twice, which wraps to 0 for s = 0.
    gap = _power(last - s, 0)
    return jnp.where((s >= 0) & (s <= last), jnp.where(x < 0, shifted + gap + gap, shifted), 0)


def _without_sign_by(x: Array, s: int) -> Array:
    last = _width(x) - 1
    if s == 0:
        return x
    sign = jnp.where(x < 0, _number(x, 1 << last - s), _number(x, 0))
    return sign if s == last else lax.div(jnp.where(x < 0, x + _number(x, 1 << last), x), _number(x, 1 << s)) + sign


def _wide_shift(op: PlainLowering) -> Sequence[Value]:
    element = op.node.result().element_type
    [halves] = (carrier for carrier in carriers_of(element) if carrier.form is Form.HALVES)
    [found] = lower_on_carriers(op.node, Carrying(op.build, {element: halves}, lambda _op, _element: False))
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


def _power(s: Array, otherwise: int) -> Any:
    """2^s for each bit's number s; else another number. Each is chosen by comparing, from powers that are constants."""
    found = _number(s, otherwise)
    for bit in range(_width(s)):
        found = lax.select(lax.eq(s, _number(s, bit)), _number(s, 1 << bit), found)
    return found


# --- the bits of floats ---


@rules.lowers(PLAIN, named={PlainOp.REDUCE_PRECISION}, elements={Elements.FLOAT}, form="the bits rounded to even")
def reduce_precision_to_bits(op: PlainLowering) -> Sequence[Value]:
    """Round the mantissa to even by adding to the bits, then cut the exponent.

        bits + (half - 1) + lowest kept bit, the dropped bits 0;  too large an exponent: infinity, too small: zero

    Equal, bit for bit: a carry out of the mantissa goes into the exponent, as rounding up does. NaN comes back itself.
    To the precision that the numbers have (`jax.checkpoint` with `dots_saveable`) nothing is rounded.
    """
    kept = {"kept_exponent": op.node.integer("exponent_bits"), "kept": op.node.integer("mantissa_bits")}
    [x], element = op.node.operands, op.node.result().element
    if kept["kept_exponent"] >= element.exponent and kept["kept"] >= element.mantissa:
        return [x]
    return on_each(op.build, _reduce_precision, x, element=element, **kept)


def _reduce_precision(x: Array, *, element: ElementType, kept_exponent: int, kept: int) -> Array:
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


# --- `stablehlo.remainder` for consumers that have none, or another one: its sign is that of the dividend ---


@rules.lowers(
    PLAIN,
    named={PlainOp.REMAINDER},
    elements={Elements.SIGNED, Elements.UNSIGNED},
    form="x - divide(x, d) * d, d never 0 or -1",
)
def remainder_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Subtract what the truncated quotient covers.

        %r = stablehlo.remainder %x, %d   ->   %x - (%x / %d) * %d

    Equal: StableHLO's integer division truncates, so this is the remainder with the dividend's sign, and no product
    overflows where the quotient does not. XLA gives x for d = 0, and 0 for d = -1 also where the quotient overflows;
    consumers trap on both, so where d may be either, 1 is divided by instead, and x is chosen for 0.
    """
    return on_each(op.build, _by_divide, *op.node.operands, is_safe=op.facts.is_safe_divisor)


def _by_divide(x: Array, d: Array, *, is_safe: bool) -> Array:
    if is_safe:
        return x - lax.div(x, d) * d
    is_zero = d == 0
    safe = jnp.where(is_zero, 1, d)
    if jnp.issubdtype(d.dtype, jnp.signedinteger):
        safe = jnp.where(d == -1, 1, safe)
    return jnp.where(is_zero, x, x - lax.div(x, safe) * safe)


MOST_STEPS = 2000


@rules.lowers(
    PLAIN,
    named={PlainOp.REMAINDER},
    elements={Elements.FLOAT},
    form="subtract d * 2^k where it fits, from the highest k",
)
def remainder_to_subtractions(op: PlainLowering) -> Sequence[Value]:
    """Take the divisor away as often as it fits, in powers of two.

        r = |x|;  for k = 276, ..., 0: r = r >= |d| * 2^k ? r - |d| * 2^k : r;  the sign of x

    Equal, bit for bit but for the bits of a NaN, and for subnormal numbers where the consumer's arithmetic flushes them
    (XLA's on a CPU does): before step k, r is less than twice |d| * 2^k, so where one is taken from the other they are
    within a factor of two and the difference is exact; a power that overflows is larger than any r. Powers are doubled
    by adding, since XLA folds products with constants into one, which overflows. Zero divisors, infinite dividends and
    NaN give NaN, as 0 / 0 does. Costs four ops for each step, of which f32 has 277.
    """
    build, (x, d) = op.build, op.node.operands
    steps = (1 << x.element.exponent) - 2 + x.element.mantissa  # so often the least number can be doubled
    if steps > MOST_STEPS:
        raise DoesNotApply(f"{x.element_type} would take more than {MOST_STEPS:,} steps")
    rest, parts = build.elementwise("abs", x), [build.elementwise("abs", d)]
    while len(parts) < steps:
        parts.append(build.elementwise("add", parts[-1], parts[-1]))
    for part in reversed(parts):
        rest = build.select(build.compare(rest, "GE", part), build.subtract(rest, part), rest)
    return on_each(build, _signed_remainder, x, d, rest)


def _signed_remainder(x: Array, d: Array, rest: Array) -> Array:
    """The remainder with the sign of x, where x is finite and d is no zero and no NaN."""
    undefined = x * d / (x * d)
    signed = jnp.where(rest == 0.0, x * 0.0, jnp.where(x < 0.0, -rest, rest))
    # x - x is a NaN where x is none or infinite; |d| > 0 is false where d is 0 or none.
    return jnp.where((x - x == 0.0) & (jnp.abs(d) > 0.0), signed, undefined)
