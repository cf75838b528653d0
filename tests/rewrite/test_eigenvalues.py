"""Eigenvalues, singular values and vectors by rotations: near NumPy's, verified, and seen where a rule is wrong."""

from functools import partial

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from rewrites import fault, results, swept
from rule_examples import TARGETS

import hlo_lower as hl
from hlo_lower.lowering import eigenvalues
from hlo_lower.lowering.engine import traced

NO_MATRICES = TARGETS["no_matrices"]
SIZES = swept([1, 2, 3, 4, 5, 8, 13, 33], 1, 5, 8)
DTYPES = swept([np.float32, np.float64], np.float32)


def exported(function, *shapes, dtype=np.float32):
    """A module of a function of matrices."""
    with jax.enable_x64(True):
        return hl.export(function, *(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes))


def lowered_results(function, matrices):
    """What a function gives for matrices once it is lowered for a target without linear algebra."""
    source = exported(function, matrices.shape, dtype=matrices.dtype)
    lowered = hl.lower(source, target=NO_MATRICES, float_mode="reassociate")
    assert lowered.refused == ()
    return results(lowered, matrices)


def values_of(function, matrices):
    """The first of these results."""
    return lowered_results(function, matrices)[0]


def singular(a):
    """The singular values alone, for which JAX asks LAPACK for no vectors."""
    return jnp.linalg.svd(a, compute_uv=False)


def families(n):
    """Symmetric matrices of many kinds: ordinary, graded, of near and of equal eigenvalues, diagonal, tiny, huge."""
    rng = np.random.default_rng(n)
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    drawn, near = rng.standard_normal((n, n)), np.resize([1.0, 1 + 1e-6], n)
    turned = [q @ np.diag(d) @ q.T for d in (10.0 ** -np.arange(n), near, -np.arange(1.0, n + 1), np.ones(n))]
    scaled = [drawn * size for size in (1, 1e-18, 1e15)]
    others = [np.ones((n, n)), np.zeros((n, n)), np.diag(np.arange(n, 0.0, -1)), np.eye(n)[::-1]]
    return np.stack([a + a.T for a in (*turned, *scaled, *others)]) / 2


def of_many_ranks(n, dtype, *, is_wide):
    """Matrices of n + 2 rows and n columns, or turned: ordinary, graded, of rank 1 and 0, huge, tiny, alike."""
    drawn = np.random.default_rng(n).standard_normal((n + 2, n))
    a = [drawn, drawn * 10.0 ** -np.arange(n), np.outer(drawn[:, 0], drawn[0]), drawn * 0, drawn * 1e15, drawn * 1e-25]
    a = np.stack([*a, np.eye(n + 2, n), np.repeat(drawn[:, :1], n, 1)]).astype(dtype)
    return np.swapaxes(a, -1, -2).copy() if is_wide else a


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues_are_numpys(n, dtype):
    """Within 4 n eps of the largest, the least first."""
    a = families(n).astype(dtype)
    found, expected = values_of(jnp.linalg.eigvalsh, a), np.linalg.eigvalsh(a.astype(np.float64))
    bound = 4 * n * np.finfo(dtype).eps * np.abs(expected).max(-1, keepdims=True)
    assert (np.abs(found - expected) <= bound).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("is_wide", swept([False, True], False))
def test_singular_values_are_numpys(n, dtype, is_wide):
    """Of tall and of wide matrices, within 4 n eps of the largest, the greatest first."""
    a = of_many_ranks(n, dtype, is_wide=is_wide)
    found, expected = values_of(singular, a), np.linalg.svd(a.astype(np.float64), compute_uv=False)
    bound = 4 * n * np.finfo(dtype).eps * expected.max(-1, keepdims=True)
    assert (np.abs(found - expected) <= bound).all()
    assert (np.diff(found) <= 0).all()


@pytest.mark.parametrize("function", [jnp.linalg.eigvalsh, singular])
def test_a_matrix_with_a_nan_has_none(function):
    """The other matrices of its batch have their own."""
    a = np.stack([np.eye(4), np.where(np.eye(4, k=3), np.nan, 0), np.full((4, 4), np.inf)]).astype(np.float32)
    found = values_of(function, a)
    np.testing.assert_allclose(found[0], 1, rtol=1e-6)
    assert np.isnan(found[1:]).all()


def largest(a):
    """The largest magnitude in each matrix."""
    return np.abs(a).max((-2, -1))


