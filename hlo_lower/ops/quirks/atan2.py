"""Arc tangents whose operands are zeros, infinities, or below zero and far apart."""

from math import inf

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.bounds import source_of
from hlo_lower.ops.names import ABS, ATAN2, NEGATE, SELECT, SIGN
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, Rules, module, over_each


def _may_be_wrong(_graph: Graph, node: Node) -> bool:
    """Whether neither operand is a constant above zero, and the first is not what the cure gives."""
    y, x = node.operands
    made = y.node
    magnitude = made.operand(2).node if made is not None and made.name == SELECT else None
    is_cured = magnitude is not None and magnitude.name == ABS
    return y.element_type in WIDE_FLOATS and not (is_cured or _is_above_zero(y) or _is_above_zero(x))


def _is_above_zero(value: Value) -> bool:
    numbers = source_of(value).constant()
    return numbers is not None and bool((np.isfinite(numbers) & (numbers > 0)).all())


@over_each(ATAN2)
def angle_of_magnitude(graph: Graph, node: Node) -> None:
    """Take the angle of the magnitude, of ones in the place of two zeros or infinities, and give it the sign.

        r = atan2(y, x)   ->   e = y == 0 and x == 0, or |y| == inf and |x| == inf
                               a = atan2(e ? sign(|y|) : |y|, e ? (x signed ? -1 : 1) : x);   r = y signed ? -a : a

    Equal, as IEEE 754 has it: atan2 is odd in y, the angle of two zeros is that of (0, +-1), and the angle of two
    infinities that of (1, +-1). Of subnormals that holds where comparisons tell them from 0.
    """
    if not node.is_static or not _may_be_wrong(graph, node):
        return
    build, (y, x) = Builder.before(node), node.operands
    zero, one, most = (build.float_splat(n, x.static_shape, x.element_type) for n in (0, 1, inf))
    size = build.abs(y)
    zeros = [build.compare(value, "EQ", zero) for value in (y, x)]
    infinities = [build.compare(value, "EQ", most) for value in (size, build.abs(x))]
    is_edge = build.or_(build.and_(*zeros), build.and_(*infinities))
    unit = build.select(_is_signed(build, x, zero, one), build.elementwise(NEGATE, one), one)
    operands = build.select(is_edge, build.elementwise(SIGN, size), size), build.select(is_edge, unit, x)
    angle = build.clone(node, operands, [y.raw.type]).result()
    result = build.select(_is_signed(build, y, zero, one), build.elementwise(NEGATE, angle), angle)
    node.result().raw.replace_all_uses_with(result.raw)
    node.raw.erase()


def _is_signed(build: Builder, value: Value, zero: Value, one: Value) -> Value:
    """Whether numbers are below zero, or -0."""
    return build.or_(build.compare(value, "LT", zero), build.compare(build.divide(one, value), "LT", zero))


V = "tensor<4xf32>"

ANGLES = Quirk(
    "atan2 of zeros or infinities",
    (ATAN2,),
    {"iree": "NaN of two zeros or infinities, and pi in place of -pi of (-0, -1) and (-1, -Inf)"},
    "that of the magnitude, with the sign",
    module(f"%y: {V}, %x: {V}", V, f"%r = stablehlo.atan2 %y, %x : {V}"),
    _may_be_wrong,
    (Rewrite("sign-atan2", "computes atan2 of the magnitude, and gives it the sign", angle_of_magnitude),),
)

COMPUTED = Quirk(
    "atan2 with a computed x",
    (ATAN2,),
    {"coreml": "it is atan(y / x), with pi added by the sign of y: NaN of two zeros, 0 of (0, -1)"},
    "a polynomial of y / x, unless x is a constant above 0",
    module(f"%y: {V}, %x: {V}", V, f"%r = stablehlo.atan2 %y, %x : {V}"),
    lambda _graph, node: not _is_above_zero(node.operand(1)),
    (Rules("op", ("atan2_to_polynomial",)),),
)
