"""Eigenvalues of symmetric matrices, and singular values, by Jacobi's rotations, with vectors where they are read."""

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
    apply_next_reflector,
    flat,
    identity_beside,
    places,
    reflect_column,
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
    is read. Of a matrix with a NaN or infinity all are NaN, and of NaN `info` is not 0.

    Where vectors are read, the columns of the identity are rotated along. They are orthogonal, and A V is V times the
    values, within about rounds * eps, as LAPACK's are; their signs, and which ones stand for equal values, are left
    open by both. Else they get the matrix in their place. Costs some ten times n rounds over the matrix.
    """
    build, node, flags = op.build, op.node, op.facts.flags
    a = flat(build, node.operand(0), 2)
    a = a if flags["lower"] else transpose_matrices(build, a)
    whole = build_traced(build, _symmetric, a, has_vectors=flags["vectors"])
    turned = steps(build, _rounds(whole[0].static_shape[-1], a.element_type), whole, _rotate_symmetric)
    values, info, *vectors = build_traced(build, _diagonal_in_order, *turned, count=a.static_shape[-1])
    found = [*(vectors or [node.operand(0)]), values, info][: len(node.results)]  # XLA's own call gives no `info`
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
    matrix is divided by its largest element first. Of one with a NaN or infinity all are NaN.

    Where vectors are read, the columns of the identity are rotated along, to V, and A V in order is Q R by reflections:
    R is diagonal up to rounding, so that Q with the signs of its diagonal is U, of all columns if these are asked for,
    also where a singular value is 0. Both are orthogonal, and U times the values times V' is A, within about rounds *
    eps, as LAPACK's are; signs, and which ones stand for equal values, are left open. Else they get zeros.
    """
    build, node = op.build, op.node
    a = flat(build, node.operand(0), 2)
    is_wide = a.static_shape[-2] < a.static_shape[-1]
    a = transpose_matrices(build, a) if is_wide else a
    count = a.static_shape[-1]
    *columns, size = build_traced(build, _scaled_columns, a, has_vectors=op.facts.flags["vectors"])
    turned = steps(build, _rounds(columns[0].static_shape[-1], a.element_type), columns, _rotate_columns)
    values, info, *ordered = build_traced(build, _norms_in_order, *turned, size, count=count)
    if ordered:
        taus = build.float_splat(0.0, (*a.static_shape[:-2], count), a.element_type)
        reflected = steps(build, count, [ordered[0], taus], reflect_column)
        width = node.result(3 if is_wide else 2).static_shape[-2 if is_wide else -1]
        [q] = build_traced(build, identity_beside, ordered[0], width=width)
        q = steps(build, count, [*reflected, q], apply_next_reflector)[2]
        [u] = build_traced(build, _with_signs, q, reflected[0])
        u, v = (ordered[1], u) if is_wide else (u, ordered[1])
        vectors = [u, transpose_matrices(build, v)]
    else:
        vectors = [build.broadcast(build.zero(r.raw.type.element_type), r.static_shape) for r in node.results[2:4]]
    found = [node.operand(0), values, *vectors, info]
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


def _symmetric(a: Array, *, has_vectors: bool) -> list[Array]:
    rows, columns = places(a.shape[-1])[:, None], places(a.shape[-1])
    whole = _to_pairs(jnp.where(rows >= columns, a, jnp.swapaxes(a, -1, -2)), a.ndim - 2, a.ndim - 1)
    return [whole, identity_beside(whole, width=whole.shape[-1])] if has_vectors else [whole]


def _rotation(p: Array, q: Array, both: Array) -> tuple[Array, Array]:
    """The cosine and the sine that make what two have in common 0.

    Of a |z| beyond 2^32 the root of 1 + z^2 is |z|, and is not taken: that of an infinity is NaN to LiteRT.
    """
    z = (q - p) / (both + both)
    size = jnp.abs(z)
    near = jnp.minimum(size, z.dtype.type(2.0**32))
    t = 1.0 / (size + jnp.where(size > near, size, jnp.sqrt(1.0 + near * near)))
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


