"""LAPACK's calls, as JAX exports them, and StableHLO's own factorizations, written out as loops."""

from itertools import product

import numpy as np
import pytest
from matrix_programs import call, cholesky, triangular_solve
from rewrites import results, swept
from rule_examples import TARGETS, target

import hlo_lower as hl
from hlo_lower.api.many.survey import survey

BATCHES, SIZES = ((), (2,), (2, 3)), (1, 2, 3, 8, 33)
ALL = [(n, batch, element) for n in SIZES for batch in BATCHES for element in ("f32", "f64")]
GRID = swept(ALL, (3, (2, 3), "f32"), (1, (), "f64"))
"""Sizes of matrices, of batches, and element types; all but two behind the sweep marker."""

NO_MATRICES = TARGETS["no_matrices"]
DTYPES = {"f32": np.float32, "f64": np.float64}


def lowered_results(text, *arguments):
    """What a module gives once it is lowered for a target that knows no factorization, and XLA's own."""
    lowered = hl.lower(text, target=NO_MATRICES, float_mode="reassociate")
    assert lowered.refused == ()
    return results(lowered, *arguments)


def drawn(shape, element, seed=0):
    """Ordinary matrices."""
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[element])


def definite(shape, element):
    """Symmetric, positive definite matrices."""
    a = drawn(shape, "f64")
    return (a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])).astype(DTYPES[element])


def is_near(a, b, element, n, scale):
    """Whether two matrices differ by at most 4 n eps of a scale, element by element."""
    return np.all(np.abs(np.float64(a) - b) <= 4 * n * np.finfo(DTYPES[element]).eps * scale)


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
def test_a_cholesky_factor_multiplies_to_its_matrix(n, batch, element):
    """L L' is A within 4 n eps of |L| |L'|, the other triangle is A's, and info is 0."""
    a = definite((*batch, n, n), element)
    factor, info = lowered_results(call("potrf", [a.shape], element, uplo="L"), a)
    lower = np.tril(np.float64(factor))
    upper = np.swapaxes(lower, -1, -2)
    assert is_near(lower @ upper, a, element, n, np.abs(lower) @ np.abs(upper))
    assert np.array_equal(np.triu(factor, 1), np.triu(a, 1))
    assert not info.any()


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
@pytest.mark.parametrize(("rows", "columns"), swept([(0, 0), (2, 0), (0, 2)], (0, 0), (0, 2)))
def test_lu_has_lapacks_pivots(n, batch, element, rows, columns):
    """P A is L U within 4 n eps of |L| |U|, with the pivots and the info of LAPACK."""
    rows, columns = n + rows, n + columns
    a, least = drawn((*batch, rows, columns), element), min(rows, columns)
    text = call("getrf", [a.shape], element)
    factors, pivots, info = lowered_results(text, a)
    expected = results(text, a)
    assert np.array_equal(expected[1], pivots)
    assert np.array_equal(expected[2], info)
    lower = np.tril(np.float64(factors), -1)[..., :, :least] + np.eye(rows, least)
    upper = np.triu(np.float64(factors))[..., :least, :]
    exchanged = a.reshape(-1, rows, columns).copy()
    for matrix, chosen in zip(exchanged, pivots.reshape(-1, least), strict=True):
        for k, pivot in enumerate(chosen):
            matrix[[k, pivot - 1]] = matrix[[pivot - 1, k]]
    assert is_near(lower @ upper, exchanged.reshape(a.shape), element, n, np.abs(lower) @ np.abs(upper))


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
def test_reflections_have_lapacks_signs(n, batch, element):
    """Reflections, tau and Q are LAPACK's within 32 n eps of the columns' norms, of well-conditioned matrices."""
    a = drawn((*batch, n + 1, n), element) + 3 * np.eye(n + 1, n, dtype=DTYPES[element])
    text = call("geqrf", [a.shape], element)
    scale = 8 * np.linalg.norm(a, axis=-2, keepdims=True)
    packed, taus = lowered_results(text, a)
    expected, of = results(text, a)
    assert is_near(packed, expected, element, n, scale)
    assert is_near(taus, of, element, n, 8)
    text = call("orgqr", [a.shape, taus.shape], element)
    [q] = lowered_results(text, expected, of)
    assert is_near(q, results(text, expected, of)[0], element, n, 8)


@pytest.mark.parametrize(
    ("side", "uplo", "trans", "diag"), swept(product("LR", "LU", "NT", "NU"), tuple("LLNN"), tuple("RLTU"))
)
def test_a_triangular_system_is_solved(side, uplo, trans, diag):
    """X solves it within 4 n eps of |A| |X|, whatever stands in the other triangle, be it NaN."""
    n = 5
    a, b = drawn((2, n, n), "f32") + 3 * np.eye(n, dtype=np.float32), drawn((2, n, 3), "f32", 1)
    b = b if side == "L" else np.swapaxes(b, -1, -2)
    own = np.tril(a) if uplo == "L" else np.triu(a)
    given = np.where((own != 0) if diag == "N" else (own != 0) & (np.eye(n) == 0), a, np.nan).astype(np.float32)
    text = call("trsm", [given.shape, b.shape], uplo=uplo, side=side, trans_x=trans, diag=diag)
    [x] = lowered_results(text, given, b)
    t = np.where(np.eye(n) == 1, 1, own) if diag == "U" else own
    t = t if trans == "N" else np.swapaxes(t, -1, -2)
    first, second = (t, np.float64(x)) if side == "L" else (np.float64(x), t)
    assert is_near(first @ second, b, "f32", n, np.abs(first) @ np.abs(second))


