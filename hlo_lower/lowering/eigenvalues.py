"""Eigenvalues of symmetric matrices, and singular values, by Jacobi's rotations; there is no rule for vectors."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.traced import build_traced
from hlo_lower.lowering.matrices import (
    LINEAR_ALGEBRA,
    MatrixLowering,
    Routine,
    flat,
    places,
    steps,
    transpose_matrices,
)
from hlo_lower.lowering.single_ops.plain_op import Numbers

SWEEPS = {"f32": 10, "f64": 14}
"""How often all pairs are rotated. Each sweep about squares what is left, once little is."""

rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.EIGENVALUES},
    numbers={Numbers.BOUNDED},
    form="Jacobi's rotations of all pairs, side by side, and the diagonal in order",
)
def eigenvalues_to_rotations(op: MatrixLowering) -> Sequence[Value]:
    """Rotate pairs of rows and columns until a symmetric matrix is diagonal, and give its diagonal, the least first.

        for each round:  rows and columns k and k + n/2 are a pair, for all k at once
            t = sign(z) / (|z| + sqrt(1 + z^2)),  z = (a[q, q] - a[p, p]) / (2 a[p, q]);   t = 0 where a[p, q] is 0
            c = 1 / sqrt(1 + t^2);  s = t c;   rows, then columns: p, q = c p - s q, s p + c q
            all but the first are moved on by one, so that n - 1 rounds meet all pairs

    Equal up to rounding: each rotation is orthogonal within a few eps, so the eigenvalues move by about rounds * eps of
    the norm (Weyl), and what is left beside the diagonal after the sweeps is below that. Only the triangle asked for
    is read. Of a matrix with a NaN or infinity all are NaN, and of NaN `info` is not 0. Eigenvectors are not read, and
    get the matrix in their place. Costs some ten times n rounds over the matrix.
    """
    build, node, lower = op.build, op.node, op.facts.flags["lower"]
    a = flat(build, node.operand(0), 2)
    a = a if lower else transpose_matrices(build, a)
    [whole] = build_traced(build, _symmetric, a)
    size = whole.static_shape[-1]
    [turned] = steps(build, _rounds(size, a.element_type), [whole], _rotate_symmetric)
    values, info = build_traced(build, _diagonal_in_order, turned, count=a.static_shape[-1])
    found = [node.operand(0), values, info]
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.SINGULAR_VALUES},
    numbers={Numbers.BOUNDED},
    form="Jacobi's rotations of all pairs of columns, side by side, and their norms in order",
)
def singular_values_to_rotations(op: MatrixLowering) -> Sequence[Value]:
    """Rotate pairs of columns until they are orthogonal, and give their norms, the greatest first.

        t as for the eigenvalues of ((x x, x y), (x y, y y)), of columns x and y;   x, y = c x - s y, s x + c y

    Equal up to rounding: as for eigenvalues, of the matrix times its transposed one, which is never formed: so small
    singular values are as near as LAPACK's, within about rounds * eps of the largest (Demmel and Veselic, 1992). The
    matrix is divided by its largest element first. Of one with a NaN or infinity all are NaN. Vectors are not
    read, and get zeros.
    """
    build, node = op.build, op.node
    a = flat(build, node.operand(0), 2)
    rows, columns = a.static_shape[-2:]
    a = a if rows >= columns else transpose_matrices(build, a)
    count = min(rows, columns)
    scaled, size = build_traced(build, _scaled_columns, a)
    [turned] = steps(build, _rounds(scaled.static_shape[-1], a.element_type), [scaled], _rotate_columns)
    values, info = build_traced(build, _norms_in_order, turned, size, count=count)
    nothing = [build.broadcast(build.zero(r.raw.type.element_type), r.static_shape) for r in node.results[2:4]]
    found = [node.operand(0), values, *nothing, info]
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _rounds(size: int, element: str) -> int:
    """How many rounds there are: in as many as there are others each meets each."""
    return SWEEPS[element] * (size - 1) if size > 1 else 0


def _to_pairs(a: Array, *axes: int) -> Array:
    """With a row or column of zeros more where their number is odd."""
    for axis in axes:
        if a.shape[axis] % 2 and a.shape[axis] > 1:
            a = jnp.concatenate(
                [a, jnp.broadcast_to(a.dtype.type(0), lax.slice_in_dim(a, 0, 1, axis=axis).shape)], axis
            )
    return a


def _halves(a: Array, axis: int) -> tuple[Array, Array]:
    half = a.shape[axis] // 2
    return lax.slice_in_dim(a, 0, half, axis=axis), lax.slice_in_dim(a, half, 2 * half, axis=axis)


def _symmetric(a: Array) -> Array:
    rows, columns = places(a.shape[-1])[:, None], places(a.shape[-1])
    return _to_pairs(jnp.where(rows >= columns, a, jnp.swapaxes(a, -1, -2)), a.ndim - 2, a.ndim - 1)


def _rotation(p: Array, q: Array, both: Array) -> tuple[Array, Array]:
    """The cosine and the sine that make what two have in common 0."""
    z = (q - p) / (both + both)
    t = 1.0 / (jnp.abs(z) + jnp.sqrt(1.0 + z * z))
    t = jnp.where(both == 0.0, 0.0, jnp.where(z < 0.0, -t, t))
    c = 1.0 / jnp.sqrt(1.0 + t * t)
    return c, t * c


def _turn(a: Array, c: Array, s: Array, axis: int) -> Array:
    """Rotate the first half of rows or columns with the second one, and move all but the first on by one."""
    first, second = _halves(a, axis)
    one, other = c * first - s * second, s * first + c * second

    def part(x: Array, start: int, end: int) -> Array:
        return lax.slice_in_dim(x, start, end, axis=axis)

    half = one.shape[axis]
    if half == 1:
        return jnp.concatenate([one, other], axis)
    on = [part(one, 0, 1), part(other, 0, 1), part(one, 1, half - 1), part(other, 1, half), part(one, half - 1, half)]
    return jnp.concatenate(on, axis)


def _rotate_symmetric(number: Array, a: Array) -> Array:
    del number
    half = a.shape[-1] // 2
    diagonal = places(half)[:, None] == places(half)

    def taken(row: int, column: int) -> Array:
        block = _halves(_halves(a, a.ndim - 2)[row], a.ndim - 1)[column]
        return jnp.sum(jnp.where(diagonal, block, a.dtype.type(0)), -1)

    c, s = _rotation(taken(0, 0), taken(1, 1), taken(0, 1))
    a = _turn(a, c[..., :, None], s[..., :, None], a.ndim - 2)
    return _turn(a, c[..., None, :], s[..., None, :], a.ndim - 1)


def _rotate_columns(number: Array, a: Array) -> Array:
    del number
    x, y = _halves(a, a.ndim - 1)
    c, s = _rotation(jnp.sum(x * x, -2), jnp.sum(y * y, -2), jnp.sum(x * y, -2))
    return _turn(a, c[..., None, :], s[..., None, :], a.ndim - 1)


def _in_order(values: Array) -> tuple[Array, Array]:
    """Numbers in order, the least first, each put where as many are before it, and how many pairs have no order.

    All are NaN where one is none, which no other is before.
    """
    numbers, largest = places(values.shape[-1]), jnp.max(jnp.abs(values), -1)
    one, other = values[..., :, None], values[..., None, :]
    is_before = (other < one) | ((other == one) & (numbers[None, :] < numbers[:, None]))
    rank = jnp.sum(is_before.astype(jnp.int32), -1, dtype=jnp.int32)
    found = jnp.sum(jnp.where(rank[..., None, :] == numbers[:, None], other, values.dtype.type(0)), -1)
    pairs = numbers.shape[0] * (numbers.shape[0] - 1) // 2
    unordered = jnp.int32(pairs) - jnp.sum(rank, -1, dtype=jnp.int32)
    return found + (largest - largest)[..., None], unordered  # of an infinity NaN, as of NaN


def _diagonal_in_order(a: Array, *, count: int) -> tuple[Array, Array]:
    rows, columns = places(a.shape[-1])[:, None], places(a.shape[-1])
    return _in_order(jnp.sum(jnp.where(rows == columns, a, a.dtype.type(0)), -1)[..., :count])


def _scaled_columns(a: Array) -> tuple[Array, Array]:
    size = jnp.max(jnp.max(jnp.abs(a), -1), -1)
    size = jnp.where(size == 0.0, a.dtype.type(1), size)
    return _to_pairs(a / size[..., None, None], a.ndim - 1), size


def _norms_in_order(a: Array, size: Array, *, count: int) -> tuple[Array, Array]:
    norms = jnp.sqrt(jnp.sum(a * a, -2))[..., :count] * size[..., None]
    values, info = _in_order(-norms)
    return -values, info
