"""Triangular systems of equations, row by row."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.matrices.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowering.matrices.stack import flat, outer, part, places, steps, transposed
from hlo_lower.lowering.single_ops.plain_op import Numbers

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
    a, b = (flat(build, operand, 2) for operand in op.node.operands)
    lower, is_turned = flags["lower"], flags["transposed"]
    if not flags["left"]:
        b, is_turned = transposed(build, b), not is_turned
    if is_turned:
        a, lower = transposed(build, a), not lower
    _, x = steps(build, a.static_shape[-1], [a, b], _row, is_lower=lower, is_unit=flags["unit"])
    return [build.reshape(x if flags["left"] else transposed(build, x), op.node.result(0).static_shape)]


def _row(number: Array, a: Array, b: Array, *, is_lower: bool, is_unit: bool) -> tuple[Array, Array]:
    """One row of the solution, taken from the rows that are left."""
    k = number if is_lower else a.shape[-1] - 1 - number
    rows, column, row = places(a.shape[-1])[:, None], part(a, k), part(b, k, -2)
    if not is_unit:
        row = row / part(column, k)[..., None]
    b = jnp.where(rows > k if is_lower else rows < k, b - outer(column, row), b)
    return a, jnp.where(rows == k, row[..., None, :], b)