def _rotate_symmetric(number: Array, a: Array, *vectors: Array) -> list[Array]:
    del number
    half = a.shape[-1] // 2
    diagonal = places(half)[:, None] == places(half)

    def taken(row: int, column: int) -> Array:
        block = _halves(_halves(a, a.ndim - 2)[row], a.ndim - 1)[column]
        return jnp.sum(jnp.where(diagonal, block, a.dtype.type(0)), -1)

    c, s = _rotation(taken(0, 0), taken(1, 1), taken(0, 1))
    a = _turn(a, c[..., :, None], s[..., :, None], a.ndim - 2)
    return [_turn(x, c[..., None, :], s[..., None, :], a.ndim - 1) for x in (a, *vectors)]


def _rotate_columns(number: Array, a: Array, *vectors: Array) -> list[Array]:
    del number
    x, y = _halves(a, a.ndim - 1)
    c, s = _rotation(jnp.sum(x * x, -2), jnp.sum(y * y, -2), jnp.sum(x * y, -2))
    return [_turn(x, c[..., None, :], s[..., None, :], a.ndim - 1) for x in (a, *vectors)]


def _in_order(values: Array, *columns: Array) -> list[Array]:
    """Numbers in order, the least first, each put where as many are before it, how many pairs have no order, and the
    columns of matrices in the same order.

    All are NaN where one is none, which no other is before.
    """
    numbers, largest = places(values.shape[-1]), jnp.max(jnp.abs(values), -1)
    one, other = values[..., :, None], values[..., None, :]
    is_before = (other < one) | ((other == one) & (numbers[None, :] < numbers[:, None]))
    rank = jnp.sum(is_before.astype(jnp.int32), -1, dtype=jnp.int32)
    found = jnp.sum(jnp.where(rank[..., None, :] == numbers[:, None], other, values.dtype.type(0)), -1)
    pairs = numbers.shape[0] * (numbers.shape[0] - 1) // 2
    unordered = jnp.int32(pairs) - jnp.sum(rank, -1, dtype=jnp.int32)
    count = numbers.shape[0]
    places_of = (rank[..., :, None] == numbers).astype(values.dtype)
    ordered = [jnp.matmul(lax.slice_in_dim(x, 0, count, axis=x.ndim - 1), places_of) for x in columns]
    return [found + (largest - largest)[..., None], unordered, *ordered]  # of an infinity NaN, as of NaN


def _diagonal_in_order(a: Array, *vectors: Array, count: int) -> list[Array]:
    rows, columns = places(a.shape[-1])[:, None], places(a.shape[-1])
    diagonal = jnp.sum(jnp.where(rows == columns, a, a.dtype.type(0)), -1)
    return _in_order(diagonal[..., :count], *(_of_norm_one(x[..., :count, :count]) for x in vectors))


def _of_norm_one(columns: Array) -> Array:
    """Columns divided by their norms, which rotations change by an eps each."""
    return columns / jnp.sqrt(jnp.sum(columns * columns, -2))[..., None, :]


def _scaled_columns(a: Array, *, has_vectors: bool) -> list[Array]:
    size = jnp.max(jnp.max(jnp.abs(a), -1), -1)
    size = jnp.where(size == 0.0, a.dtype.type(1), size)
    scaled = _to_pairs(a / size[..., None, None], a.ndim - 1)
    vectors = [identity_beside(jnp.swapaxes(scaled, -1, -2), width=scaled.shape[-1])] if has_vectors else []
    return [scaled, *vectors, size]


def _norms_in_order(a: Array, *more: Array, count: int) -> list[Array]:
    """The norms of columns times a number in order, their `info`, and the columns with their vectors in that order."""
    *vectors, size = more
    norms = jnp.sqrt(jnp.sum(a * a, -2))[..., :count] * size[..., None]
    values, info, *ordered = _in_order(-norms, *((a, _of_norm_one(vectors[0][..., :count, :count])) if vectors else ()))
    return [-values, info, *ordered]


def _with_signs(q: Array, r: Array) -> Array:
    """Columns with the signs of a diagonal."""
    rows, columns = places(r.shape[-2])[:, None], places(r.shape[-1])
    diagonal = jnp.sum(jnp.where(rows == columns, r, r.dtype.type(0)), -2)
    signs = jnp.where(diagonal < 0.0, r.dtype.type(-1), 1.0)
    if q.shape[-1] > r.shape[-1]:
        more = jnp.broadcast_to(r.dtype.type(1), (*signs.shape[:-1], q.shape[-1] - r.shape[-1]))
        signs = jnp.concatenate([signs, more], -1)
    return q * signs[..., None, :]
