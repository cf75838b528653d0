"""Triangular systems of equations, row by row."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.linear_algebra.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowerings.linear_algebra.stack import COUNTER, Stack
from hlo_lower.lowerings.plain_op import Numbers
from hlo_lower.registry import RuleList

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.TRIANGULAR_SOLVE},
    numbers={Numbers.BOUNDED},
    form="row by row: a division, an outer product taken from the rows that are left",
)
def triangular_solve_to_rows(op: MatrixLowering) -> Sequence[Value]:
    """Solve op(A) X = B for lower triangular op(A) from the first row on, for upper from the last.

        for k:  x[k] = b[k] / a[k, k];  b[i] -= a[i, k] * x[k]  for the rows i that are left

    Equal up to rounding: both are the exact solution for a matrix each of whose elements differs by at most about n *
    eps of itself (Higham, theorem 8.5). X op(A) = B is the transposed system. The other triangle is not read, nor is
    the diagonal where it is ones. A zero on it gives infinities and NaN, as everywhere. Costs n steps over B.
    """
    flags, build = op.facts.flags, op.build
    stack = Stack.of(build, op.node.operand(0), 2)
    a, b = (stack.flat(operand, 2) for operand in op.node.operands)
    lower, transposed = flags["lower"], flags["transposed"]
    if not flags["left"]:
        b, transposed = stack.transposed(b), not transposed
    if transposed:
        a, lower = stack.transposed(a), not lower
    n = a.static_shape[-1]

    def step(inner: Stack, number: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
        (a, b) = carried
        last = inner.build.constant(n - 1, (), COUNTER)
        k = number if lower else inner.op("subtract", last, number)
        return [a, _row(inner, k, a, b, is_lower=lower, is_unit=flags["unit"])]

    x = stack.steps(n, [a, b], step)[1]
    return [build.reshape(x if flags["left"] else stack.transposed(x), op.node.result(0).static_shape)]


def _row(stack: Stack, k: Value, a: Value, b: Value, *, is_lower: bool, is_unit: bool) -> Value:
    """One row of the solution, taken from the rows that are left."""
    build, (n, m) = stack.build, b.static_shape[-2:]
    column, row = stack.part(a, k, 1), stack.part(b, k, 0)
    if not is_unit:
        row = stack.op("divide", row, stack.spread(stack.part(column, k, 0), (m,), []))
    rows, here = stack.place((n, m), 0), stack.step(k, (n, m))
    left = build.compare(rows, "GT" if is_lower else "LT", here)
    b = stack.where(left, stack.op("subtract", b, stack.outer(column, row)), b)
    return stack.where(build.compare(rows, "EQ", here), stack.spread(row, (n, m), [1]), b)
