"""Differences and quotients whose sides a consumer swaps."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops import names
from hlo_lower.ops.origins import MOVED_OR_ALONE, UNMOVED, ComesFrom
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, hold_operand, module, over_each

SIDED = (names.SUBTRACT, names.DIVIDE)
"""Arithmetic that is another where its sides are swapped."""

UNTURNED = UNMOVED | (MOVED_OR_ALONE - {names.TRANSPOSE})
"""What no transpose is made for. Products of batches, convolutions, windows and gathers get one behind."""


def _may_turn(made: Node | None) -> bool:
    """Whether an op is a transpose, or is converted with one behind it."""
    if made is None or made.name in UNTURNED:
        return False
    return made.name != names.DOT_GENERAL or bool(mlir.dot_dimension_numbers(made.raw).lhs_batching_dimensions)


class _Swapped:
    """Whether the left side may be computed as a constant, and the right one may be a transpose."""

    def __init__(self, graph: Graph) -> None:
        self._is_turned = ComesFrom(graph, _may_turn, MOVED_OR_ALONE)
        self._is_given = ComesFrom(graph, lambda made: made is None or made.name == names.OPTIMIZATION_BARRIER, None)

    def __call__(self, node: Node) -> bool:
        return self._is_turned(node.operand(1)) and not self._is_given(node.operand(0))


@over_each(*SIDED, of=_Swapped)
def hold_swapped(is_swapped: _Swapped, node: Node) -> None:
    """Put a barrier behind the right side of an op that a consumer would compute before the transpose, swapped."""
    if is_swapped(node):
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
    lambda graph, node: _Swapped(graph)(node),
    (Rewrite("hold-swapped", "holds back a transpose that would swap sides", hold_swapped, Place.LAST),),
    is_reported=False,
)
