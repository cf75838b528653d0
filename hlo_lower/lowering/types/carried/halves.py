"""Arithmetic of 64-bit integers on their halves: sums with carries, products of parts of 16 bits, order, shifts by
what is known.

A number is two signed integers of 32 bits along a last dim, the lower bits first; both are read modulo 2^32, the upper
one with the number's sign.
"""

from collections.abc import Sequence
from functools import reduce
from math import prod

from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS, element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.loops import StructuredLoop
from hlo_lower.lowering.types.carried.carrier import Carrier, Carrying, Form
from hlo_lower.lowering.types.carried.pairs import Pair, join, split
from hlo_lower.lowering.types.carried.written_ops import half_of
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING

HALF = "i32"


def _one_where(c: Carrying, predicate: Value, like: Value) -> Value:
    return c.choose(predicate, 1, c.number(0, like))


def _is_below(c: Carrying, left: Value, right: Value) -> Value:
    return c.holds(c.flip(left), "LT", c.flip(right))


def add(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The sum: the lower halves carry where their sum is below one of them."""
    low = c.add(x[0], y[0])
    carry = _one_where(c, _is_below(c, low, x[0]), low)
    return low, c.add(c.add(x[1], y[1]), carry)


def subtract(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The difference: the lower halves borrow where the first one is below the second."""
    low = c.subtract(x[0], y[0])
    borrow = _one_where(c, _is_below(c, x[0], y[0]), low)
    return low, c.subtract(c.subtract(x[1], y[1]), borrow)


def negate(c: Carrying, x: Pair) -> Pair:
    """0 less the number."""
    zero = c.number(0, x[0])
    return subtract(c, (zero, zero), x)


def multiply(c: Carrying, x: Pair, y: Pair) -> Pair:
    """The product modulo 2^64: that of the lower halves in full, and the lower bits of the mixed ones.

    With x0 = a + 2^16 b and y0 = d + 2^16 e: t = b d + (a d) / 2^16 and u = a e + (t mod 2^16) are below 2^32, and the
    upper half of x0 y0 is b e + t / 2^16 + u / 2^16.
    """
    (a, b), (d, e) = (sixteen(c, x[0]), sixteen(c, y[0]))
    low_times_low = sixteen(c, c.multiply(a, d))
    t = sixteen(c, c.add(c.multiply(b, d), low_times_low[1]))
    u = sixteen(c, c.add(c.multiply(a, e), t[0]))
    upper = c.add(c.add(c.multiply(b, e), t[1]), u[1])
    mixed = c.add(c.multiply(x[0], y[1]), c.multiply(x[1], y[0]))
    return c.multiply(x[0], y[0]), c.add(upper, mixed)


def sixteen(c: Carrying, x: Value) -> Pair:
    """The lower and the upper 16 bits of a half."""
    upper = shift_half_right(c, x, 16)
    return c.subtract(x, shift_half_left(c, upper, 16)), upper


def shift_half_left(c: Carrying, x: Value, count: int) -> Value:
    """A half times 2^count modulo 2^32, count below 32."""
    factor = 1 << count if count < 31 else -(1 << 31)
    return x if not count else c.multiply(x, factor)


def shift_half_right(c: Carrying, x: Value, count: int) -> Value:
    """A half without sign, divided by 2^count, count below 32."""
    if not count:
        return x
    if c.takes("shift_right_logical", HALF):
        return c.do(names.SHIFT_RIGHT_LOGICAL, x, count)
    if count == 31:  # the sign bit
        return _one_where(c, c.holds(x, "LT", 0), x)
    half = half_of(c, x)
    return half if count == 1 else c.divide(half, 1 << count - 1)


def shift_left(c: Carrying, x: Pair, count: int) -> Pair:
    """The number times 2^count: what leaves the lower half enters the upper one, no bits of which meet."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return zero, shift_half_left(c, x[0], count - 32)
    moved = shift_half_left(c, x[1], count)
    return shift_half_left(c, x[0], count), moved if not count else c.add(moved, shift_half_right(c, x[0], 32 - count))


def shift_right_logical(c: Carrying, x: Pair, count: int) -> Pair:
    """The number without sign divided by 2^count: what leaves the upper half enters the lower one."""
    zero = c.number(0, x[0])
    if count >= 64:
        return zero, zero
    if count >= 32:
        return shift_half_right(c, x[1], count - 32), zero
    moved = shift_half_right(c, x[0], count)
    return moved if not count else c.add(moved, shift_half_left(c, x[1], 32 - count)), shift_half_right(c, x[1], count)


def shift_right_arithmetic(c: Carrying, x: Pair, count: int) -> Pair:
    """The number divided by 2^count, rounded down: the upper half's sign moves in."""
    sign = sign_of(c, x[1])
    if count >= 64:
        return sign, sign
    if count >= 32:
        return _right_signed(c, x[1], sign, count - 32), sign
    moved = shift_half_right(c, x[0], count)
    moved = moved if not count else c.add(moved, shift_half_left(c, x[1], 32 - count))
    return moved, _right_signed(c, x[1], sign, count)


def size(c: Carrying, x: Pair) -> Pair:
    """The size of a signed number, without sign: of the least one 2^63."""
    return choose(c, c.holds(x[1], "LT", 0), negate(c, x), x)


def sign_of(c: Carrying, x: Value) -> Value:
    """-1 where a half is negative, else 0."""
    return c.choose(c.holds(x, "LT", 0), -1, c.number(0, x))


def _right_signed(c: Carrying, x: Value, sign: Value, count: int) -> Value:
    """A half divided by 2^count, rounded down: where it is negative the bits that move in are ones."""
    if not count:
        return x
    return c.add(shift_half_right(c, x, count), shift_half_left(c, sign, 32 - count))


def choose(c: Carrying, predicate: Value, on_true: Pair, on_false: Pair) -> Pair:
    """An elementwise choice."""
    return c.choose(predicate, on_true[0], on_false[0]), c.choose(predicate, on_true[1], on_false[1])


def is_less(c: Carrying, x: Pair, y: Pair, *, unsigned: bool, direction: str = "LT") -> Value:
    """An order of numbers: the lower halves, without sign, decide where the upper ones are equal; else these do."""
    upper = (c.flip(x[1]), c.flip(y[1])) if unsigned else (x[1], y[1])
    lower_says = c.holds(c.flip(x[0]), direction, c.flip(y[0]))
    return c.build.select(c.holds(x[1], "EQ", y[1]), lower_says, c.holds(upper[0], direction, upper[1]))


# --- conversions between 64-bit integers on their halves and other types ---


def converted_halves(c: Carrying, node: Node, x: Value) -> Value:
    """A conversion between 64 bits and fewer, another type of 64, or a float.

    Raises:
      DoesNotApply: it has no form that is exact.
    """
    before, after = node.operand(0).element_type, node.result().element_type
    if element_type(after).is_float:
        return _in_float(c, split(c.build, x), node)
    if element_type(before).is_float:
        return join(c.build, _from_float(c, x, unsigned=not element_type(after).is_signed))
    if not element_type(before).is_integer or not element_type(after).is_integer:
        raise DoesNotApply("a number that is neither an integer nor a float")
    if element_type(before).bits == 64 == element_type(after).bits:
        return x
    if element_type(after).bits == 64:
        return join(c.build, _from_narrow(c, x, c.carrier(node.operand(0)), before))
    return _narrow(c, split(c.build, x), c.carrier(node.result()), after)


def _from_narrow(c: Carrying, x: Value, given: Carrier | None, element: str) -> Pair:
    """A narrow integer: the upper half is its sign, of an unsigned one 0."""
    low = c.build.convert(x, HALF)
    if given is not None and given.form is Form.SIGNED:
        low = c.settle(low, element)
    zero = c.number(0, low)
    return low, c.choose(c.holds(low, "LT", 0), -1, zero) if element_type(element).is_signed else zero


def _narrow(c: Carrying, x: Pair, wanted: Carrier | None, element: str) -> Value:
    """The lower bits; of a predicate whether any bit is 1."""
    low, high = x
    if element == "i1":
        found = c.build.select(c.holds(high, "EQ", 0), c.holds(low, "NE", 0), c.holds(high, "NE", 0))
        return found if wanted is None else c.build.convert(found, wanted.after)
    if wanted is None or wanted.form is Form.SIGNED:
        return c.build.convert(low, element if wanted is None else wanted.after)
    return c.settle(c.build.convert(low, wanted.after), element)


# --- from floats ---


def _from_float(c: Carrying, x: Value, *, unsigned: bool) -> Pair:
    """A float cut to an integer: the nearest one of the type, and 0 of NaN, as XLA gives.

    Of its size m, cut, the upper half is floor(m / 2^32): a power of two divides exactly. What it covers is subtracted
    exactly, too, as the difference has no digit that m has not.
    """
    if x.element_type not in ("f32", "f64"):
        x = c.build.convert(x, "f32")
    size = c.build.elementwise(names.FLOOR, c.build.abs(x))
    limit = 64 if unsigned else 63
    beyond = c.holds(size, "GE", 1 << limit)
    size = c.build.select(beyond, c.number(0, size), size)
    upper = c.build.elementwise(names.FLOOR, _times(c, size, -32))
    lower = c.subtract(size, _times(c, upper, 32))
    found = (_word(c, lower), _word(c, upper))
    least, zero, ones = (c.number(number, found[0]) for number in (-(1 << 31), 0, -1))
    negative = c.holds(x, "LT", 0)
    most = (ones, ones if unsigned else c.number((1 << 31) - 1, zero))
    if unsigned:
        found = choose(c, negative, (zero, zero), choose(c, beyond, most, found))
    else:
        ends = choose(c, negative, (zero, least), most)
        found = choose(c, beyond, ends, choose(c, negative, negate(c, found), found))
    is_number = c.holds(x, "EQ", x)
    return choose(c, is_number, found, (zero, zero))


def _times(c: Carrying, x: Value, power: int) -> Value:
    factor = c.build.float_splat(2.0**power, x.static_shape, x.element_type)
    return c.build.multiply(x, factor)


def _word(c: Carrying, x: Value) -> Value:
    """A whole float from 0 to 2^32 as the bits of an integer without sign."""
    is_large = c.holds(x, "GE", 1 << 31)
    small = c.build.select(is_large, c.subtract(x, 1 << 31), x)
    found = c.build.convert(small, HALF)
    return c.choose(is_large, c.flip(found), found)


# --- to floats ---


def _in_float(c: Carrying, x: Pair, node: Node) -> Value:
    """A number as a float, on its carrier; a narrow one is made of an f32 that is rounded as the number is."""
    before, after = node.operand(0).element_type, node.result().element_type
    if after not in WIDE_FLOATS:
        raise DoesNotApply(f"{after} is not computed with")
    narrow = after in HALF_FLOATS
    found = _to_float(c, x, "f32" if narrow else after, unsigned=not element_type(before).is_signed, is_narrowed=narrow)
    return c.to(c.build.convert(found, after))


def _to_float(c: Carrying, x: Pair, element: str, *, unsigned: bool, is_narrowed: bool) -> Value:
    """A number of 64 bits as a float: a sum of two exact floats, which is rounded once.

        f64    the upper half times 2^32, and the lower half
        f32    below 2^41: what 2^17 divides, and the rest
               else what 2^40 divides, and the next 24 bits, the last of which is 1 where one below it is

    Of f32 the first part has 24 bits in both cases. In the second one it is at least 2, so that its last digit is 2^18
    at least; the rest in units of 2^16 is below half of it, is half of it, or is more, just as before it was cut.
    """
    if element == "f64":
        high = _unsigned_float(c, x[1], element) if unsigned else c.build.convert(x[1], element)
        return c.add(_times(c, high, 32), _unsigned_float(c, x[0], element))
    negative = c.holds(x[1], "LT", 0)
    size = x if unsigned else choose(c, negative, negate(c, x), x)
    found = _narrowed_float(c, size) if is_narrowed else _float_of_size(c, size)
    return found if unsigned else c.build.select(negative, c.build.elementwise(names.NEGATE, found), found)


def _float_of_size(c: Carrying, x: Pair) -> Value:
    low, high = x
    # x < 2^41: x / 2^17 has 24 bits, and the rest 17.
    top = c.add(shift_half_right(c, low, 17), shift_half_left(c, high, 15))
    rest = c.subtract(low, shift_half_left(c, shift_half_right(c, low, 17), 17))
    small = c.add(_times(c, c.build.convert(top, "f32"), 17), c.build.convert(rest, "f32"))
    # Else: x / 2^40 has 24 bits, then 8 of the upper half and 16 of the lower one, and whether any of 16 more is 1.
    upper = shift_half_right(c, high, 8)
    eight = c.subtract(high, shift_half_left(c, upper, 8))
    below, sixteen_more = sixteen(c, low)
    is_odd = c.holds(c.subtract(sixteen_more, shift_half_left(c, shift_half_right(c, sixteen_more, 1), 1)), "EQ", 0)
    sticky = c.build.select(is_odd, c.holds(below, "NE", 0), c.holds(below, "LT", 0))
    middle = c.add(shift_half_left(c, eight, 16), sixteen_more)
    middle = c.choose(sticky, c.add(middle, 1), middle)
    large = c.add(_times(c, c.build.convert(upper, "f32"), 40), _times(c, c.build.convert(middle, "f32"), 16))
    limit = (c.number(0, low), c.number(1 << 9, low))
    return c.build.select(is_less(c, x, limit, unsigned=True), small, large)


def _narrowed_float(c: Carrying, x: Pair) -> Value:
    """An f32 that becomes a narrower float as x does: its first 15 to 24 bits, the last one 1 where one behind it is.

    A narrower float has 11 bits at most, so that what is cut off is still below the middle of two of them, or above.
    """
    low, high = x
    found = c.build.convert(low, "f32")
    for shift in (10, 20, 30, 40):
        word, places = (low, shift) if shift < 32 else (high, shift - 32)
        kept = shift_half_right(c, word, places)
        has_rest = c.holds(c.subtract(word, shift_half_left(c, kept, places)), "NE", 0)
        if shift < 32:
            kept = c.add(kept, shift_half_left(c, high, 32 - shift))
        else:
            has_rest = c.build.select(has_rest, has_rest, c.holds(low, "NE", 0))
        is_even = c.holds(c.subtract(kept, shift_half_left(c, shift_half_right(c, kept, 1), 1)), "EQ", 0)
        cut = c.choose(has_rest, c.choose(is_even, c.add(kept, 1), kept), kept)
        limit = 1 << shift + 14
        bound = c.number(limit % (1 << 32), low), c.number(limit >> 32, low)
        is_below = is_less(c, x, bound, unsigned=True)
        found = c.build.select(is_below, found, _times(c, c.build.convert(cut, "f32"), shift))
    return found


def _unsigned_float(c: Carrying, x: Value, element: str) -> Value:
    """A half without sign as a float that holds each of them."""
    found = c.build.convert(x, element)
    return c.choose(c.holds(x, "LT", 0), c.add(found, 1 << 32), found)


# --- quotients and remainders of 64-bit integers on their halves ---
#
# Long division, by digits where the divisor is small.


STEPS = 64


def divide(c: Carrying, unsigned: bool, x: Pair, d: Pair) -> Pair:
    """The quotient, towards zero; by 0 all ones, and of the least number by -1 that number, as XLA gives.

    Equal: the quotient of the sizes, with the sign of the product. The size of the least number is 2^63 without sign,
    which divided by 1 is that, and read with a sign the least number again.
    """
    if unsigned:
        return _parts(c, x, d)[0]
    quotient, _ = _parts(c, size(c, x), size(c, d))
    differs = c.multiply(_one_if_negative(c, x), _one_if_negative(c, d))
    negative = c.holds(differs, "LT", 0)
    ones = c.number(-1, x[0])
    is_zero = c.build.select(c.holds(d[0], "EQ", 0), c.holds(d[1], "EQ", 0), c.holds(d[0], "EQ", 0))
    return choose(c, is_zero, (ones, ones), choose(c, negative, negate(c, quotient), quotient))


def remainder(c: Carrying, unsigned: bool, x: Pair, d: Pair) -> Pair:
    """What is left, with the sign of the dividend; by 0 the dividend."""
    if unsigned:
        return _parts(c, x, d)[1]
    _, rest = _parts(c, size(c, x), size(c, d))
    return choose(c, c.holds(x[1], "LT", 0), negate(c, rest), rest)


def _one_if_negative(c: Carrying, x: Pair) -> Value:
    return c.choose(c.holds(x[1], "LT", 0), -1, c.number(1, x[1]))


def _parts(c: Carrying, x: Pair, d: Pair) -> tuple[Pair, Pair]:
    if 0 < abs(c.divisor) < 1 << 15 and c.takes("divide", HALF):
        return _by_digits(c, x, abs(c.divisor))
    return _by_steps(c, x, d)


def _by_digits(c: Carrying, x: Pair, d: int) -> tuple[Pair, Pair]:
    """Digits of 16 bits, the upper ones first: r 2^16 + digit is below d 2^16, so below 2^31, and divided by d it is a
    digit of the quotient."""
    digits: list[Value] = []
    rest = c.number(0, x[0])
    for half in (x[1], x[0]):
        for digit in reversed(sixteen(c, half)):
            given = c.add(shift_half_left(c, rest, 16), digit)
            quotient = c.divide(given, d)
            rest = c.subtract(given, c.multiply(quotient, d))
            digits.append(quotient)
    high, low = (c.add(shift_half_left(c, digits[k], 16), digits[k + 1]) for k in (0, 2))
    return (low, high), (rest, c.number(0, rest))


def _by_steps(c: Carrying, x: Pair, d: Pair) -> tuple[Pair, Pair]:
    """Long division, bit by bit, in a loop where the target has one.

        (r, x) = 2 (r, x);  where r >= d: r = r - d, x = x + 1      64 times

    Before each step r is below d, so that 2 r + 1 is below 2 d; where it is 2^64 or more, its upper bit is lost, but it
    is no less than d then, and the difference is right modulo 2^64. The bits of the quotient enter x from below. By 0
    every bit is 1, and r is x in the end.
    """
    zero = c.number(0, x[0])
    carried, kept = [*x, zero, zero], list(d)
    if c.is_nested or not c.takes("while", HALF):
        for _ in range(STEPS):
            carried = _step(c, carried, kept)
    else:

        def step(build: Builder, _counter: Value, carried: Sequence[Value], kept: Sequence[Value]) -> Sequence[Value]:
            return _step(c.inside(build), carried, kept)

        carried = StructuredLoop(STEPS, HALF).emit_while(c.build, carried, kept, step)
    return (carried[0], carried[1]), (carried[2], carried[3])


def _step(c: Carrying, carried: Sequence[Value], kept: Sequence[Value]) -> list[Value]:
    x, r, d = (carried[0], carried[1]), (carried[2], carried[3]), (kept[0], kept[1])
    lost = c.holds(r[1], "LT", 0)
    r = _double(c, r, shift_half_right(c, x[1], 31))
    x = _double(c, x, c.number(0, x[0]))
    below = is_less(c, r, d, unsigned=True)
    rest = choose(c, below, r, subtract(c, r, d))
    rest = choose(c, lost, subtract(c, r, d), rest)
    zero = c.number(0, x[0])
    bit = c.choose(lost, 1, c.build.select(below, zero, c.number(1, zero)))
    return [c.add(x[0], bit), x[1], *rest]


def _double(c: Carrying, x: Pair, bit: Value) -> Pair:
    carry = shift_half_right(c, x[0], 31)
    return c.add(c.add(x[0], x[0]), bit), c.add(c.add(x[1], x[1]), carry)


# --- reductions, matrix products and convolutions of 64-bit integers on their halves ---


DIGITS = ((16, 1 << 15), (8, 1 << 23))
"""How many bits a digit has of which so many are summed: their sum is below 2^31."""


def fold_of(body: Block) -> str:
    """The one op of a body that combines both its arguments; "" of another body."""
    op = only_op(body)
    if op is None or len({value.element_type for value in (*body.arguments, *op.results)}) > 1:
        return ""
    return op.name.removeprefix("stablehlo.") if op.name in COMBINING else ""


def is_folded(node: Node) -> bool:
    """Whether an op with a body is a reduction by one op that has a form without pairs of results."""
    fold = fold_of(node.blocks[0]) if len(node.results) == 1 and node.name != names.SORT else ""
    if fold == "add":
        return _digit_bits(node) > 0
    is_end = fold in ("minimum", "maximum") and node.name == names.REDUCE
    return fold in ("and", "or", "xor") or (is_end and 0 not in node.operand(0).static_shape)


def folded_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """A reduction by one op, of those that `is_folded` names."""
    fold = fold_of(node.blocks[0])
    value, start = (split(c.build, operand) for operand in operands[:2])
    if fold == "add":
        found = _sum(c, node, value, start)
    elif fold in ("minimum", "maximum"):
        found = _end(c, node, fold, value, start)
    else:
        found = tuple(_fold(c, node, fold, x, s) for x, s in zip(value, start, strict=True))
    return join(c.build, (found[0], found[1]))


def _fold(c: Carrying, node: Node, fold: str, value: Value, start: Value) -> Value:
    raw_type = mlir.tensor_type(node.result().shape, HALF)
    made = c.build.op(node.name, [value, start], [raw_type], mlir.attributes_of(node.raw), regions=1)
    scalar = mlir.tensor_type((), HALF)
    c.build.region(made, 0, [scalar, scalar], lambda build, pair: [build.elementwise(fold, *pair)])
    return made.result()


def _count(node: Node) -> int:
    if node.name == names.REDUCE_WINDOW:
        return prod(node.integers("window_dimensions")) + 1
    return prod(node.operand(0).static_shape[dim] for dim in node.integers("dimensions")) + 1


def _sum(c: Carrying, node: Node, value: Sequence[Value], start: Sequence[Value]) -> Pair:
    """The sum modulo 2^64: sums of digits, none of which overflows, each in its place."""
    bits = _digit_bits(node)
    digits = (digits_of(c, pair, bits) for pair in (value, start))
    found = [_fold(c, node, "add", x, s) for x, s in zip(*digits, strict=True)]
    return sum_of_places(c, [(one, place * bits) for place, one in enumerate(found)])


def _digit_bits(node: Node) -> int:
    """How many bits a digit has so that a sum of all elements does not overflow; 0 where there are too many."""
    return next((bits for bits, most in DIGITS if _count(node) <= most), 0)


def sum_of_places(c: Carrying, parts: Sequence[tuple[Value, int]]) -> Pair:
    """The sum modulo 2^64 of numbers of 31 bits, each times a power of two below 2^64, the first one as it stands.

    What begins in the upper half is added there alone, where nothing is carried.
    """
    (low, first), *rest = parts
    assert not first
    upper: list[Value] = []
    for number, place in rest:
        if place >= 32:
            upper.append(shift_half_left(c, number, place - 32))
            continue
        before, moved = low, shift_half_left(c, number, place)
        low = c.add(before, moved)
        upper += [_divide_half(c, number, 32 - place), _one_where(c, _is_below(c, low, before), low)]
    return low, reduce(c.add, upper) if upper else c.number(0, low)


def _divide_half(c: Carrying, x: Value, count: int) -> Value:
    """A number of 31 bits, divided by 2^count, count from 2 to 30."""
    return (
        c.do(names.SHIFT_RIGHT_LOGICAL, x, count) if c.takes("shift_right_logical", HALF) else c.divide(x, 1 << count)
    )


def digits_of(c: Carrying, x: Sequence[Value], bits: int) -> list[Value]:
    """The digits of 16 or of 8 bits of both halves, the lower ones first."""
    parts = [part for half in x for part in sixteen(c, half)]
    return parts if bits == 16 else [digit for part in parts for digit in _eight(c, part)]


def _eight(c: Carrying, part: Value) -> Pair:
    upper = shift_half_right(c, part, 8)
    return c.subtract(part, shift_half_left(c, upper, 8)), upper


def _end(c: Carrying, node: Node, fold: str, value: Sequence[Value], start: Sequence[Value]) -> Pair:
    """The least or greatest number: that of the upper halves, and of the lower ones beside those that are that.

    Lower halves have no sign, nor have upper ones of unsigned numbers: their sign bits are flipped. What is folded
    begins with the end of i32, so that the start is compared once, with what was found.
    """
    unsigned = not node.operand(0).element.is_signed
    end = int(element_type(HALF).most) if fold == "minimum" else int(element_type(HALF).least)
    first = c.build.constant(end, (), HALF)
    low, high = c.flip(value[0]), c.flip(value[1]) if unsigned else value[1]
    upper = _fold(c, node, fold, high, first)
    shape, gone = high.static_shape, frozenset(node.integers("dimensions"))
    spread = c.build.broadcast(upper, shape, [d for d in range(len(shape)) if d not in gone])
    beside = c.build.select(c.holds(high, "EQ", spread), low, c.number(end, low))
    lower = _fold(c, node, fold, beside, first)
    found = (c.flip(lower), c.flip(upper) if unsigned else upper)
    begun = (c.build.broadcast(start[0], upper.static_shape), c.build.broadcast(start[1], upper.static_shape))
    direction = "LT" if fold == "minimum" else "GT"
    return choose(c, is_less(c, begun, found, unsigned=unsigned, direction=direction), begun, found)


PRODUCTS = ("dot_general", "convolution")
"""Ops of which each element is a sum of products of two: linear in both operands."""

DIGIT = 8
MOST = 1 << 15
"""Products of two digits are below 2^16, so that a sum of so many is below 2^31."""


def product_of_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """The product modulo 2^64: of digits i and j, each one as it stands, in the place of 2^(8 (i + j)).

    Raises:
      DoesNotApply: it sums too many products, or of other types.
    """
    if len({value.element_type for value in (*node.operands, *node.results)}) > 1 or not node.is_static:
        raise DoesNotApply("of two element types, or of dynamic shape")
    if _summand_count(node) > MOST:
        raise DoesNotApply(f"sums of more than {MOST:,} products")
    left, right = (digits_of(c, split(c.build, value), DIGIT) for value in operands)
    raw_type, attributes = mlir.tensor_type(node.result().shape, HALF), mlir.attributes_of(node.raw)
    places = [(i, j) for i in range(len(left)) for j in range(len(right) - i)]

    def product(i: int, j: int) -> Value:
        return c.build.op(node.name, [left[i], right[j]], [raw_type], attributes).result()

    return join(c.build, sum_of_places(c, [(product(i, j), DIGIT * (i + j)) for i, j in places]))


def _summand_count(node: Node) -> int:
    """How many products an element is the sum of, at most: each takes another element of the right operand."""
    right, result = node.operand(1).static_shape, node.result().static_shape
    if node.name == names.DOT_GENERAL:
        contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).rhs_contracting_dimensions)
        return prod(right[d] for d in contracted)
    return prod(right) if 0 not in result else 0
