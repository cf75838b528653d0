"""`stablehlo.dot_general` of integers, for consumers that multiply matrices of floats only."""

from collections.abc import Sequence
from math import prod

from hlo_lower import mlir
from hlo_lower.graph import Builder, Node, Value
from hlo_lower.lowerings.plain_op import PLAIN, Elements, PlainLowering, PlainOp
from hlo_lower.registry import DoesNotApply, RuleList, When

MOST_PRODUCTS = 256
"""Products that are added one by one."""

rules = RuleList()


def summed_over(node: Node) -> int:
    """How many products each element of a `dot_general` is the sum of."""
    contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).lhs_contracting_dimensions)
    return prod(node.operand(0).static_shape[d] for d in contracted)


@rules.lowers(
    PLAIN,
    named={PlainOp.DOT_GENERAL},
    elements={Elements.SIGNED, Elements.UNSIGNED},
    when=When(f"sums of {MOST_PRODUCTS} products at most", lambda facts: facts.summed <= MOST_PRODUCTS),
    form="x[..., 0] * y[0, ...] + x[..., 1] * y[1, ...] + ...",
)
def integer_dot_to_products(op: PlainLowering) -> Sequence[Value]:
    """Add the products of columns and rows, one after the other.

    Equal: sums and products of integers wrap, in any order. Costs a multiplication and an addition of the result's size
    for each of the numbers that are summed.
    """
    build, node = op.build, op.node
    numbers = mlir.dot_dimension_numbers(node.raw)
    result = node.result()
    left, right = (build.convert(value, mlir.tensor_element(result.raw.type)) for value in node.operands)
    left = _matrices(build, left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, is_left=True)
    right = _matrices(build, right, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, is_left=False)
    (batch, rows, count), columns = left.static_shape, right.static_shape[2]
    if not count:
        raise DoesNotApply("it sums nothing")
    found: Value | None = None
    for k in range(count):
        column = build.reshape(build.slice(left, [0, 0, k], [batch, rows, k + 1]), [batch, rows])
        row = build.reshape(build.slice(right, [0, k, 0], [batch, k + 1, columns]), [batch, columns])
        shape = [batch, rows, columns]
        product = build.elementwise(
            "multiply", build.broadcast(column, shape, [0, 1]), build.broadcast(row, shape, [0, 2])
        )
        found = product if found is None else build.elementwise("add", found, product)
    assert found is not None
    return [build.reshape(found, result.static_shape)]


def _matrices(
    build: Builder, value: Value, batch: Sequence[int], contracting: Sequence[int], *, is_left: bool
) -> Value:
    """[batch, rows, contracted] of the left operand, [batch, contracted, columns] of the right one."""
    shape = value.static_shape
    free = [d for d in range(len(shape)) if d not in batch and d not in contracting]
    parts = [list(batch), free, list(contracting)] if is_left else [list(batch), list(contracting), free]
    moved = build.transpose(value, [d for part in parts for d in part])
    return build.reshape(moved, [prod(shape[d] for d in part) for part in parts])
