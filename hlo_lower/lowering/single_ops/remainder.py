"""`stablehlo.remainder` for consumers that have none, or another one: its sign is that of the dividend."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.base.registry import DoesNotApply, RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.single_ops.plain_op import PLAIN, Elements, PlainLowering, PlainOp

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
    return on_each(build, _signed, x, d, rest)


def _signed(x: Array, d: Array, rest: Array) -> Array:
    """What is left, with the sign of x, where x is finite and d is no zero and no NaN."""
    undefined = x * d / (x * d)
    signed = jnp.where(rest == 0.0, x * 0.0, jnp.where(x < 0.0, -rest, rest))
    # x - x is a NaN where x is none or infinite; |d| > 0 is false where d is 0 or none.
    return jnp.where((x - x == 0.0) & (jnp.abs(d) > 0.0), signed, undefined)