def turned(a):
    """The transposed matrices."""
    return np.swapaxes(a, -1, -2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvectors_belong_to_their_values(n, dtype):
    """A V is V times the values within 4 n eps of the largest, and V' V the identity within 4 n eps."""
    a, bound = families(n).astype(dtype), 4 * n * np.finfo(dtype).eps
    values, vectors = (found.astype(np.float64) for found in lowered_results(jnp.linalg.eigh, a))
    wide = a.astype(np.float64)
    left = largest(wide @ vectors - vectors * values[:, None, :])
    assert (left <= bound * np.linalg.norm(wide, 2, (-2, -1))).all()
    assert (largest(turned(vectors) @ vectors - np.eye(n)) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", swept([1, 2, 3, 5, 8, 33], 5))
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("is_full", swept([False, True], True))
def test_singular_vectors_make_the_matrix(n, dtype, is_wide, is_full):
    """U times the values times V' is the matrix, and both are orthogonal, within 4 n eps."""
    a = of_many_ranks(n, dtype, is_wide=is_wide)
    u, values, vt = (
        found.astype(np.float64) for found in lowered_results(partial(jnp.linalg.svd, full_matrices=is_full), a)
    )
    bound, count = 4 * (n + 2) * np.finfo(dtype).eps, values.shape[-1]
    left = largest(a.astype(np.float64) - (u[..., :count] * values[:, None, :]) @ vt[:, :count])
    assert (left <= bound * values.max(-1)).all()
    for x in (u, turned(vt)):
        assert (largest(turned(x) @ x - np.eye(x.shape[-1])) <= bound).all()


def test_the_other_triangle_is_not_read():
    """Of a matrix that is not symmetric LAPACK is asked for the lower triangle."""
    a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    values, vectors = lowered_results(partial(jnp.linalg.eigh, symmetrize_input=False), a)
    whole = np.tril(a) + np.tril(a, -1).T
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-5)


@pytest.mark.few(2)
@pytest.mark.parametrize("function", [lambda a: jnp.linalg.eigh(a)[0], lambda a: jnp.linalg.norm(a, 2)])
def test_vectors_that_nothing_reads_are_not_computed(function):
    """Though LAPACK is asked for them."""
    lowered = hl.lower(exported(function, (3, 3)), target=NO_MATRICES, float_mode="reassociate")
    assert lowered.refused == ()
    assert lowered.text.count("dot_general") == 0


def verdict_of(function, *shape):
    """What verification says of the rules as they are now."""
    source = exported(function, shape)
    return hl.verify(source, hl.lower(source, target=NO_MATRICES, float_mode="reassociate"), level="regions")


@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize(
    "function", swept([jnp.linalg.eigvalsh, singular, jnp.linalg.eigh, jnp.linalg.svd], singular, jnp.linalg.svd)
)
def test_a_right_lowering_is_verified(function):
    """Within the bound of a matrix that differs by some units of its largest element."""
    assert verdict_of(function, 2, 2).ok


@pytest.mark.few(1)
@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize("function", [jnp.linalg.eigh, lambda a: jnp.linalg.svd(a)[0], lambda a: jnp.linalg.svd(a)[2]])
def test_other_signs_of_vectors_are_verified(function, monkeypatch):
    """They are open, so that V' A V and V' V are compared in their place; a module of them is not run."""
    fault(eigenvalues, "_of_norm_one")(lambda right, x: -right(x))(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    source = exported(function, (2, 2))
    verdict = hl.verify(source, hl.lower(source, target=NO_MATRICES, float_mode="reassociate"))
    assert verdict.ok
    assert (verdict.module.status, "signs of eigenvectors" in verdict.module.reason) == ("not run", True)


def test_what_is_computed_of_vectors_is_not_judged_with_them():
    """A region that holds more than the call has no one result; where both versions call LAPACK, the module is run."""
    source = exported(lambda a: jnp.linalg.eigh(a)[1] * 2, (2, 2))
    same = hl.verify(source, source.mlir_module().replace("dense<2.0", "dense<4.0"))
    assert same.module.status == "differs"


@fault(eigenvalues, "_rounds")
def too_few(_right, size, element):
    """One sweep, which leaves something beside the diagonal."""
    return size - 1


@fault(eigenvalues, "_rotation")
def other_way(right, p, q, both):
    """Turned the other way."""
    c, s = right(p, q, both)
    return c, -s


@fault(eigenvalues, "_in_order")
def without_ties(_right, values):
    """Equal numbers all take the first of their places."""
    rank = jnp.sum((values[..., None, :] < values[..., :, None]).astype(jnp.int32), -1, dtype=jnp.int32)
    numbers = jnp.arange(values.shape[-1], dtype=jnp.int32)
    found = jnp.where(rank[..., None, :] == numbers[:, None], values[..., None, :], values.dtype.type(-jnp.inf))
    return jnp.max(found, -1), jnp.max(rank - rank, -1)


@fault(eigenvalues, "_of_norm_one")
def longer(right, columns):
    """Columns of another norm than 1."""
    return right(columns) * columns.dtype.type(1.0001)


@fault(eigenvalues, "_of_norm_one")
def exchanged(right, columns):
    """Columns in another order than their values."""
    return jnp.concatenate([right(columns)[..., :, 1:], right(columns)[..., :, :1]], -1)


@fault(eigenvalues, "_of_norm_one")
def rows_for_columns(right, columns):
    """The transposed vectors, which are orthogonal, too."""
    return jnp.swapaxes(right(columns), -1, -2)


@fault(eigenvalues, "_with_signs")
def without_signs(_right, q, _r):
    """The columns of Q as they are."""
    return q


WRONG = [(other_way, singular, 2), (too_few, singular, 4), (without_ties, jnp.linalg.eigvalsh, 3)]
WRONG_VECTORS = [
    (longer, jnp.linalg.eigh),
    (exchanged, jnp.linalg.eigh),
    (rows_for_columns, jnp.linalg.eigh),
    (without_signs, jnp.linalg.svd),
    (exchanged, lambda a: jnp.linalg.svd(a)[2]),
]


@pytest.mark.few(1)
@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize(("wrong", "function"), WRONG_VECTORS[::-1])
def test_wrong_vectors_are_accused(wrong, function, monkeypatch):
    """They are not orthogonal, or do not belong to the values."""
    wrong(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    assert "differs" in {region.status for region in verdict_of(function, 3, 3).regions}


@pytest.mark.sweep
@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize(("wrong", "function", "n"), WRONG)
def test_a_wrong_lowering_is_caught(wrong, function, n, monkeypatch):
    """By its results, and by verification."""
    wrong(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    a = families(5).astype(np.float32)
    expected = np.linalg.eigvalsh(a) if function is jnp.linalg.eigvalsh else np.linalg.svd(a, compute_uv=False)
    assert not np.allclose(
        values_of(function, a), expected, rtol=0, atol=1e-3 * np.abs(expected).max(-1, keepdims=True)
    )
    assert "differs" in {region.status for region in verdict_of(function, n, n).regions}
