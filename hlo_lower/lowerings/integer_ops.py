"""Elementwise ops of integers, of any numbers, and of the bits of floats, out of plainer ones, bit for bit."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Builder, Value
from hlo_lower.graph.axes import slice_along
from hlo_lower.lowerings.carried.carrier import MARK, Form, carriers_of
from hlo_lower.lowerings.carried.carrying import Carrying
from hlo_lower.lowerings.carried.on_carriers import lowered
from hlo_lower.lowerings.plain_op import PLAIN, Elements, Elementwise, PlainLowering, PlainOp
from hlo_lower.mlir import is_splat
from hlo_lower.registry import RuleList, When

INTEGERS = {Elements.SIGNED, Elements.UNSIGNED}

rules = RuleList()


class Integers(Elementwise):
    """On integers; they wrap."""

    @property
    def width(self) -> int:
        """Bits of each."""
        return int(self.element.lstrip("ui"))

    def __call__(self, value: int) -> Value:
        """A constant; of more bits than there are, the low ones."""
        value &= (1 << self.width) - 1
        if not self.element.startswith("u") and value >> (self.width - 1):
            value -= 1 << self.width
        return self.build.broadcast(self.build.constant(value, (), self.element), self.shape)


@rules.lowers(PLAIN, named={PlainOp.CLAMP}, form="minimum(maximum(x, low), high)")
def clamp_to_minimum(op: PlainLowering) -> Sequence[Value]:
    """Write it out. Equal: it is the specification's definition; of NaN both are NaN."""
    low, x, high = op.node.operands
    low, high = (op.build.broadcast(v, x.static_shape) if v.shape == () else v for v in (low, high))
    return [op.build.elementwise("minimum", op.build.elementwise("maximum", x, low), high)]


@rules.lowers(PLAIN, named={PlainOp.SIGN}, elements={Elements.SIGNED}, form="1 above 0, -1 below, else 0")
def sign_to_select(op: PlainLowering) -> Sequence[Value]:
    """Compare with zero. Equal: that is what the sign is."""
    x = op.node.operand(0)
    at = Integers(op.build, x)
    return [at.where(x, "GT", 0, 1, at.where(x, "LT", 0, -1, 0))]


OF_BITS = When("a number of bits", lambda facts: facts.bits > 0)
"""All integers: of two rules for them the one that asks for it is tried first."""


@rules.lowers(
    PLAIN, named={PlainOp.POPCNT}, elements=INTEGERS, when=OF_BITS, form="sums of bits, then of pairs, of fours, ..."
)
def popcnt_to_sums(op: PlainLowering) -> Sequence[Value]:
    """Add neighbouring bits, then neighbouring pairs, and so on.

        x - ((x >> 1) & 0x55);  (x & 0x33) + ((x >> 2) & 0x33);  (x + (x >> 4)) & 0x0f

    Equal: each step holds the counts of fields of twice as many bits, which have room for them.
    """
    x = op.node.operand(0)
    return [_ones(Integers(op.build, x), x)]


