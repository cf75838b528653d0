"""Differences and quotients whose sides a consumer swaps."""

from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops import names
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, hold_operand, module, over_each
from hlo_lower.ops.quirks.sums import ARGUMENT, MOVED_OR_ALONE, makers_of

SIDED = (names.SUBTRACT, names.DIVIDE)
"""Arithmetic that is another where its sides are swapped."""

UNTURNED = (MOVED_OR_ALONE - {names.TRANSPOSE}) | {names.CONSTANT, names.IOTA, names.OPTIMIZATION_BARRIER, ARGUMENT}
"""What no transpose is made for. Products, convolutions, windows and gathers are converted with one behind them."""


def _is_swapped(graph: Graph, node: Node) -> bool:
    """Whether the left side may be computed as a constant, and the right one may be a transpose."""
    turned = makers_of(graph, node.operand(1))
    if turned is not None and turned <= UNTURNED:
        return False
    fixed = makers_of(graph, node.operand(0), through=None)
    return fixed is None or not fixed & {ARGUMENT, names.OPTIMIZATION_BARRIER}


@over_each(*SIDED)
def hold_swapped(graph: Graph, node: Node) -> None:
    """Put a barrier behind the right side of an op that a consumer would compute before the transpose, swapped."""
    if _is_swapped(graph, node):
        hold_operand(node, 1)


SWAPPED = Quirk(
    "constant minus or over what is turned",
    SIDED,
    {"litert": "it transposes the result instead, and swaps the sides: `1 - x.T` is `(x - 1).T` there"},
    "the same op, its right operand behind an `optimization_barrier`",
    module(
        "%x: tensor<2x3xf32>",
        "tensor<3x2xf32>",
        "%c = stablehlo.constant dense<1.0> : tensor<3x2xf32>",
        "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
        "%r = stablehlo.subtract %c, %t : tensor<3x2xf32>",
    ),
    _is_swapped,
    (Rewrite("hold-swapped", "holds back a transpose that would swap sides", hold_swapped, Place.LAST),),
    is_reported=False,
)
