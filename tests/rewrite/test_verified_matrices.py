"""Verification of factorizations: LAPACK's own bound lets the right ones pass, and shows what is wrong."""

import pytest
from jax import numpy as jnp
from matrix_programs import call
from rewrites import fault, swept
from rule_examples import TARGETS

import hlo_lower as hl
from hlo_lower.lowering import matrices
from hlo_lower.lowering.engine import traced

TRSM = {"uplo": "L", "side": "L", "trans_x": "N", "diag": "N"}
PROGRAMS = {
    "lu": call("getrf", [(3, 3)]),
    "batch": call("getrf", [(2, 3, 4)]),
    "qr": call("geqrf", [(3, 3)]),
    "q": call("orgqr", [(3, 3), (3,)]),
    "solve": call("trsm", [(3, 3), (3, 2)], **TRSM),
}


def verdict_of(text, level="regions"):
    """What verification says of a module lowered by the rules as they are now."""
    lowered = hl.lower(text, target=TARGETS["no_matrices"], float_mode="reassociate")
    return hl.verify(text, lowered, level=level)


def masked(text):
    """A Cholesky factor as JAX takes it: NaN where it failed."""
    factor, nan = "tensor<3x3xf32>", 'stablehlo.constant dense<"0x0000C07F"> : tensor<3x3xf32>'
    return f"""func.func public @main(%x0: {factor}) -> {factor} {{
{text[text.index("  %r:2") : text.index("  return")]}
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ok = stablehlo.compare EQ, %r#1, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %nan = {nan}
  %f = stablehlo.select %ok, %r#0, %nan : tensor<i1>, {factor}
  return %f : {factor}
}}
"""


PROGRAMS["cholesky"] = masked(call("potrf", [(3, 3)], uplo="L"))


@pytest.mark.parametrize("name", swept(PROGRAMS, "solve", "cholesky"))
def test_a_right_lowering_is_verified(name):
    """Ordinary, singular and badly scaled matrices, in regions and in the whole module."""
    verdict = verdict_of(PROGRAMS[name], level="auto")
    assert verdict.ok, verdict
    assert any("NaN and infinities in matrices" in told for region in verdict.regions for told in region.excluded)


@fault(matrices, "_first_largest")
def last_largest(_right, k, column):
    """The last of the largest candidates."""
    rows = jnp.arange(column.shape[-1], dtype="int32")
    sizes = jnp.where(rows >= k, jnp.abs(column), -1.0)
    return jnp.max(jnp.where(sizes == jnp.max(sizes, -1)[..., None], rows, 0), -1)


@fault(matrices, "_reflected")
def negated_tau(right, vector, tau, a):
    """Reflections with the other sign of tau."""
    return right(vector, -tau, a)


@fault(matrices, "_mirrored")
def positive_diagonal(right, alpha, below):
    """R with the other sign: as right a factorization, but not LAPACK's."""
    beta, is_done = right(alpha, below)
    return -beta, is_done


@fault(matrices, "_row")
def forgotten_unit(right, k, a, b, *, is_lower, is_unit):
    """The diagonal taken for ones, or not, the wrong way round."""
    return right(k, a, b, is_lower=is_lower, is_unit=not is_unit)


@fault(matrices, "_row")
def other_triangle(right, k, a, b, *, is_lower, is_unit):
    """Upper for lower."""
    return right(k, a, b, is_lower=not is_lower, is_unit=is_unit)


@fault(matrices, "_column")
def whole_column(right, k, a, info):
    """A step of the factorization left out: the pivot is not divided by."""
    a, info = right(k, a, info)
    return a + a, info


WRONG = [
    (last_largest, "lu"),
    (negated_tau, "q"),
    (positive_diagonal, "qr"),
    (forgotten_unit, "solve"),
    (other_triangle, "solve"),
    (whole_column, "cholesky"),
]


@pytest.mark.parametrize(("wrong", "program"), swept(WRONG, WRONG[0]), ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_lowering_is_caught(wrong, program, monkeypatch):
    """What people would get wrong differs by more than LAPACK's own bound on some driven matrix."""
    wrong(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)  # not those that were right
    verdict = verdict_of(PROGRAMS[program])
    assert not verdict.ok
    assert "differs" in {region.status for region in verdict.regions}
