"""Convolutions of integers, on a consumer that has them of floats only."""

from math import prod

from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.names import CONVOLUTION
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module

MOST_EXACT = 1 << 24
"""Up to it f32 holds every integer."""


def _is_exact_in_floats(_graph: Graph, node: Node) -> bool:
    """Whether integers are multiplied whose sums of products lie within 2^24, by their types."""
    ends = [type_range(value.element_type) for value in node.operands]
    kernel, features = node.operand(1).static_shape, mlir.convolution_dimension_numbers(node.raw).kernel_output_feature
    products = prod(size for dim, size in enumerate(kernel) if dim != features)
    largest = prod(max(-end[0], end[1]) if end is not None else MOST_EXACT + 1 for end in ends)
    return products * largest <= MOST_EXACT and node.result().element.bits >= 32


X, K, R = "tensor<1x4x2xi8>", "tensor<3x2x3xi8>", "tensor<1x2x3xi32>"

NARROW_CONVOLUTION = Quirk(
    "convolution of narrow integers",
    (CONVOLUTION,),
    {"litert": "it has no kernel"},
    "one of f32, which holds each of their sums",
    module(
        f"%x: {X}, %k: {K}",
        R,
        "%r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],",
        "  window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
        f"  : ({X}, {K}) -> {R}",
    ),
    _is_exact_in_floats,
    (Rules("op", ("integer_convolution_to_float",)),),
)
