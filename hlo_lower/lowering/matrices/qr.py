"""QR by Householder reflections: the factor and its reflections, and Q of the reflections."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import traced
from hlo_lower.lowering.matrices.matrix_call import LINEAR_ALGEBRA, MatrixLowering, Routine
from hlo_lower.lowering.matrices.stack import flat, outer, part, places, steps
from hlo_lower.lowering.single_ops.plain_op import Numbers

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.QR},
    numbers={Numbers.BOUNDED},
    form="column by column: a reflection that makes what stands below the diagonal zero",
)
def qr_to_reflections(op: MatrixLowering) -> Sequence[Value]:
    """Reflect column by column, each onto its diagonal element.

        for k:  beta = -sign(a[k, k]) * |a[k:, k]|;  tau = (beta - a[k, k]) / beta;  v = a[k:, k] / (a[k, k] - beta)
                v[k] = 1;  a -= tau * v (v' a)  right of column k;  a[k, k] = beta, and v stands below it

    Equal up to rounding, with LAPACK's signs: beta's is the opposite of a[k, k]'s, tau is 0 and the column stays where
    nothing stands below the diagonal. Both are exact for a matrix whose columns differ by at most about m n * eps of
    their norms (Higham, theorem 19.4). Norms are of what is divided by its largest element, so their squares do not
    overflow; LAPACK's further scaling of columns near the smallest normal number is left out. Costs min(m, n) steps.
    """
    node, build = op.node, op.build
    a = flat(build, node.operand(0), 2)
    *batch, m, n = a.static_shape
    taus = build.float_splat(0.0, (*batch, min(m, n)), a.element_type)
    found = steps(build, min(m, n), [a, taus], _reflection)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _reflection(k: Array, a: Array, taus: Array) -> tuple[Array, Array]:
    """One reflection, and what it makes of the columns right of it."""
    rows, columns, column = places(a.shape[-2]), places(a.shape[-1]), part(a, k)
    is_below, alpha = rows > k, part(column, k)
    beta, is_done = _mirrored(alpha, jnp.where(is_below, column, 0.0))
    tau = jnp.where(is_done, 0.0, (beta - alpha) / beta)
    scaled = jnp.where(is_done[..., None], column, column / (alpha - beta)[..., None])
    vector = jnp.where(is_below, scaled, _one_at(k, column))
    right = jnp.where(columns > k, _reflected(vector, tau, a), a)
    beta = jnp.where(is_done, alpha, beta)[..., None]
    own = jnp.where(rows == k, beta, jnp.where(is_below, scaled, column))
    a = jnp.where(columns == k, own[..., None], right)
    return a, jnp.where(places(taus.shape[-1]) == k, tau[..., None], taus)


def _one_at(k: Array, column: Array) -> Array:
    """1 at a place, 0 elsewhere."""
    return jnp.where(places(column.shape[-1]) == k, 1.0, column.dtype.type(0))


def _mirrored(alpha: Array, below: Array) -> tuple[Array, Array]:
    """-sign(alpha) times the norm of alpha and what stands below it, and whether nothing stands there."""
    largest = jnp.max(jnp.abs(below), -1)
    size = jnp.maximum(largest, jnp.abs(alpha))
    size = jnp.where(size == 0.0, 1.0, size)
    scaled, first = below / size[..., None], alpha / size
    norm = size * jnp.sqrt(jnp.sum(scaled * scaled, -1) + first * first)
    is_negative = (alpha < 0.0) | (1.0 / alpha < 0.0)  # -0 is, too
    return jnp.where(is_negative, norm, -norm), largest == 0.0


def _reflected(vector: Array, tau: Array, a: Array) -> Array:
    """a - tau * v (v' a)."""
    products = jnp.sum(vector[..., None] * a, -2)
    return a - outer(vector, tau[..., None] * products)


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.ORTHOGONAL},
    numbers={Numbers.BOUNDED},
    form="the reflections applied to the identity, the last one first",
)
def reflections_to_q(op: MatrixLowering) -> Sequence[Value]:
    """Multiply the reflections out.

        q = 1 on the diagonal;  for k from the last to 0:  v = (0, ..., 1, a[k+1:, k]);  q -= tau[k] * v (v' q)

    Equal up to rounding: both differ from the product of the exact reflections by at most about m n * eps (Higham,
    lemma 19.3). What stands on and above the diagonal is not read. Costs as many steps over the matrix as there are
    reflections.
    """
    node, build = op.node, op.build
    a, taus = flat(build, node.operand(0), 2), flat(build, node.operand(1), 1)
    count = taus.static_shape[-1]
    [q] = traced(build, _ones, a)
    return [build.reshape(steps(build, count, [a, taus, q], _applied)[2], node.result(0).static_shape)]


def _ones(a: Array) -> Array:
    """1 on the diagonal, 0 elsewhere."""
    diagonal = places(a.shape[-2])[:, None] == places(a.shape[-1])
    return jnp.broadcast_to(jnp.where(diagonal, 1.0, a.dtype.type(0)), a.shape)


def _applied(number: Array, a: Array, taus: Array, q: Array) -> tuple[Array, Array, Array]:
    """One reflection of q, the last one first."""
    k = taus.shape[-1] - 1 - number
    column = part(a, k)
    vector = jnp.where(places(column.shape[-1]) > k, column, _one_at(k, column))
    return a, taus, _reflected(vector, part(taus, k), q)
