"""Ops that a consumer takes, but not as they stand: infinities among a constant's numbers, a total order of floats."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.facts.ranges.transfer.booleans import comparison_direction
from hlo_lower.facts.sort.key_columns import ordered
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.ops.targets.refused_forms import RefusedForm

FORM = "op in a form"


@dataclass(frozen=True)
class FormFacts(FactsByName):
    """The facts of one such op: its form."""

    found: RefusedForm


rules = RuleList()


@rules.lowers(FORM, found={RefusedForm.INFINITE}, form="bitcast_convert of the constant's bits")
def infinite_to_bits(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Write a constant as the integers of its bits.

        %c = stablehlo.constant dense<0xFF800000> : tensor<f32>   ->   bitcast_convert of constant dense<-8388608> : i32

    Equal: a bitcast keeps every bit. A constant of one number stays one.
    """
    build, result = op.build, op.node.result()
    values = op.node.constant()
    assert values is not None
    width = result.element.bits
    bits = np.ascontiguousarray(values).view(f"i{width // 8}")
    if bits.size and (bits == bits.reshape(-1)[0]).all():
        scalar = build.constant(int(bits.reshape(-1)[0]), (), f"i{width}")
        return [build.broadcast(build.bitcast(scalar, result.element_type), result.static_shape)]
    return [build.bitcast(build.constant_array(bits, f"i{width}"), result.element_type)]


@rules.lowers(FORM, found={RefusedForm.TOTAL_ORDER}, form="compare the bits, those of negative numbers turned")
def total_order_to_bits(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Compare floats in IEEE 754's total order as integers.

        %r = stablehlo.compare LT, %x, %y, TOTALORDER   ->   compare LT, key(%x), key(%y), SIGNED

    Equal: `key` is the integer of the bits, with all bits but the sign flipped where that is set, and these integers
    are in the total order: NaN with a sign, -Inf, ..., -0.0, 0.0, ..., Inf, NaN. Two are equal where all bits are.
    """
    build = op.build
    left, right = (ordered(build, value) for value in op.node.operands)
    return [build.compare(left, comparison_direction(op.node), right)]
