"""`stablehlo.reduce_precision` on the bits of a float."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.integer_ops import Integers
from hlo_lower.lowerings.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.registry import RuleList

LAYOUTS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and mantissa."""

rules = RuleList()


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
