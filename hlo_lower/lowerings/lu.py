"""LU with partial pivoting, column by column."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.graph import Value
from hlo_lower.lowerings.linear_algebra.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowerings.linear_algebra.stack import COUNTER, Stack
from hlo_lower.lowerings.plain_op import Numbers
from hlo_lower.registry import RuleList

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.LU},
    numbers={Numbers.BOUNDED},
    form="column by column: a pivot, two rows exchanged, an outer product",
)
def lu_to_columns(op: MatrixLowering) -> Sequence[Value]:
    """Eliminate column by column, each by the first of its largest elements.

        for k:  p = the first i >= k of the largest |a[i, k]|;  exchange rows k and p
                l[i] = a[i, k] / a[k, k];  a[i, j] -= l[i] * a[k, j]  for i, j > k

    Equal up to rounding: both are exact for a matrix that differs by at most about n * eps of |L| |U| (Higham, theorem
    9.3), with the same pivots but where two candidates are as near as that. Pivots count from 1. A column of zeros is
    left as it is and `info` is the number of the first one, 0 where there is none. Which row NaN or infinity in a
    column makes the pivot, LAPACK does not say. Costs min(m, n) steps over the matrix.
    """
    node, build = op.node, op.build
    stack = Stack.of(build, node.operand(0), 2)
    a = stack.flat(node.operand(0), 2)
    count = min(a.static_shape[-2:])
    pivots, info = (build.constant(0, (*stack.batch, *own), COUNTER) for own in ((count,), ()))
    found = stack.steps(count, [a, pivots, info], _column)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _column(stack: Stack, k: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
    """One column of L and one row of U, and what is left right of and below them."""
    (a, pivots, info), build = carried, stack.build
    m, n = a.static_shape[-2:]
    pivot = _first_largest(stack, k, stack.part(a, k, 1))
    a, row = _exchanged(stack, k, pivot, a)
    divisor, column = stack.part(row, k, 0), stack.part(a, k, 1)
    is_zero = build.compare(divisor, "EQ", stack.number(0.0, ()))
    quotients = stack.op("divide", column, stack.spread(divisor, (m,), []))
    factors = stack.where(stack.spread(is_zero, (m,), []), column, quotients)
    rows, columns, now = stack.place((m, n), 0), stack.place((m, n), 1), stack.step(k, (m, n))
    left = stack.where(build.compare(columns, "GT", now), stack.op("subtract", a, stack.outer(factors, row)), a)
    below = stack.where(build.compare(columns, "EQ", now), stack.spread(factors, (m, n), [0]), left)
    a = stack.where(build.compare(rows, "GT", now), below, a)
    count = pivots.static_shape[-1]
    here = build.compare(stack.place((count,), 0), "EQ", stack.step(k, (count,)))
    zero, one = (build.constant(c, stack.batch, COUNTER) for c in (0, 1))
    pivots = stack.where(here, stack.spread(stack.op("add", pivot, one), (count,), []), pivots)
    found = stack.where(build.compare(info, "EQ", zero), stack.op("add", stack.step(k, ()), one), info)
    return [a, pivots, stack.where(is_zero, found, info)]


def _first_largest(stack: Stack, k: Value, column: Value) -> Value:
    """Of each column the first place from k on of its largest magnitude; k where that is NaN."""
    build, m = stack.build, column.static_shape[-1]
    rows = stack.place((m,), 0)
    open_ = build.compare(rows, "GE", stack.step(k, (m,)))
    sizes = stack.where(open_, stack.op("abs", column), stack.number(-1.0, (m,)))
    largest = stack.reduced(sizes, build.infinity(mlir.tensor_element(sizes.raw.type), is_negative=True), 0, "maximum")
    is_largest = build.compare(sizes, "EQ", stack.spread(largest, (m,), []))
    none = build.constant(m, (*stack.batch, m), COUNTER)
    places = stack.where(is_largest, rows, none)
    first = stack.reduced(places, build.constant(2**31 - 1, (), COUNTER), 0, "minimum")
    is_none = build.compare(first, "EQ", build.constant(m, stack.batch, COUNTER))
    return stack.where(is_none, stack.step(k, ()), first)


def _exchanged(stack: Stack, k: Value, pivot: Value, a: Value) -> tuple[Value, Value]:
    """The matrices with row k and the pivot's exchanged, and what is row k then."""
    build, (m, n) = stack.build, a.static_shape[-2:]
    rows = stack.place((m, n), 0)
    is_pivot = build.compare(rows, "EQ", stack.spread(pivot, (m, n), []))
    row = stack.sum(stack.where(is_pivot, a, stack.number(0.0, (m, n))), 0)
    a = stack.where(is_pivot, stack.spread(stack.part(a, k, 0), (m, n), [1]), a)
    is_now = build.compare(rows, "EQ", stack.step(k, (m, n)))
    return stack.where(is_now, stack.spread(row, (m, n), [1]), a), row
