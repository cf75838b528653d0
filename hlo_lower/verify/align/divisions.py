"""Quotients of 64-bit integers that one version computes by an op and the other one on halves: written out bit by bit.

A quotient of two 64-bit numbers is beyond what a solver answers, and a long division on halves is thousands of ops that
nothing cuts. Written out on halves, the ops of its 64 steps are those of the other version:

    %q = divide %x, %d : ui64, %r = remainder %x, %d : ui64
    ->
    64 times, r from 0:   (r, x) = 2 (r, x);   where r >= d, or a bit of r was lost: r = r - d, x = x + 1

Equal: r is what is left of the bits of x that were taken from above, and is below d. So 2 r + 1 is below 2 d, and 2 r
is d or more if its upper bit is lost. The bits of the quotient enter x from below. By 0 each of them is 1, and x is
left, as XLA gives. A number with a sign is divided by its size, towards zero. By a number of 15 bits it is divided by
digits of 16 bits, and a remainder is what the quotient leaves.

The modules are run as they were given.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ops.names import DIVIDE, REMAINDER
from hlo_lower.verify.read.meanings import find_constant, maker_and_operands
from hlo_lower.verify.read.program import inline_calls

_jax: Any = jax
Array = Any
Halves = tuple[Array, Array]

STEPS = 64

WIDE = ("i64", "ui64")

WRITTEN_OUT = 4
"""Quotients of a module up to which they are written out: each is a thousand ops."""


def divisions_written_out(texts: Sequence[str]) -> list[str] | None:
    """Two versions with the 64-bit quotients that the second one computes without an op written out in the first one.

    None where it has some itself, or the first one has none, or many.
    """
    if DIVIDE not in texts[0] and REMAINDER not in texts[0]:
        return None
    context = mlir.shared_context(sum(map(len, texts)))
    with mlir.active(context):
        first, second = (mlir.parse_module(text, context) for text in texts)
        if not _divisions(first) or _divisions(second):
            return None
        inline_calls(first)
        found = _divisions(first)
        if len({tuple(op.operands) for op in found}) > WRITTEN_OUT:
            return None
        for op in found:
            mlir.put_function_instead(op, partial(FUNCTIONS[op.name], by=_small_divisor(op)))
        return [mlir.print_module(first, locations=True), texts[1]]


def _divisions(module: mlir.RawModule) -> list[mlir.RawOperation]:
    """The quotients and remainders of 64-bit integers."""
    ops, _ = mlir.find_named(module.operation, (DIVIDE, REMAINDER))
    return [op for op in ops if mlir.tensor_element_name(op.results[0].type) in WIDE]


def _small_divisor(op: mlir.RawOperation) -> int:
    """What an op divides by everywhere, without its sign, if that has 15 bits at most; else 0."""
    divisor = find_constant(op.operands[1], {}, maker_and_operands)
    if divisor is None or not divisor.size or np.any(divisor != divisor.flat[0]):
        return 0
    size = abs(int(divisor.flat[0]))
    return size if size < 1 << 15 else 0


def _quotient(x: Array, d: Array, *, by: int) -> Array:
    lax = _jax.lax
    dividend, divisor = _halves_of(x), _halves_of(d)
    if x.dtype == "uint64":
        return _joined(_divided(dividend, divisor, by), x)
    found = _divided(_size(dividend), _size(divisor), by)
    zero, one = lax.full_like(divisor[0], 0), lax.full_like(divisor[0], 1)
    signs = [lax.select(_is_negative(number[1]), -one, one) for number in (dividend, divisor)]
    found = _choose(_is_negative(lax.mul(*signs)), _negated(found), found)
    is_zero = [lax.eq(half, zero) for half in divisor]
    return _joined(_choose(lax.select(*is_zero, is_zero[0]), (-one, -one), found), x)


def _rest(x: Array, d: Array, *, by: int) -> Array:
    lax = _jax.lax
    return lax.sub(x, lax.mul(_quotient(x, d, by=by), d))


FUNCTIONS = {DIVIDE: _quotient, REMAINDER: _rest}


def _divided(x: Halves, d: Halves, by: int) -> Halves:
    if by:
        return _by_digits(x, by)
    zero = _jax.lax.full_like(x[0], 0)
    rest = zero, zero
    for _ in range(STEPS):
        x, rest = _step(x, rest, d)
    return x


def _by_digits(x: Halves, by: int) -> Halves:
    """Digits of 16 bits, the upper ones first: what is left of one, and the next one, are below 2^31."""
    lax = _jax.lax
    digits, rest = list[Array](), lax.full_like(x[0], 0)
    upper, divisor = lax.full_like(rest, 1 << 16), lax.full_like(rest, by)
    for half in (x[1], x[0]):
        above = lax.div(_half_of(half), lax.full_like(half, 1 << 15))
        for digit in (above, lax.sub(half, lax.mul(above, upper))):
            given = lax.add(lax.mul(rest, upper), digit)
            digits.append(lax.div(given, divisor))
            rest = lax.sub(given, lax.mul(digits[-1], divisor))
    high, low = (lax.add(lax.mul(digits[k], upper), digits[k + 1]) for k in (0, 2))
    return low, high


def _half_of(x: Array) -> Array:
    """Half of a number without sign."""
    lax = _jax.lax
    is_large, half = _is_negative(x), partial(lax.full_like, x)
    found = lax.div(lax.select(is_large, lax.add(x, half(-(1 << 31))), x), half(2))
    return lax.select(is_large, lax.add(found, half(1 << 30)), found)


def _halves_of(x: Array) -> Halves:
    lax = _jax.lax
    bits = lax.bitcast_convert_type(_bits(x, "int64"), "int32")
    low, high = (lax.index_in_dim(bits, which, x.ndim, keepdims=False) for which in range(2))
    return low, high


def _joined(halves: Halves, like: Array) -> Array:
    lax = _jax.lax
    parts = [lax.expand_dims(half, (like.ndim,)) for half in halves]
    return _bits(lax.bitcast_convert_type(lax.concatenate(parts, like.ndim), "int64"), like.dtype)


def _bits(x: Array, element: Any) -> Array:
    return x if x.dtype == element else _jax.lax.bitcast_convert_type(x, element)


def _choose(predicate: Array, on_true: Halves, on_false: Halves) -> Halves:
    low, high = (_jax.lax.select(predicate, *both) for both in zip(on_true, on_false, strict=True))
    return low, high


def _is_negative(half: Array) -> Array:
    return _jax.lax.le(half, _jax.lax.full_like(half, -1))


def _size(x: Halves) -> Halves:
    """Of a number with a sign, without one: of the least number 2^63."""
    return _choose(_is_negative(x[1]), _negated(x), x)


def _negated(x: Halves) -> Halves:
    zero = _jax.lax.full_like(x[0], 0)
    return _less((zero, zero), x)


def _less(x: Halves, y: Halves) -> Halves:
    lax = _jax.lax
    return lax.sub(x[0], y[0]), lax.sub(lax.sub(x[1], y[1]), _one_where(_is_below(x[0], y[0])))


def _step(x: Halves, rest: Halves, d: Halves) -> tuple[Halves, Halves]:
    """One bit of the quotient, on halves that are read without sign."""
    lax = _jax.lax
    zero, one = lax.full_like(x[0], 0), lax.full_like(x[0], 1)
    is_lost = _is_negative(rest[1])
    rest, x = _double(rest, _last_bit(x[1])), _double(x, zero)
    is_less = lax.select(lax.eq(rest[1], d[1]), _is_below(rest[0], d[0]), _is_below(rest[1], d[1]))
    less = _less(rest, d)
    found = _choose(is_lost, less, _choose(is_less, rest, less))
    bit = lax.select(is_lost, one, lax.select(is_less, zero, one))
    return (lax.add(x[0], bit), x[1]), found


def _double(x: Halves, bit: Array) -> Halves:
    lax = _jax.lax
    return lax.add(lax.add(x[0], x[0]), bit), lax.add(lax.add(x[1], x[1]), _last_bit(x[0]))


def _last_bit(half: Array) -> Array:
    return _one_where(_is_negative(half))


def _one_where(predicate: Array) -> Array:
    lax = _jax.lax
    one = lax.full(predicate.shape, 1, "int32")
    return lax.select(predicate, one, lax.full_like(one, 0))


def _is_below(x: Array, y: Array) -> Array:
    lax = _jax.lax
    end = lax.full_like(x, -(1 << 31))
    return lax.lt(lax.bitwise_xor(x, end), lax.bitwise_xor(y, end))
