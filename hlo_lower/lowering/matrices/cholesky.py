"""The Cholesky factor, column by column."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import traced
from hlo_lower.lowering.matrices.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowering.matrices.stack import COUNTER, flat, outer, part, places, steps, transposed
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import CHOLESKY

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
    build, node, lower = op.build, op.node, op.facts.flags["lower"]
    given = flat(build, node.operand(0), 2)
    a = given if lower else transposed(build, given)
    info = build.constant(0, given.static_shape[:-2], COUNTER)
    a, info = steps(build, given.static_shape[-1], [a, info], _column)
    a = a if lower else transposed(build, a)
    if node.name == CHOLESKY:
        found = traced(build, _alone, a, info, lower=lower)
    else:
        found = [*traced(build, _beside, a, given, lower=lower), info]
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _beside(factor: Array, other: Array | float, *, lower: bool) -> Array:
    """The triangle of the factor, and something else in the other one."""
    rows, columns = places(factor.shape[-1])[:, None], places(factor.shape[-1])
    return jnp.where(rows >= columns if lower else rows <= columns, factor, other)


def _alone(factor: Array, info: Array, *, lower: bool) -> Array:
    return jnp.where((info != 0)[..., None, None], jnp.nan, _beside(factor, 0.0, lower=lower))


def _column(k: Array, a: Array, info: Array) -> tuple[Array, Array]:
    """One column of the factor, and what is left right of it."""
    numbers, column = places(a.shape[-1]), part(a, k)
    pivot = part(column, k)
    root = jnp.sqrt(pivot)[..., None]
    factor = jnp.where(numbers == k, root, jnp.where(numbers > k, column / root, 0.0))
    a = jnp.where(numbers > k, a - outer(factor, factor), a)
    a = jnp.where(numbers == k, factor[..., None], a)
    return a, jnp.where(pivot > 0.0, info, jnp.where(info == 0, k + 1, info))
