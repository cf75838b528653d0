"""The Cholesky factor, column by column."""

from collections.abc import Sequence

from hlo_lower.graph import Value
from hlo_lower.lowerings.linear_algebra.matrix_call import CHOLESKY, LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowerings.linear_algebra.stack import COUNTER, Stack
from hlo_lower.lowerings.plain_op import Numbers
from hlo_lower.registry import RuleList

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.CHOLESKY},
    numbers={Numbers.BOUNDED},
    form="column by column: a root, a division, an outer product",
)
def cholesky_to_columns(op: MatrixLowering) -> Sequence[Value]:
    """Compute the factor column by column, each taken from what stands right of it.

        for k:  l[i] = a[i, k] / sqrt(a[k, k]);  a[i, j] -= l[i] * l[j]  for j > k;  a[:, k] = l

    Equal up to rounding: both are the exact factor of a matrix that differs from the given one by at most about
    n * eps of its norm (Higham, theorem 10.3). Only the triangle that is asked for is read; the other one is given back
    as it was, as LAPACK does, and is zero in `stablehlo.cholesky`, as XLA gives it. `info` is the number of the first
    pivot that is not above zero (NaN is not), 0 where there is none. Then LAPACK leaves the rest unfinished, and here
    that is NaN: JAX replaces all of both by NaN. Costs n steps over the matrix.
    """
    node, lower = op.node, op.facts.flags["lower"]
    stack = Stack.of(op.build, node.operand(0), 2)
    given = stack.flat(node.operand(0), 2)
    a = given if lower else stack.transposed(given)
    n = a.static_shape[-1]
    info = op.build.constant(0, stack.batch, COUNTER)
    a, info = stack.steps(n, [a, info], _column)
    factor = a if lower else stack.transposed(a)
    rows, columns = stack.place((n, n), 0), stack.place((n, n), 1)
    is_read = op.build.compare(rows, "GE" if lower else "LE", columns)
    if node.name == CHOLESKY:
        failed = op.build.compare(info, "NE", op.build.constant(0, stack.batch, COUNTER))
        factor = stack.where(is_read, factor, stack.number(0.0, (n, n)))
        factor = stack.where(stack.spread(failed, (n, n), []), stack.number(float("nan"), (n, n)), factor)
        return [op.build.reshape(factor, node.result(0).static_shape)]
    factor = stack.where(is_read, factor, given)
    return [op.build.reshape(v, r.static_shape) for v, r in zip((factor, info), node.results, strict=True)]


def _column(stack: Stack, k: Value, carried: tuple[Value, ...]) -> Sequence[Value]:
    """One column of the factor, and what is left right of it."""
    (a, info), build = carried, stack.build
    n = a.static_shape[-1]
    column = stack.part(a, k, 1)
    pivot = stack.part(column, k, 0)
    root = stack.spread(stack.op("sqrt", pivot), (n,), [])
    rows, here = stack.place((n,), 0), stack.step(k, (n,))
    below = stack.where(build.compare(rows, "GT", here), stack.op("divide", column, root), stack.number(0.0, (n,)))
    factor = stack.where(build.compare(rows, "EQ", here), root, below)
    columns, now = stack.place((n, n), 1), stack.step(k, (n, n))
    left = stack.where(build.compare(columns, "GT", now), stack.op("subtract", a, stack.outer(factor, factor)), a)
    a = stack.where(build.compare(columns, "EQ", now), stack.spread(factor, (n, n), [0]), left)
    is_fine = build.compare(pivot, "GT", stack.number(0.0, ()))
    zero, one = (build.constant(c, stack.batch, COUNTER) for c in (0, 1))
    found = stack.where(build.compare(info, "EQ", zero), stack.op("add", stack.step(k, ()), one), info)
    return [a, stack.where(is_fine, info, found)]
