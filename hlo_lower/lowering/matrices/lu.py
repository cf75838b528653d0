"""LU with partial pivoting, column by column."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.matrices.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowering.matrices.stack import COUNTER, flat, outer, part, places, steps
from hlo_lower.lowering.single_ops.plain_op import Numbers

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
    a = flat(build, node.operand(0), 2)
    *batch, m, n = a.static_shape
    pivots, info = (build.constant(0, (*batch, *own), COUNTER) for own in ((min(m, n),), ()))
    found = steps(build, min(m, n), [a, pivots, info], _column)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _column(k: Array, a: Array, pivots: Array, info: Array) -> tuple[Array, Array, Array]:
    """One column of L and one row of U, and what is left right of and below them."""
    rows, columns = places(a.shape[-2])[:, None], places(a.shape[-1])
    pivot = _first_largest(k, part(a, k))
    # Row k and the pivot's are exchanged.
    is_pivot = rows == pivot[..., None, None]
    row = jnp.sum(jnp.where(is_pivot, a, 0.0), -2)
    a = jnp.where(is_pivot, part(a, k, -2)[..., None, :], a)
    a = jnp.where(rows == k, row[..., None, :], a)
    divisor, column = part(row, k), part(a, k)
    is_zero = divisor == 0.0
    factors = jnp.where(is_zero[..., None], column, column / divisor[..., None])
    left = jnp.where(columns > k, a - outer(factors, row), a)
    a = jnp.where(rows > k, jnp.where(columns == k, factors[..., None], left), a)
    pivots = jnp.where(places(pivots.shape[-1]) == k, (pivot + 1)[..., None], pivots)
    return a, pivots, jnp.where(is_zero, jnp.where(info == 0, k + 1, info), info)


def _first_largest(k: Array, column: Array) -> Array:
    """Of each column the first place from k on of its largest magnitude; k where that is NaN."""
    rows, none = places(column.shape[-1]), column.shape[-1]
    sizes = jnp.where(rows >= k, jnp.abs(column), -1.0)
    first = jnp.min(jnp.where(sizes == jnp.max(sizes, -1)[..., None], rows, none), -1)
    return jnp.where(first == none, k, first)
