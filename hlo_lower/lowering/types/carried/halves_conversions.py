"""Conversions between 64-bit integers on their halves and other types."""

from hlo_lower.base.element_types import HALF_FLOATS, WIDE_FLOATS, element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.types.carried.carrier import Carrier, Form
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.halves import HALF, choose, is_less, left, negate, right, sixteen
from hlo_lower.lowering.types.carried.pairs import Pair, join, split
from hlo_lower.ops.names import FLOOR, NEGATE


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
    return _narrowed(c, split(c.build, x), c.carrier(node.result()), after)


def _from_narrow(c: Carrying, x: Value, given: Carrier | None, element: str) -> Pair:
    """A narrow integer: the upper half is its sign, of an unsigned one 0."""
    low = c.build.convert(x, HALF)
    if given is not None and given.form is Form.SIGNED:
        low = c.settle(low, element)
    zero = c.number(0, low)
    return low, c.choose(c.holds(low, "LT", 0), -1, zero) if element_type(element).is_signed else zero


def _narrowed(c: Carrying, x: Pair, wanted: Carrier | None, element: str) -> Value:
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
    size = c.build.elementwise(FLOOR, c.build.abs(x))
    limit = 64 if unsigned else 63
    beyond = c.holds(size, "GE", 1 << limit)
    size = c.build.select(beyond, c.number(0, size), size)
    upper = c.build.elementwise(FLOOR, _times(c, size, -32))
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
    return found if unsigned else c.build.select(negative, c.build.elementwise(NEGATE, found), found)


def _float_of_size(c: Carrying, x: Pair) -> Value:
    low, high = x
    # x < 2^41: x / 2^17 has 24 bits, and the rest 17.
    top = c.add(right(c, low, 17), left(c, high, 15))
    rest = c.subtract(low, left(c, right(c, low, 17), 17))
    small = c.add(_times(c, c.build.convert(top, "f32"), 17), c.build.convert(rest, "f32"))
    # Else: x / 2^40 has 24 bits, then 8 of the upper half and 16 of the lower one, and whether any of 16 more is 1.
    upper = right(c, high, 8)
    eight = c.subtract(high, left(c, upper, 8))
    below, sixteen_more = sixteen(c, low)
    is_odd = c.holds(c.subtract(sixteen_more, left(c, right(c, sixteen_more, 1), 1)), "EQ", 0)
    sticky = c.build.select(is_odd, c.holds(below, "NE", 0), c.holds(below, "LT", 0))
    middle = c.add(left(c, eight, 16), sixteen_more)
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
        kept = right(c, word, places)
        has_rest = c.holds(c.subtract(word, left(c, kept, places)), "NE", 0)
        if shift < 32:
            kept = c.add(kept, left(c, high, 32 - shift))
        else:
            has_rest = c.build.select(has_rest, has_rest, c.holds(low, "NE", 0))
        is_even = c.holds(c.subtract(kept, left(c, right(c, kept, 1), 1)), "EQ", 0)
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
