"""Matrix products and convolutions of 64-bit integers on their halves, by those of digits of 8 bits."""

from collections.abc import Sequence
from math import prod

from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.types.carried.carrying import Carrying
from hlo_lower.lowering.types.carried.halves import HALF
from hlo_lower.lowering.types.carried.halves_folded import digits_of, sum_of_places
from hlo_lower.lowering.types.carried.pairs import join, split
from hlo_lower.ops.names import DOT_GENERAL

PRODUCTS = ("dot_general", "convolution")
"""Ops of which each element is a sum of products of two: linear in both operands."""

DIGIT = 8
MOST = 1 << 15
"""Products of two digits are below 2^16, so that a sum of so many is below 2^31."""


def product_of_halves(c: Carrying, node: Node, operands: Sequence[Value]) -> Value:
    """The product modulo 2^64: of digits i and j, each one as it stands, in the place of 2^(8 (i + j)).

    Raises:
      DoesNotApply: it sums too many products, or of other types.
    """
    if len({value.element_type for value in (*node.operands, *node.results)}) > 1 or not node.is_static:
        raise DoesNotApply("of two element types, or of dynamic shape")
    if _summed(node) > MOST:
        raise DoesNotApply(f"sums of more than {MOST:,} products")
    left, right = (digits_of(c, split(c.build, value), DIGIT) for value in operands)
    raw_type, attributes = mlir.tensor_type(node.result().shape, HALF), mlir.attributes_of(node.raw)
    places = [(i, j) for i in range(len(left)) for j in range(len(right) - i)]

    def product(i: int, j: int) -> Value:
        return c.build.op(node.name, [left[i], right[j]], [raw_type], attributes).result()

    return join(c.build, sum_of_places(c, [(product(i, j), DIGIT * (i + j)) for i, j in places]))


def _summed(node: Node) -> int:
    """How many products an element is the sum of, at most: each takes another element of the right operand."""
    right, result = node.operand(1).static_shape, node.result().static_shape
    if node.name == DOT_GENERAL:
        contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).rhs_contracting_dimensions)
        return prod(right[d] for d in contracted)
    return prod(right) if 0 not in result else 0
