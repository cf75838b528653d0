"""Verification of factorizations: LAPACK's own bound lets the right ones pass, and shows what is wrong."""

from collections.abc import Callable

import pytest
from matrix_programs import call

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.lowerings import cholesky, lu, qr, triangular_solve

TRSM = {"uplo": "L", "side": "L", "trans_x": "N", "diag": "N"}
PROGRAMS = {
    "lu": call("getrf", [(3, 3)]),
    "batch": call("getrf", [(2, 3, 4)]),
    "qr": call("geqrf", [(3, 3)]),
    "q": call("orgqr", [(3, 3), (3,)]),
    "solve": call("trsm", [(3, 3), (3, 2)], **TRSM),
}


def verdict_of(text, targets, level="regions"):
    """What verification says of a module lowered by the rules as they are now."""
    lowered = hl.lower(text, target=targets["no_matrices"], float_mode="reassociate")
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


@pytest.mark.parametrize(
    "name", [n if n in ("solve", "cholesky") else pytest.param(n, marks=pytest.mark.sweep) for n in PROGRAMS]
)
def test_a_right_lowering_is_verified(name, targets):
    """Ordinary, singular and badly scaled matrices, in regions and in the whole module."""
    verdict = verdict_of(PROGRAMS[name], targets, level="auto")
    assert verdict.ok, verdict
    assert any("NaN and infinities in matrices" in told for region in verdict.regions for told in region.excluded)


def last_largest(_old: Callable[..., object]) -> Callable[..., object]:
    """The last of the largest candidates."""

    def found(stack, k, column):
        build, m = stack.build, column.static_shape[-1]
        rows = stack.place((m,), 0)
        is_open = build.compare(rows, "GE", stack.step(k, (m,)))
        sizes = stack.where(is_open, stack.op("abs", column), stack.number(-1.0, (m,)))
        least = build.infinity(mlir.tensor_element(sizes.raw.type), is_negative=True)
        is_largest = build.compare(sizes, "EQ", stack.spread(stack.reduced(sizes, least, 0, "maximum"), (m,), []))
        places = stack.where(is_largest, rows, build.constant(0, (*stack.batch, m), "i32"))
        return stack.reduced(places, build.constant(-(2**31), (), "i32"), 0, "maximum")

    return found


def negated_tau(old: Callable[..., object]) -> Callable[..., object]:
    """Reflections with the other sign of tau."""
    return lambda stack, vector, tau, a: old(stack, vector, stack.op("negate", tau), a)


def positive_diagonal(old: Callable[..., object]) -> Callable[..., object]:
    """R with the other sign: as right a factorization, but not LAPACK's."""

    def mirrored(stack, alpha, below):
        beta, is_done = old(stack, alpha, below)
        return stack.op("negate", beta), is_done

    return mirrored


def forgotten_unit(old: Callable[..., object]) -> Callable[..., object]:
    """The diagonal taken for ones, or not, the wrong way round."""
    return lambda stack, k, a, b, *, is_lower, is_unit: old(stack, k, a, b, is_lower=is_lower, is_unit=not is_unit)


def other_triangle(old: Callable[..., object]) -> Callable[..., object]:
    """Upper for lower."""
    return lambda stack, k, a, b, *, is_lower, is_unit: old(stack, k, a, b, is_lower=not is_lower, is_unit=is_unit)


def whole_column(old: Callable[..., object]) -> Callable[..., object]:
    """A step of the factorization left out: the pivot is not divided by."""

    def column(stack, k, carried):
        a, info = old(stack, k, carried)
        return [stack.op("add", a, a), info]

    return column


WRONG = {
    "last largest": (lu, "_first_largest", last_largest, "lu"),
    "tau of the other sign": (qr, "_reflected", negated_tau, "q"),
    "R of the other sign": (qr, "_mirrored", positive_diagonal, "qr"),
    "unit diagonal forgotten": (triangular_solve, "_row", forgotten_unit, "solve"),
    "upper for lower": (triangular_solve, "_row", other_triangle, "solve"),
    "twice the factor": (cholesky, "_column", whole_column, "cholesky"),
}


@pytest.mark.parametrize(
    "name", [n if n == "last largest" else pytest.param(n, marks=pytest.mark.sweep) for n in WRONG]
)
def test_a_wrong_lowering_is_caught(name, targets, monkeypatch):
    """What people would get wrong differs by more than LAPACK's own bound on some driven matrix."""
    module, function, wrong, program = WRONG[name]
    monkeypatch.setattr(module, function, wrong(getattr(module, function)))
    verdict = verdict_of(PROGRAMS[program], targets)
    assert not verdict.ok
    assert "differs" in {region.status for region in verdict.regions}
