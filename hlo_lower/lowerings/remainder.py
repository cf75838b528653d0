"""`stablehlo.remainder` for consumers that have none, or another one: its sign is that of the dividend."""

from collections.abc import Sequence

from hlo_lower.graph import Builder, Value
from hlo_lower.lowerings.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.registry import DoesNotApply, RuleList

rules = RuleList()


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
    build, (x, d) = op.build, op.node.operands
    if op.facts.is_safe_divisor:
        return [_by_divide(build, x, d)]
    shape, element = x.static_shape, x.element_type
    one = build.broadcast(build.constant(1, (), element), shape)
    zero = build.broadcast(build.constant(0, (), element), shape)
    is_zero = build.compare(d, "EQ", zero)
    safe = build.select(is_zero, one, d)
    if op.facts.elements is Elements.SIGNED:
        minus_one = build.broadcast(build.constant(-1, (), element), shape)
        safe = build.select(build.compare(d, "EQ", minus_one), one, safe)
    return [build.select(is_zero, x, _by_divide(build, x, safe))]


def _by_divide(build: Builder, x: Value, d: Value) -> Value:
    covered = build.elementwise("multiply", build.elementwise("divide", x, d), d)
    return build.elementwise("subtract", x, covered)


STEPS = {"f16": 40, "bf16": 261, "f32": 277}
"""For each type how often its least number can be doubled."""


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
    element, shape = x.element_type, x.static_shape
    if element not in STEPS:
        raise DoesNotApply(f"{element} would take more than 2,000 steps")
    rest, parts = build.elementwise("abs", x), [build.elementwise("abs", d)]
    while len(parts) < STEPS[element]:
        parts.append(build.elementwise("add", parts[-1], parts[-1]))
    for part in reversed(parts):
        rest = build.select(build.compare(rest, "GE", part), build.elementwise("subtract", rest, part), rest)
    zero = build.float_splat(0.0, shape, element)
    product = build.elementwise("multiply", x, d)
    undefined = build.elementwise("divide", product, product)
    signed = build.select(build.compare(x, "LT", zero), build.elementwise("negate", rest), rest)
    signed = build.select(build.compare(rest, "EQ", zero), build.elementwise("multiply", x, zero), signed)
    return [_where_defined(build, x, d, signed, undefined)]


def _where_defined(build: Builder, x: Value, d: Value, value: Value, otherwise: Value) -> Value:
    """The value where x is finite and d is no zero and no NaN."""
    shape, element = x.static_shape, x.element_type
    zero = build.float_splat(0.0, shape, element)
    # x - x is a NaN where x is none or infinite; |d| > 0 is false where d is 0 or none.
    own = build.compare(build.elementwise("subtract", x, x), "EQ", zero)
    fits = build.elementwise("and", own, build.compare(build.elementwise("abs", d), "GT", zero))
    return build.select(fits, value, otherwise)
