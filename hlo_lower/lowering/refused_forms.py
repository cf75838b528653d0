"""Constants, comparisons and functions of floats in a form that a target refuses: a kind, and its rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.facts.ranges.transfer import comparison_direction
from hlo_lower.facts.sort.key_columns import has_sign, inverse, ordered_integers
from hlo_lower.facts.sort.total_order import may_be_negative_zero, may_have_one_nan
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering import angles
from hlo_lower.lowering.engine.kind import Context, Kind, OpLowering, Stage, Subject
from hlo_lower.lowering.engine.traced import on_each
from hlo_lower.lowering.options import Options
from hlo_lower.ops.names import CASE, COMPARE, CONSTANT, IF, NEGATE, NOT, WHILE
from hlo_lower.ops.quirks import QUIRKS
from hlo_lower.ops.quirks.floats import (
    FORM,
    INFINITE,
    ODD_BELOW_ZERO,
    POWER_BELOW_ZERO,
    TOTAL_ORDER,
    is_start_alone,
    numbers_of,
)
from hlo_lower.ops.refused_forms import RefusedForm, refused_form, refuses_forms


class Nan(Enum):
    """Which NaN stand among the floats that are compared."""

    ANY = "any"
    ONE = "one"


@dataclass(frozen=True)
class FormFacts(FactsByName):
    """The facts of one such op: its form, and whether its NaN may be taken for the positive one."""

    found: RefusedForm
    nan: Nan = Nan.ANY


rules = RuleList()


@rules.lowers(FORM, found={RefusedForm.of(INFINITE)}, form="bitcast_convert of the constant's bits")
def infinite_to_bits(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Write a constant as the integers of its bits.

        %c = stablehlo.constant dense<0xFF800000> : tensor<f32>   ->   bitcast_convert of constant dense<-8388608> : i32
        %c = stablehlo.constant dense<0xFF80> : tensor<bf16>      ->   the same, converted to bf16

    Equal: a bitcast keeps every bit, and f32 holds each number of bf16 and f16. A constant of one number stays one.
    """
    build, result = op.build, op.node.result()
    values = op.node.constant()
    assert values is not None
    wide = result.element_type if result.element.bits >= 32 else "f32"
    width = element_type(wide).bits
    bits = np.ascontiguousarray(values.astype(np.dtype(f"f{width // 8}"))).view(f"i{width // 8}")
    if bits.size and (bits == bits.reshape(-1)[0]).all():
        scalar = build.bitcast(build.constant(int(bits.reshape(-1)[0]), (), f"i{width}"), wide)
        return [build.convert(build.broadcast(scalar, result.static_shape), result.element_type)]
    return [build.convert(build.bitcast(build.constant_array(bits, f"i{width}"), wide), result.element_type)]


