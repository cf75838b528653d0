"""`stablehlo.dot_general` for consumers that multiply matrices of floats only, or not with dims in another order."""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.single_ops.plain_op import (
    PLAIN,
    Elements,
    PlainLowering,
    PlainOp,
    Whole,
    must_not_round_otherwise,
)
from hlo_lower.ops.targets.refused_forms import RefusedForm

MOST_PRODUCTS = 256
"""Products that are added one by one."""

rules = RuleList()
lowers = partial(rules.lowers, PLAIN, named={PlainOp.DOT_GENERAL})


def summed_over(node: Node) -> int:
    """How many products each element of a `dot_general` is the sum of."""
    contracted: list[int] = list(mlir.dot_dimension_numbers(node.raw).lhs_contracting_dimensions)
    return prod(node.operand(0).static_shape[d] for d in contracted)


@lowers(
    elements={Elements.SIGNED, Elements.UNSIGNED},
    needs={Whole.WHOLE},
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
    left = matrices(build, left, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, is_left=True)
    right = matrices(build, right, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, is_left=False)
    (batch, rows, count), columns = left.static_shape, right.static_shape[2]
    if not count:
        raise DoesNotApply("it sums nothing")
    found: Value | None = None
    for k in range(count):
        column = build.reshape(build.slice(left, [0, 0, k], [batch, rows, k + 1]), [batch, rows])
        row = build.reshape(build.slice(right, [0, k, 0], [batch, k + 1, columns]), [batch, columns])
        shape = [batch, rows, columns]
        product = build.multiply(build.broadcast(column, shape, [0, 1]), build.broadcast(row, shape, [0, 2]))
        found = product if found is None else build.add(found, product)
    assert found is not None
    return [build.reshape(found, result.static_shape)]


def matrices(
    build: Builder,
    value: Value,
    batch: Sequence[int],
    contracting: Sequence[int],
    *,
    is_left: bool,
    transpose: Callable[[Builder, Value, Sequence[int]], Value] = Builder.transpose,
) -> Value:
    """[batch, rows, contracted] of the left operand, [batch, contracted, columns] of the right one."""
    shape = value.static_shape
    free = [d for d in range(len(shape)) if d not in batch and d not in contracting]
    parts = [list(batch), free, list(contracting)] if is_left else [list(batch), list(contracting), free]
    moved = transpose(build, value, [d for part in parts for d in part])
    return build.reshape(moved, [prod(shape[d] for d in part) for part in parts])


@lowers(
    needs={RefusedForm.CONTRACTED_APART},
    form="the right operand transposed, so that its contracting dims are in the order of the left one's",
)
def dot_to_ordered_dot(op: PlainLowering) -> Sequence[Value]:
    """Move the contracting dims of the right operand into the order of those of the left one.

        dot_general %x[3, 4, 5], %y[5, 4, 2], contracting [1, 2] x [1, 0]
        ->
        dot_general %x[3, 4, 5], transpose(%y)[4, 5, 2], contracting [1, 2] x [0, 1]

    Equal: each element is the sum of the same products. In which order is XLA's own, by shape: of integers that is no
    matter, floats may be rounded otherwise (float mode reassociate).
    """
    must_not_round_otherwise(op)
    node, numbers = op.node, mlir.dot_dimension_numbers(op.node.raw)
    pairs = sorted(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    left, right = node.operands
    places, order = sorted(d for _, d in pairs), list(range(len(right.static_shape)))
    for place, (_, dim) in zip(places, pairs, strict=True):
        order[place] = dim
    moved = op.build.transpose(right, order)
    batch = f"lhs_batching_dimensions = {list(numbers.lhs_batching_dimensions)}, "
    batch += f"rhs_batching_dimensions = {list(numbers.rhs_batching_dimensions)}"
    contracted = f"lhs_contracting_dimensions = {[d for d, _ in pairs]}, rhs_contracting_dimensions = {places}"
    other = {"dot_dimension_numbers": mlir.parse_attribute(f"#stablehlo.dot<{batch}, {contracted}>")}
    return op.build.copy_on(node, [left, moved], [node.result().raw.type], other).results


@lowers(needs={RefusedForm.EMPTY_SUM}, form="zeros")
def dot_to_zeros(op: PlainLowering) -> Sequence[Value]:
    """Give zeros for what sums nothing. Equal: a sum begins with zero."""
    result = op.node.result()
    return [op.build.broadcast(op.build.zero(mlir.tensor_element(result.raw.type)), result.static_shape)]


def has_contracted_apart(node: Node) -> bool:
    """Whether the contracting dims of a `dot_general` are in another order on its right side."""
    numbers = mlir.dot_dimension_numbers(node.raw)
    pairs = sorted(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    return [d for _, d in pairs] != sorted(d for _, d in pairs)