def test_what_fails_is_told_as_lapack_does():
    """Info is the first pivot that is not positive, the first that is 0, and of StableHLO's own Cholesky all is NaN."""
    flat, indefinite, bad = np.ones((3, 3)), np.diag([1, -1, 1]), np.diag([1, 1, np.nan])
    a = np.stack([np.eye(3), flat, indefinite, bad]).astype(np.float32)
    info = lowered_results(call("potrf", [a.shape], uplo="L"), a)[1]
    assert info.tolist() == [0, 2, 2, 3]
    singular = np.stack([np.zeros((3, 3)), flat, np.eye(3)]).astype(np.float32)
    text = call("getrf", [singular.shape])
    found, expected = lowered_results(text, singular), results(text, singular)
    assert all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
    assert found[2].tolist() == [1, 2, 0]
    [factor] = lowered_results(cholesky(a.shape), a)
    assert np.array_equal(np.eye(3), factor[0])
    assert np.isnan(factor[1:]).all()


def test_the_first_of_equal_pivots_is_taken():
    """As by LAPACK, whatever its sign."""
    a = np.float32([[1, 2, 0], [-4, 1, 1], [4, 0, 1]])
    assert lowered_results(call("getrf", [a.shape]), a)[1].tolist() == [2, 2, 3]


@pytest.mark.parametrize(("left", "transposed"), swept([(True, True), (False, False)], (True, True)))
def test_stablehlos_own_solve_is_xlas(left, transposed):
    """`stablehlo.triangular_solve` gives what XLA gives."""
    a, b = drawn((4, 4), "f32") + 3 * np.eye(4, dtype=np.float32), drawn((4, 4), "f32", 1)
    text = triangular_solve(4, 4, left=left, transposed=transposed)
    [x] = lowered_results(text, a, b)
    assert is_near(x, results(text, a, b)[0], "f32", 4, 8)


def test_without_loops_the_steps_stand_one_after_the_other():
    """A target that refuses loops gets none, as far as --max-unroll goes."""
    lowered = hl.lower(call("getrf", [(3, 3)]), target="litert")
    assert "stablehlo.while" not in lowered.stablehlo
    assert lowered.refused == ()
    bare = target("bare", "custom_call", "while")
    left = hl.lower(call("getrf", [(3, 3)]), target=bare, float_mode="reassociate", max_unroll=10)
    assert any("--max-unroll" in note for note in left.notes)


def left(text, **options):
    """The module as text, and why its call is left."""
    lowered = hl.lower(text, **options)
    [note] = [note for note in lowered.notes if note.startswith("left: ")]
    assert "lapack" in lowered.stablehlo
    return note


def test_other_roundings_have_to_be_allowed():
    """In the exact mode a call is left, with what would help; a report names the option beside the call."""
    text = call("getrf", [(3, 3)])
    assert "--float-mode reassociate" in left(text, target=NO_MATRICES)
    [refused] = survey(hl.read(text), options=hl.Options(target="coreml")).refused
    assert (refused.op, refused.remedy) == ("stablehlo.custom_call @lapack_sgetrf_ffi", "--float-mode reassociate")


def test_a_target_that_takes_a_call_keeps_it():
    """XLA has LAPACK; without a target nothing is touched, unless a legal form is asked for."""
    text = call("getrf", [(3, 3)])
    for known in ("xla", "stablehlo"):
        lowered = hl.lower(text, target=known, float_mode="reassociate")
        assert "lapack_sgetrf_ffi" in lowered.stablehlo
    assert "lapack" not in hl.lower(text, legalize=True, float_mode="reassociate").stablehlo


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("operand_layouts = [dense<[0, 1]>", "operand_layouts = [dense<[1, 0]>", "its operand_layouts"),
        ("uplo = 76", "uplo = 77", "its uplo is not known"),
        ("{mhlo.backend_config", "{has_side_effect = true, mhlo.backend_config", "its effect is not known"),
        ("{mhlo.backend_config", "{novel = 1 : i32, mhlo.backend_config", "its novel is not known"),
        ("mhlo.backend_config = {uplo = 76 : ui8}", "mhlo.backend_config = {}", "its configuration is not known"),
        ("lapack_spotrf", "lapack_dpotrf", "its element type is not known"),
        ("lapack_spotrf", "lapack_cpotrf", "complex"),
        ("lapack_spotrf", "lapack_sgehrd", "Hessenberg"),
        ("lapack_spotrf", "lapack_snovel", "no rule is known"),
    ],
)
def test_a_call_that_may_mean_something_else_is_left(old, new, why):
    """What is not read attribute by attribute is not guessed, and the reason is told."""
    text = call("potrf", [(3, 3)], uplo="L")
    assert old in text
    assert why in left(text.replace(old, new, 1), target=NO_MATRICES, float_mode="reassociate")


def test_eigenvectors_are_left():
    """They have no one sign, so there is no rule, and that is told."""
    text = call("syevd", [(3, 3)], uplo="L", mode="V")
    assert "only defined up to their signs" in left(text, target=NO_MATRICES, float_mode="reassociate")