@rules.lowers(
    FORM, found={RefusedForm.of(TOTAL_ORDER)}, form="compare the bits, with those of negative numbers inverted"
)
def total_order_to_bits(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Compare floats in IEEE 754's total order as integers.

        %r = stablehlo.compare LT, %x, %y, TOTALORDER   ->   compare LT, key(%x), key(%y), SIGNED

    Equal: `key` is the integer of the bits, with all bits but the sign flipped where that is set, and these integers
    are in the total order: NaN with a sign, -Inf, ..., -0.0, 0.0, ..., Inf, NaN. Two are equal where all bits are.
    """
    build = op.build
    left, right = (ordered_integers(build, value) for value in op.node.operands)
    return [build.compare(left, comparison_direction(op.node), right)]


@rules.lowers(
    FORM, found={RefusedForm.of(TOTAL_ORDER)}, nan={Nan.ONE}, form="compare x != x, x, and of zeros the sign of 1 / x"
)
def total_order_to_numbers(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Compare floats in IEEE 754's total order without their bits.

        %r = stablehlo.compare LT, %x, %y, TOTALORDER   ->   x < y, or y != y and x == x, or x == y and 1 / x < 1 / y
        %r = stablehlo.compare EQ, %x, %y, TOTALORDER   ->   x == y and (1 / x < 0) == (1 / y < 0), or x != x and y != y

    Equal, where NaN was computed: IEEE 754 leaves the sign of such a NaN open, and here it is the positive one, behind
    all numbers. Of numbers that are equal only zeros differ, of which 1 / x is an infinity of their sign; that is left
    out where there is no zero with a sign. Of subnormals it holds where comparisons tell them from 0, as the
    specification has it; XLA's on a CPU do not.
    """
    build, direction, (x, y) = op.build, comparison_direction(op.node), op.node.operands
    if direction in ("EQ", "NE"):
        found = _is_same(build, x, y)
    else:
        found = _is_before(build, *((x, y) if direction in ("LT", "GE") else (y, x)))
    return [found if direction in ("EQ", "LT", "GT") else build.elementwise(NOT, found)]


def _is_before(build: Builder, x: Value, y: Value) -> Value:
    """Whether floats come before others in the total order of numbers and one NaN."""
    is_last = build.and_(build.compare(x, "EQ", x), build.compare(y, "NE", y))
    found = build.or_(build.compare(x, "LT", y), is_last)
    if not may_be_negative_zero(x):
        return found
    turned = build.compare(inverse(build, x), "LT", inverse(build, y))
    return build.or_(found, build.and_(build.compare(x, "EQ", y), turned))


def _is_same(build: Builder, x: Value, y: Value) -> Value:
    """Whether floats are the same number, zeros by their signs, or NaN."""
    found = build.compare(x, "EQ", y)
    if may_be_negative_zero(x) or may_be_negative_zero(y):
        found = build.and_(found, build.compare(has_sign(build, x), "EQ", has_sign(build, y)))
    return build.or_(found, build.and_(build.compare(x, "NE", x), build.compare(y, "NE", y)))


@rules.lowers(FORM, found={RefusedForm.of(ODD_BELOW_ZERO)}, form="the op on |x|, with x's sign")
def odd_function_to_magnitude(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Take an odd function of the magnitude, and give it the sign back.

        %r = stablehlo.sine %x   ->   m = |x|;  s = sine(m);  r = s == m ? x : (x < m ? -s : s)

    Equal: sine and tangent are odd. A number below zero is below its magnitude. Zeros of both signs, and what is so
    small that the function is the number itself, come back as they are (XLA's tangent of a subnormal is 0 on a CPU);
    infinities and NaN give NaN. No constant is needed, so that shapes may be dynamic.
    """
    build, [x] = op.build, op.node.operands
    size = build.abs(x)
    found = build.clone(op.node, [size], [x.raw.type]).result()
    turned = build.select(build.compare(x, "LT", size), build.elementwise(NEGATE, found), found)
    return [build.select(build.compare(found, "EQ", size), x, turned)]


@rules.lowers(FORM, found={RefusedForm.of(POWER_BELOW_ZERO)}, form="|x| ^ y, its sign by whether y is odd")
def power_to_magnitude(op: OpLowering[FormFacts]) -> Sequence[Value]:
    """Take the power of the magnitude, and say the rest by what y is.

        p = y == 0 or |x| == 1 ? 1 : |x| ^ y
        r = y odd and x signed ? -p : p;   NaN where x < 0 is finite and y not whole

    Equal, as IEEE 754 has it for `pow`: x^y is |x|^y for even y and its negative for odd y, zeros and infinities
    included; x^0 and 1^y are 1, of NaN, too, and (-1)^inf is 1. Of a whole y, y - 2 floor(y / 2) is exact, and 1 where
    it is odd (of others it may be rounded to 1); an infinite one is whole and leaves NaN. -0 is told by 1 / x. Of a
    constant y that is even and not 0 the power of |x| is all, and x^1 is x: gradients of x^2 have y = 2 - 1.

    Of subnormals that holds where comparisons tell them from 0, as the specification has it; XLA's on a CPU do not.
    """
    (x, y), build = op.node.operands, op.build
    known = numbers_of(y)
    if known is not None and (known == 1).all():
        return [x]
    size = build.abs(x)
    power = build.clone(op.node, [size, y], [x.raw.type]).result()
    return [power] if known is not None and _are_even(known) else on_each(build, _with_sign, x, y, size, power)


def _with_sign(x: Array, y: Array, size: Array, power: Array) -> Array:
    """x ^ y from |x| ^ y."""
    power = jnp.where((y == 0.0) | (size == 1.0), 1.0, power)
    is_whole, half = jnp.floor(y) == y, jnp.floor(y * 0.5)
    is_odd, is_below = is_whole & (y - (half + half) == 1.0), x < 0.0
    power = jnp.where(is_odd & (is_below | (1.0 / x < 0.0)), -power, power)
    return jnp.where(is_below & ((x - x == 0.0) & ~is_whole), jnp.nan, power)


def _are_even(numbers: NDArray[Any]) -> bool:
    """Whether numbers are even, none of them 0."""
    wide = numbers.astype(np.float64)
    return bool((np.isfinite(wide) & (wide != 0) & (np.mod(wide, 2) == 0)).all())


AROUND = ("func.func", WHILE, IF, CASE)
"""Ops whose regions hold ordinary ops; bodies of others are taken as they are."""


class RefusedFormKind(Kind):
    """Ops in a form that the target refuses."""

    name = op = FORM
    ops = frozenset(op for quirk in QUIRKS if quirk.is_cured_by(FORM) for op in quirk.ops)
    stage = Stage.TYPES
    domains = FormFacts.domains
    families = (rules, angles.rules)
    owned = frozenset({"value", "comparison_direction", "compare_type", "result_accuracy"})

    def concerns(self, options: Options) -> bool:
        return refuses_forms(options.target, self.name)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic and constants of it are needed.

        None of another form, where reductions begin, and of a constant or comparison within a body.
        """
        parent = node.parent
        is_within = parent is not None and parent.name not in AROUND and node.name in (CONSTANT, COMPARE)
        if is_within or is_start_alone(node):
            return None
        found = refused_form(context.graph, context.target, node, self.name)
        if found is None:
            return None
        if not node.is_static and found is not ODD_BELOW_ZERO:
            return self.subject(context, node)
        facts = [FormFacts(RefusedForm.of(found))]
        sites = (Site(operand) for operand in node.operands)
        if found is TOTAL_ORDER and all(may_have_one_nan(context.analysis.sources, site) for site in sites):
            facts.append(FormFacts(RefusedForm.of(found), Nan.ONE))
        return self.subject(context, node, *facts)