@rules.lowers(PLAIN, named={PlainOp.POPCNT}, elements=INTEGERS, form="each 32 bits less all their halves")
def popcnt_to_halves(op: PlainLowering) -> Sequence[Value]:
    """Subtract half of it, half of that, and so on, where there are no shifts; of 64 bits both parts.

        y = x < 0 ? x + 2^(width - 1) : x;  y - y / 2 - y / 4 - ... + (x < 0 ? 1 : 0)

    Equal: of a bit 2^k, 2^k - 2^(k - 1) - ... - 1 = 1 is left, and halves of what is not negative round down; the bit
    of the sign counts by itself. Costs 2 ops for each bit.
    """
    x, build = op.node.operand(0), op.build
    width, parts = min(op.facts.bits, 32), max(1, op.facts.bits // 32)
    shape = x.static_shape if parts == 1 else [*x.static_shape, parts]
    [bits] = build.op("stablehlo.bitcast_convert", [x], [mlir.tensor_type(shape, f"i{width}")]).results
    at = Integers(build, bits)
    half = at.where(bits, "LT", 0, at.op("add", bits, 1 << (at.width - 1)), bits)
    found = at.op("add", half, at.where(bits, "LT", 0, 1, 0))
    for _ in range(at.width - 2):
        half = at.op("divide", half, 2)
        found = at.op("subtract", found, half)
    if parts > 1:
        low, high = (build.reshape(slice_along(build, found, len(shape) - 1, k, 1), x.static_shape) for k in range(2))
        found = build.elementwise("add", low, high)
    return [build.convert(found, x.element_type)]


def _ones(at: Integers, x: Value) -> Value:
    """The number of bits that are 1."""

    def right(value: Value, bits: int) -> Value:
        return at.op("shift_right_logical", value, bits)

    def of(byte: int) -> int:
        return int.from_bytes(bytes([byte]) * (at.width // 8), "little")

    x = at.op("subtract", x, at.op("and", right(x, 1), of(0x55)))
    x = at.op("add", at.op("and", x, of(0x33)), at.op("and", right(x, 2), of(0x33)))
    x = at.op("and", at.op("add", x, right(x, 4)), of(0x0F))
    bits = 8
    while bits < at.width:
        x, bits = at.op("add", x, right(x, bits)), 2 * bits
    return at.op("and", x, 0xFF) if at.width > 8 else x


@rules.lowers(PLAIN, named={PlainOp.COUNT_LEADING_ZEROS}, elements=INTEGERS, form="the zeros left of the highest bit")
def count_leading_zeros_to_sums(op: PlainLowering) -> Sequence[Value]:
    """Fill all bits below the highest one, and count those that are 0.

        x |= x >> 1;  x |= x >> 2;  x |= x >> 4;  ...;  popcnt(~x)

    Equal: what is 0 then is left of the highest bit; of 0 that is all bits.
    """
    x = op.node.operand(0)
    at = Integers(op.build, x)
    bits = 1
    while bits < at.width:
        x, bits = at.op("or", x, at.op("shift_right_logical", x, bits)), 2 * bits
    return [_ones(at, at.op("not", x))]


# --- shifts ---


@rules.lowers(PLAIN, named={PlainOp.SHIFT_LEFT}, elements=INTEGERS, form="x * 2^s, 0 where s is no bit's number")
def shift_left_to_multiply(op: PlainLowering) -> Sequence[Value]:
    """Multiply by the power of two.

    Equal: products wrap. Shifting by as many bits as there are, or by more, gives 0, as StableHLO has it; a negative
    number is a large one.
    """
    x, s = op.node.operands
    at = Integers(op.build, x)
    return [at.op("multiply", x, _power(at, s, 0))]


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.UNSIGNED}, form="x / 2^s")
def shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two. Equal: unsigned division rounds down; where s is no bit's number, 0 is chosen."""
    x, s = op.node.operands
    at = Integers(op.build, x)
    return [at.where(s, "LT", at.width, at.op("divide", x, _power(at, s, 1)), 0)]


@rules.lowers(PLAIN, named={PlainOp.SHIFT_RIGHT}, elements={Elements.SIGNED}, form="x / 2^s, rounded down")
def shift_right_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Divide by the power of two, of negative numbers their complement.

        x < 0 ? -1 - (-1 - x) / 2^s : x / 2^s

    Equal: -1 - x is not negative, so both divisions round down, and nothing overflows. From the highest bit on, which
    has no positive power, all bits are the sign's.
    """
    x, s = op.node.operands
    at = Integers(op.build, x)
    return [_down(op.build, at, x, s)]


def _down(build: Builder, at: Integers, x: Value, s: Value) -> Value:
    power = _power(at, s, 1)
    flipped = at.op("subtract", at(-1), x)
    below = at.op("subtract", at(-1), at.op("divide", flipped, power))
    found = at.where(x, "LT", 0, below, at.op("divide", x, power))
    is_inside = build.elementwise("and", build.compare(s, "GE", at(0)), build.compare(s, "LT", at(at.width - 1)))
    return build.select(is_inside, found, at.where(x, "LT", 0, -1, 0))


@rules.lowers(
    PLAIN, named={PlainOp.SHIFT_RIGHT_LOGICAL}, elements={Elements.SIGNED}, form="x / 2^s, rounded down, high bits 0"
)
def signed_shift_right_logical_to_divide(op: PlainLowering) -> Sequence[Value]:
    """Shift the sign in, and take it away again.

        (x < 0 ? x shifted with its sign + 2^(width - s) : x / 2^s)

    Equal: of a negative number the s high bits are 1, and adding 2^(width - s) makes them 0 and wraps.
    """
    x, s = op.node.operands
    at = Integers(op.build, x)
    build = op.build
    shifted = _down(build, at, x, s)
    # 2^(width - s) as -2^(width - 1 - s) twice, which wraps to 0 for s = 0.
    gap = _power(at, at.op("subtract", at(at.width - 1), s), 0)
    cleared = at.op("add", at.op("add", shifted, gap), gap)
    found = at.where(x, "LT", 0, cleared, shifted)
    is_inside = build.elementwise("and", build.compare(s, "GE", at(0)), build.compare(s, "LT", at(at.width)))
    return [build.select(is_inside, found, at(0))]


def _wide_shift(op: PlainLowering) -> Sequence[Value]:
    """A shift of 64 bits on the two halves."""
    element = op.node.result().element_type
    [halves] = (carrier for carrier in carriers_of(element) if carrier.form is Form.HALVES)
    [found] = lowered(op.node, Carrying(op.build, {element: halves}, lambda _op, _element: False))
    if found.node is not None:
        del found.node.raw.attributes[MARK]  # a note of the stage of element types, in which this is not built
    return [found]


WIDE = When("64 bits", lambda facts: facts.bits == 64)


@rules.lowers(
    PLAIN,
    named={PlainOp.SHIFT_RIGHT_LOGICAL},
    elements={Elements.UNSIGNED},
    when=WIDE,
    form="the lower and the upper 32 bits, shifted by products and quotients",
)
def wide_shift_right_logical_to_halves(op: PlainLowering) -> Sequence[Value]:
    """Shift the two halves of 32 bits.

        %x >> 32    ->   the upper half in the place of the lower one, and 0

    Equal: by less than 32 what leaves the upper half enters the lower one, by more that is the upper half shifted by
    the rest; what is not known is shifted by each power of two that it has. The halves are `bitcast_convert`s.
    """
    return _wide_shift(op)


@rules.lowers(
    PLAIN,
    named={PlainOp.SHIFT_RIGHT_LOGICAL},
    elements={Elements.SIGNED},
    when=WIDE,
    form="the lower and the upper 32 bits, shifted by products and quotients",
)
def wide_signed_shift_right_logical_to_halves(op: PlainLowering) -> Sequence[Value]:
    """The same of signed integers. Equal: the shift moves in zeros, whatever the sign."""
    return _wide_shift(op)


@rules.lowers(
    PLAIN,
    named={PlainOp.SHIFT_RIGHT},
    elements={Elements.SIGNED},
    when=WIDE,
    form="the lower and the upper 32 bits, shifted by products and quotients, the sign moved in",
)
def wide_shift_right_to_halves(op: PlainLowering) -> Sequence[Value]:
    """The same where the sign moves in. Equal: the bits that enter the upper half are its sign's."""
    return _wide_shift(op)


def _power(at: Integers, s: Value, otherwise: int) -> Value:
    """2^s for each bit's number s; else another number. Each is chosen by comparing, from powers that are constants."""
    if (known := _known(s)) is not None:
        return at(1 << known if 0 <= known < at.width else otherwise)
    found = at(otherwise)
    for bit in range(at.width):
        found = at.where(s, "EQ", bit, 1 << bit, found)
    return found


def _known(s: Value) -> int | None:
    """The one number that all elements are, where they are a constant, or are spread from one."""
    node = s.node
    while node is not None and node.name == "stablehlo.broadcast_in_dim":
        node = node.operand(0).node
    if node is None or node.name != "stablehlo.constant" or not is_splat(node.raw):
        return None
    values = node.constant()
    return None if values is None or not values.size else int(values.reshape(-1)[0])


# --- the bits of floats ---

LAYOUTS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and mantissa."""


@rules.lowers(PLAIN, named={PlainOp.REDUCE_PRECISION}, elements={Elements.FLOAT}, form="the bits rounded to even")
def reduce_precision_to_bits(op: PlainLowering) -> Sequence[Value]:
    """Round the mantissa to even by adding to the bits, then cut the exponent.

        bits + (half - 1) + lowest kept bit, the dropped bits 0;  too large an exponent: infinity, too small: zero

    Equal, bit for bit: a carry out of the mantissa goes into the exponent, as rounding up does. NaN comes back itself.
    """
    x, build = op.node.operand(0), op.build
    exponent, mantissa = LAYOUTS[x.element_type]
    kept_exponent, kept = op.node.integer("exponent_bits"), op.node.integer("mantissa_bits")
    bits = build.bitcast(x, f"ui{1 + exponent + mantissa}")
    at = Integers(build, bits)
    found = bits
    if (dropped := mantissa - kept) > 0:
        last = at.op("and", at.op("shift_right_logical", bits, dropped), 1)
        found = at.op("add", bits, at.op("add", last, (1 << (dropped - 1)) - 1))
        found = at.op("and", found, -(1 << dropped))
    if kept_exponent < exponent:
        ones = ((1 << exponent) - 1) << mantissa
        bias, kept_bias = (1 << (exponent - 1)) - 1, (1 << (kept_exponent - 1)) - 1
        size = at.op("and", found, ones)
        sign = at.op("and", bits, 1 << (exponent + mantissa))
        large = at.where(size, "GT", (bias + kept_bias) << mantissa, at.op("or", sign, ones), found)
        found = at.where(size, "LE", (bias - kept_bias) << mantissa, sign, large)
    back = build.bitcast(found, x.element_type)
    return [build.select(build.compare(x, "NE", x), x, back)]
