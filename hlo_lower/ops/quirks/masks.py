"""Scores of an attention that are masked in f32 where they were computed in f16."""

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import ADD, CONSTANT, CONVERT, SELECT
from hlo_lower.ops.origins import MOVED_OR_ALONE, ComesFrom
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, hold_result, is_held, module, over_each

LEAST = element_type("f16").least


def _is_beyond_half(made: Node | None) -> bool:
    """Whether an op is a constant with numbers that are minus infinity in f16, and not in f32."""
    if made is None or made.name != CONSTANT or made.result().element_type != "f32":
        return False
    numbers = made.constant()
    return numbers is not None and bool(np.any((numbers < LEAST) & np.isfinite(numbers)))


def _is_widened(made: Node | None) -> bool:
    """Whether an op makes f32 of f16."""
    return made is not None and made.name == CONVERT and made.operand(0).element_type == "f16"


class Masked:
    """Whether an op masks numbers that were f16 by one that is no number of f16, each op looked at once.

    Attributes:
      graph: the module.
    """

    def __init__(self, graph: Graph) -> None:
        self._is_fill = ComesFrom(graph, _is_beyond_half, MOVED_OR_ALONE)
        self._is_half = ComesFrom(graph, _is_widened, MOVED_OR_ALONE)

    def __call__(self, node: Node) -> bool:
        """Whether it does: a select of one of both, or a sum of both; not where the result is held back."""
        *_, left, right = node.operands
        is_open = node.result().element_type == "f32" and not is_held(node)
        return is_open and (self._fills(left, right) or self._fills(right, left))

    def _fills(self, fill: Value, of: Value) -> bool:
        return self._is_fill(fill) and self._is_half(of)


@over_each(SELECT, ADD, of=Masked)
def hold_masked(masked: Masked, node: Node) -> None:
    """Compute the greater of masked numbers and themselves, in place.

        %m = select %p, (convert %s : f16), -1.0e+30   ->   the same   %h = maximum %m, %m

    Equal: of two numbers that are the same one the greater one is that number.
    """
    if masked(node):
        hold_result(node)


S, K = "tensor<2x4xf16>", "tensor<2x2xf16>"
HALF = Quirk(
    "f32 mask of f16",
    (SELECT, ADD),
    {"coreml": "it computes such an attention in f16, where a fill of -10^30 is -inf, and 0 times that NaN"},
    "the greater of what is masked and itself, which is no attention to it",
    module(
        f"%q: {S}, %k: {S}, %v: {S}, %p: tensor<2x2xi1>",
        S,
        "%f = stablehlo.constant dense<-1.0e+30> : tensor<2x2xf32>",
        "%i = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%d = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : ({S}, {S}) -> {K}",
        f"%s = stablehlo.convert %d : ({K}) -> tensor<2x2xf32>",
        "%m = stablehlo.select %p, %s, %f : tensor<2x2xi1>, tensor<2x2xf32>",
        "%g = stablehlo.reduce(%m init: %i) applies stablehlo.maximum across dimensions = [1]",
        "  : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>",
        "%b = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32>",
        "%n = stablehlo.subtract %m, %b : tensor<2x2xf32>",
        "%e = stablehlo.exponential %n : tensor<2x2xf32>",
        "%t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1]",
        "  : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>",
        "%c = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32>",
        "%w = stablehlo.divide %e, %c : tensor<2x2xf32>",
        f"%h = stablehlo.convert %w : (tensor<2x2xf32>) -> {K}",
        f"%r = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : ({K}, {S}) -> {S}",
    ),
    lambda graph, node: Masked(graph)(node),
    (Rewrite("hold-masked", "holds back what is masked in f32 of f16", hold_masked, Place.LAST),),
    is_reported=False,
)
