"""LAPACK's calls, as JAX exports them, and StableHLO's own factorizations, written out as loops, and verified."""

import re
from itertools import product

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from rewrites import fault, results, swept
from rule_examples import TARGETS, target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.ir import mlir
from hlo_lower.lowering import matrices
from hlo_lower.lowering.engine import traced
from hlo_lower.verify.bounds.matrices import at_the_edge
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds

BATCHES, SIZES = ((), (2,), (2, 3)), (1, 2, 3, 8, 33)
ALL = [(n, batch, element) for n in SIZES for batch in BATCHES for element in ("f32", "f64")]
GRID = swept(ALL, (3, (2, 3), "f32"), (1, (), "f64"))
"""Sizes of matrices, of batches, and element types; all but two behind the sweep marker."""
NO_MATRICES = TARGETS["no_matrices"]
DTYPES = {"f32": np.float32, "f64": np.float64}
ROUTINES = {  # matrices, vectors and scalars that it takes and gives, and which of its results are integers
    "potrf": ("m", "ms", (1,)),
    "getrf": ("m", "mvs", (1, 2)),
    "geqrf": ("m", "mv", ()),
    "orgqr": ("mv", "m", ()),
    "trsm": ("mm", "m", ()),
    "syevd": ("m", "mvs", (2,)),
}


def layout(kind, shape):
    """How an array lies in memory: matrices by columns."""
    rank = len(shape)
    dims = [rank - 2, rank - 1, *reversed(range(rank - 2))] if kind == "m" else [*reversed(range(rank))]
    return f"dense<{dims or ''}> : tensor<{rank}xindex>"


def call(routine, *shapes, element="f32", then="", **config):
    """A module of one call to LAPACK of operands of these shapes, which returns all its results or what is made of
    them; its letters by key (uplo="L")."""
    takes, gives, integers = ROUTINES[routine]
    *batch, m, n = shapes[-1] if routine == "trsm" else shapes[0]
    own = {"m": (m, n), "v": (min(m, n),), "s": ()}
    made = [(*batch, *own[kind]) for kind in gives]
    types = [of(shape, "i32" if k in integers else element) for k, shape in enumerate(made)]
    names = [f"%x{k}" for k in range(len(shapes))]
    layouts = [", ".join(map(layout, *each)) for each in ((takes, shapes), (gives, made))]
    letters = ", ".join(f"{key} = {ord(letter)} : ui8" for key, letter in config.items())
    told = f"mhlo.backend_config = {{{letters}}}, operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]"
    called = f"custom_call @lapack_{'s' if element == 'f32' else 'd'}{routine}_ffi({', '.join(names)}) {{{told}}}"
    returned = "%f" if then else ", ".join(f"%r#{k}" for k in range(len(types)))
    arguments = ", ".join(f"{x}: {of(shape, element)}" for x, shape in zip(names, shapes, strict=True))
    return module(arguments, f"%r:{len(types)} = {called} -> ({', '.join(types)})\n{then}", returned)


def lowered_results(text, *arguments):
    """What a module gives once it is lowered for a target that knows no factorization, and XLA's own."""
    lowered = hl.lower(text, target=NO_MATRICES, float_mode="reassociate")
    assert lowered.refused == ()
    return results(lowered, *arguments)


def drawn(shape, element="f32", seed=0):
    """Ordinary matrices."""
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[element])


def is_near(a, b, element, n, scale):
    """Whether two matrices differ by at most 4 n eps of a scale, element by element."""
    return np.all(np.abs(np.float64(a) - b) <= 4 * n * np.finfo(DTYPES[element]).eps * scale)


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
def test_a_cholesky_factor_multiplies_to_its_matrix(n, batch, element):
    """L L' is A within 4 n eps of |L| |L'|, the other triangle is A's, and info is 0."""
    a = drawn((*batch, n, n), "f64")
    a = (a @ np.swapaxes(a, -1, -2) + np.eye(n)).astype(DTYPES[element])
    factor, info = lowered_results(call("potrf", a.shape, element=element, uplo="L"), a)
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
    text = call("getrf", a.shape, element=element)
    factors, *told = lowered_results(text, a)
    assert all(map(np.array_equal, told, results(text, a)[1:]))
    lower = np.tril(np.float64(factors), -1)[..., :, :least] + np.eye(rows, least)
    upper = np.triu(np.float64(factors))[..., :least, :]
    exchanged = a.reshape(-1, rows, columns).copy()
    for matrix, chosen in zip(exchanged, told[0].reshape(-1, least), strict=True):
        for k, pivot in enumerate(chosen):
            matrix[[k, pivot - 1]] = matrix[[pivot - 1, k]]
    assert is_near(lower @ upper, exchanged.reshape(a.shape), element, n, np.abs(lower) @ np.abs(upper))


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
def test_reflections_have_lapacks_signs(n, batch, element):
    """Reflections, tau and Q are LAPACK's within 32 n eps of the columns' norms, of well-conditioned matrices."""
    a = drawn((*batch, n + 1, n), element) + 3 * np.eye(n + 1, n, dtype=DTYPES[element])
    text = call("geqrf", a.shape, element=element)
    packed, taus = lowered_results(text, a)
    expected, of_lapack = results(text, a)
    assert is_near(packed, expected, element, n, 8 * np.linalg.norm(a, axis=-2, keepdims=True))
    assert is_near(taus, of_lapack, element, n, 8)
    text = call("orgqr", a.shape, taus.shape, element=element)
    [q] = lowered_results(text, expected, of_lapack)
    assert is_near(q, results(text, expected, of_lapack)[0], element, n, 8)


def tridiagonal(below, diagonal, above):
    """Matrices with these elements below, on and above the diagonal; the first one and the last one lie outside."""
    dense = np.zeros((*diagonal.shape, diagonal.shape[-1]))
    for vector, first, k in ((below, 1, -1), (diagonal, 0, 0), (above, 0, 1)):
        for row in range(first, diagonal.shape[-1] - (k == 1)):
            dense[..., row, row + k] = vector[..., row]
    return dense


@pytest.mark.parametrize(("n", "batch", "element"), GRID)
def test_a_tridiagonal_system_is_solved(n, batch, element):
    """A x is b within 8 eps of |A| |x|, times what pivots of two can grow by; what lies outside of A is not read."""
    below, diagonal, above = (drawn((*batch, n), element, k) for k in range(3))
    right = drawn((*batch, n, 2), element, 3)
    below[..., 0] = above[..., -1] = np.nan
    with jax.enable_x64(True):
        text = hl.export(lax.linalg.tridiagonal_solve, below, diagonal, above, right).mlir_module()
    [solved] = lowered_results(text, below, diagonal, above, right)
    matrix = tridiagonal(below, diagonal, above)
    scale = np.abs(matrix) @ np.abs(np.float64(solved)) + np.abs(right)
    assert is_near(matrix @ solved, right, element, 8, np.max(scale, (-2, -1), keepdims=True))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_tridiagonal_system_without_a_solution(number):
    """Rows of zeros: `info` is LAPACK's number, so that JAX gives NaN, of that matrix alone."""
    below, diagonal, above = (drawn((2, 3), seed=k) for k in range(3))
    for vector in (below, diagonal, above):
        vector[0, number] = 0.0
    arguments = below, diagonal, above, drawn((2, 3, 1), seed=3)
    text = hl.export(lax.linalg.tridiagonal_solve, *arguments).mlir_module()
    [found], [expected] = lowered_results(text, *arguments), results(text, *arguments)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.isnan(expected).all((-2, -1)).tolist() == [True, False]


def test_a_tridiagonal_system_whose_factors_are_read_is_left():
    """The report says why."""
    arguments = *[np.ones(3, np.float32)] * 3, np.ones((3, 1), np.float32)
    text = hl.export(lax.linalg.tridiagonal_solve, *arguments).mlir_module()
    made = re.search(r"(%\w+):5 = stablehlo.custom_call @lapack_sgtsv_ffi", text)[1]
    returned = re.search(r"return (%\w+) : tensor<3x1xf32>", text)[1]
    text = text.replace(f"return {returned} : tensor<3x1xf32>", f"return {made}#1 : tensor<3xf32>")
    text = re.sub(r"-> \(?tensor<3x1xf32>( \{[^}]*\})?\)? \{", "-> tensor<3xf32> {", text, count=1)
    lowered = hl.lower(text, target=NO_MATRICES, float_mode="reassociate")
    assert any("what it leaves of the diagonals is read" in note for note in lowered.notes)


@pytest.mark.parametrize("batch", BATCHES)
def test_xlas_own_reflections_are_those_of_lapack(batch):
    """`Qr` and the product of its reflections, which read rows, not columns; with another layout they are left."""
    a, q = of((*batch, 5, 3), "f32"), "ProductOfElementaryHouseholderReflectors"
    taus = of((*batch, 3), "f32")
    lines = f"%r:2 = custom_call @Qr(%x) -> ({a}, {taus}); %q = custom_call @{q}(%r#0, %r#1) -> {a}"
    text = module(f"%x: {a}", lines, "%r#0, %r#1, %q")
    x = drawn((*batch, 5, 3)) + 3 * np.eye(5, 3, dtype=np.float32)
    for found, expected in zip(lowered_results(text, x), results(text, x), strict=True):
        assert is_near(found, expected, "f32", 5, 8)
    shapes = [(*batch, 5, 3)], [(*batch, 5, 3), (*batch, 3)]
    layouts = (", ".join(map(layout, *each)) for each in zip(("m", "mv"), shapes, strict=True))
    columns = "{{operand_layouts = [{}], result_layouts = [{}]}}".format(*layouts)
    kept = hl.lower(text.replace("@Qr(%x)", f"@Qr(%x) {columns}"), target=NO_MATRICES, float_mode="reassociate")
    assert any("its operand_layouts" in note for note in kept.notes)


TUPLED = """func.func public @main(%x: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>) {
  %t = stablehlo.custom_call @Qr(%x) {backend_config = "", xla_shape = "(f32[5,3]{1,0}, f32[3]{0})"}
    : (tensor<5x3xf32>) -> tuple<tensor<5x3xf32>, tensor<3xf32>>
  %a = stablehlo.get_tuple_element %t[0] : (tuple<tensor<5x3xf32>, tensor<3xf32>>) -> tensor<5x3xf32>
  %b = stablehlo.get_tuple_element %t[1] : (tuple<tensor<5x3xf32>, tensor<3xf32>>) -> tensor<3xf32>
  return %a, %b : tensor<5x3xf32>, tensor<3xf32>
}"""


def test_a_call_that_gives_a_tuple_is_read_as_one_of_several_results():
    """As TensorFlow writes it. One whose tuple is returned stays as it is."""
    assert [node.name for node in hl.read(TUPLED).main.body.nodes] == ["stablehlo.custom_call", "func.return"]
    x = drawn((5, 3)) + 3 * np.eye(5, 3, dtype=np.float32)
    for found, expected in zip(lowered_results(TUPLED, x), results(TUPLED, x), strict=True):
        assert is_near(found, expected, "f32", 5, 8)
    assert hl.verify(TUPLED, hl.lower(TUPLED, target=NO_MATRICES, float_mode="reassociate")).ok
    kept = "tuple<tensor<5x3xf32>, tensor<3xf32>>"
    whole = TUPLED.partition("  %a")[0].replace("(tensor<5x3xf32>, tensor<3xf32>) {", f"{kept} {{")
    assert "-> tuple<" in hl.read(f"{whole}  return %t : {kept}\n}}").module.operation.get_asm()


@pytest.mark.parametrize("form", ["text", "bytecode", "artifact"])
def test_each_element_of_a_tuple_is_the_result_of_its_number(form):
    """Whatever the order in which they are taken, one of them twice; a text is no other than its bytecode."""
    pair = "tuple<tensor<2xf32>, tensor<2xf32>>"
    taken = "\n".join(
        f"%{k} = stablehlo.get_tuple_element %t[{n}] : ({pair}) -> tensor<2xf32>" for k, n in enumerate("101")
    )
    source = f"""func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {{
      %t = stablehlo.custom_call @two(%x) : (tensor<2xf32>) -> {pair}
      {taken}
      return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    }}"""
    if form != "text":
        raw = mlir._parse(source, mlir.shared_context(0))  # pyright: ignore[reportPrivateUsage]
        artifact = mlir.stablehlo.serialize_portable_artifact
        newest = mlir.stablehlo.get_current_version()
        source = mlir.module_bytecode(raw) if form == "bytecode" else artifact(raw, newest, True)
        assert b"get_tuple_element" in source
    returned = hl.read(source).main.body.terminator.operands
    assert [value.number for value in returned] == [1, 0, 1]


@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_operations_of_hlo_are_read_as_those_of_stablehlo(form):
    """TensorFlow exports layouts as copies, which StableHLO has not, and an erf that no target knows."""
    source = """func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = mhlo.copy %x : tensor<2x3xf32>
      %1 = mhlo.erf %0 : tensor<2x3xf32>
      %2 = mhlo.copy %1 : tensor<2x3xf32>
      return %2 : tensor<2x3xf32>
    }"""
    if form == "bytecode":
        source = mlir.module_bytecode(mlir._parse(source, mlir.shared_context(0)))  # pyright: ignore[reportPrivateUsage]
    erf, _ = hl.read(source).main.body.nodes
    assert erf.name == "chlo.erf"
    assert hl.lower(source, target="coreml").refused == ()


def eigh(told, n=3):
    """XLA's own call for eigenvectors and eigenvalues."""
    a, values = of((n, n), "f32"), of((n,), "f32")
    line = f'%r:2 = custom_call @Eigh(%x) {{backend_config = "{told}"}} -> ({a}, {values})'
    return module(f"%x: {a}", line, "%r#0, %r#1")


@pytest.mark.parametrize(("told", "lower"), [("1,1,100,1e-6", True), ("0,1,15,0.000001", False)])
def test_xlas_own_eigenvectors_are_those_of_the_triangle(told, lower):
    """`Eigh` reads one triangle; values are in order, and vectors belong to them."""
    x = drawn((5, 5))
    whole = np.tril(x) + np.tril(x, -1).T if lower else np.triu(x) + np.triu(x, 1).T
    vectors, values = lowered_results(eigh(told, 5), x)
    assert is_near(values, np.linalg.eigvalsh(whole), "f32", 5, 4)
    assert is_near(whole @ vectors, vectors * values, "f32", 5, 8)


@pytest.mark.sweep
def test_xlas_own_eigenvectors_are_verified():
    """XLA compiles its own only with the simplifier, and errs where squares overflow, which is told."""
    verdict = verdict_of(eigh("1,1,100,1e-6", 2), level="auto")
    assert verdict.ok, verdict.lines()
    assert "squares overflow" in str(verdict.lines())


@pytest.mark.parametrize("told", ["1,0,100,1e-6", "1,1,100,1e-3", "1,1,3,1e-6", "1,1", ""])
def test_eigenvectors_in_no_order_or_far_off_are_left(told):
    """XLA's order is then that of its rotations, or its values are not those of the matrix."""
    lowered = hl.lower(eigh(told), target=NO_MATRICES, float_mode="reassociate")
    assert any("its configuration may change what" in note for note in lowered.notes)


@pytest.mark.parametrize(
    ("side", "uplo", "trans", "diag"), swept(product("LR", "LU", "NT", "NU"), tuple("LLNN"), tuple("RLTU"))
)
def test_a_triangular_system_is_solved(side, uplo, trans, diag):
    """X solves it within 4 n eps of |A| |X|, whatever stands in the other triangle, be it NaN."""
    n = 5
    a, b = drawn((2, n, n)) + 3 * np.eye(n, dtype=np.float32), drawn((2, n, 3), seed=1)
    b = b if side == "L" else np.swapaxes(b, -1, -2)
    own = np.tril(a) if uplo == "L" else np.triu(a)
    given = np.where((own != 0) if diag == "N" else (own != 0) & (np.eye(n) == 0), a, np.nan).astype(np.float32)
    text = call("trsm", given.shape, b.shape, uplo=uplo, side=side, trans_x=trans, diag=diag)
    [x] = lowered_results(text, given, b)
    t = np.where(np.eye(n) == 1, 1, own) if diag == "U" else own
    t = t if trans == "N" else np.swapaxes(t, -1, -2)
    first, second = (t, np.float64(x)) if side == "L" else (np.float64(x), t)
    assert is_near(first @ second, b, "f32", n, np.abs(first) @ np.abs(second))


def test_what_fails_is_told_as_lapack_does():
    """Info is the first pivot that is not positive, the first that is 0, and of StableHLO's own Cholesky all is NaN; of
    equal pivots the first is taken, whatever its sign."""
    flat, indefinite, bad = np.ones((3, 3)), np.diag([1, -1, 1]), np.diag([1, 1, np.nan])
    a = np.stack([np.eye(3), flat, indefinite, bad]).astype(np.float32)
    assert lowered_results(call("potrf", a.shape, uplo="L"), a)[1].tolist() == [0, 2, 2, 3]
    singular = np.stack([np.zeros((3, 3)), flat, np.eye(3), [[1, 2, 0], [-4, 1, 1], [4, 0, 1]]]).astype(np.float32)
    text = call("getrf", singular.shape)
    found = lowered_results(text, singular)
    assert all(map(np.array_equal, found, results(text, singular)))
    assert found[2].tolist() == [1, 2, 0, 0]
    assert found[1][3].tolist() == [2, 2, 3]
    [factor] = lowered_results(module(f"%x: {of(a.shape, 'f32')}", "%r = cholesky %x, lower = true"), a)
    assert np.array_equal(np.eye(3), factor[0])
    assert np.isnan(factor[1:]).all()


@pytest.mark.parametrize(("left", "transposed"), swept([(True, True), (False, False)], (True, True)))
def test_stablehlos_own_solve_is_xlas(left, transposed):
    """`stablehlo.triangular_solve` gives what XLA gives."""
    a, b = drawn((4, 4)) + 3 * np.eye(4, dtype=np.float32), drawn((4, 4), seed=1)
    how = f"transpose_a = #stablehlo<transpose {'TRANSPOSE' if transposed else 'NO_TRANSPOSE'}>"
    told = f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, {how}"
    solved = f'%r = "stablehlo.triangular_solve"(%a, %b) <{{{told}}}> : (4x4xf32, 4x4xf32) -> 4x4xf32'
    text = module("%a: 4x4xf32, %b: 4x4xf32", solved)
    assert is_near(lowered_results(text, a, b)[0], results(text, a, b)[0], "f32", 4, 8)


LU = call("getrf", (3, 3))


def test_without_loops_the_steps_stand_one_after_the_other():
    """A target that refuses loops gets none, as far as --max-unroll goes; without a target nothing is touched, unless a
    legal form is asked for."""
    lowered = hl.lower(LU, target="litert")
    assert "stablehlo.while" not in lowered.stablehlo
    assert lowered.refused == ()
    bare = target("bare", "custom_call", "while")
    unrolled = hl.lower(LU, target=bare, float_mode="reassociate", max_unroll=10)
    assert any("--max-unroll" in note for note in unrolled.notes)
    for known in ("xla", "stablehlo"):
        assert "lapack_sgetrf_ffi" in hl.lower(LU, target=known, float_mode="reassociate").stablehlo
    assert "lapack" not in hl.lower(LU, legalize=True, float_mode="reassociate").stablehlo


def left(text, **options):
    """Why the call of a module is left."""
    lowered = hl.lower(text, target=NO_MATRICES, **options)
    [note] = [note for note in lowered.notes if note.startswith("left: ")]
    assert "lapack" in lowered.stablehlo
    return note


def test_other_roundings_have_to_be_allowed():
    """In the exact mode a call is left, with what would help; a report names the option beside the call."""
    assert "--float-mode reassociate" in left(LU)
    [refused] = survey(hl.read(LU), options=hl.Options(target="coreml", float_mode="exact")).refused
    assert (refused.op, refused.remedy) == ("stablehlo.custom_call @lapack_sgetrf_ffi", "--float-mode reassociate")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("operand_layouts = [dense<[0, 1]>", "operand_layouts = [dense<[1, 0]>", "its operand_layouts"),
        ("uplo = 76", "uplo = 77", "its uplo may change what"),
        ("{mhlo.backend_config", "{has_side_effect = true, mhlo.backend_config", "its effect may change what"),
        ("{mhlo.backend_config", "{novel = 1 : i32, mhlo.backend_config", "its novel may change what"),
        ("mhlo.backend_config = {uplo = 76 : ui8}", "mhlo.backend_config = {}", "its configuration may change what"),
        ("lapack_spotrf", "lapack_dpotrf", "its element type may change what"),
        ("lapack_spotrf", "lapack_cpotrf", "complex"),
        ("lapack_spotrf", "lapack_sgehrd", "Hessenberg"),
        ("lapack_spotrf", "lapack_snovel", "no rule is known"),
    ],
)
def test_a_call_that_may_mean_something_else_is_left(old, new, why):
    """What is not read attribute by attribute is not guessed, and the reason is told."""
    text = call("potrf", (3, 3), uplo="L")
    assert old in text
    assert why in left(text.replace(old, new, 1), float_mode="reassociate")


def test_eigenvectors_that_are_not_asked_for_are_left():
    """What stands in their place is LAPACK's."""
    told = left(call("syevd", (3, 3), uplo="L", mode="N"), float_mode="reassociate")
    assert "eigenvectors are read that it is not asked for" in told


MASKED = """%zero = constant 0 : i32; %ok = compare EQ, %r#1, %zero; %nan = constant "0x0000C07F" : 3x3xf32
  %f = select %ok, %r#0, %nan"""
PROGRAMS = {
    "lu": LU,
    "batch": call("getrf", (2, 3, 4)),
    "qr": call("geqrf", (3, 3)),
    "q": call("orgqr", (3, 3), (3,)),
    "solve": call("trsm", (3, 3), (3, 2), uplo="L", side="L", trans_x="N", diag="N"),
    "cholesky": call("potrf", (3, 3), then=MASKED, uplo="L"),  # as JAX takes it: NaN where it failed
}


def verdict_of(text, level="regions"):
    """What verification says of a module lowered by the rules as they are now: by LAPACK's own bound."""
    return hl.verify(text, hl.lower(text, target=NO_MATRICES, float_mode="reassociate"), level=level)


def test_a_matrix_at_the_edge_has_one_pivot_that_is_zero():
    """Nothing rounds on the way to it, so that a comparison with 0 is equal there, in each column in turn."""
    for turn, column in ((0, 3), (1, 2), (3, 0)):
        found = at_the_edge(np.random.default_rng(turn), (5, 4, 4), np.dtype(np.float32), turn)
        minors = [np.linalg.det(found[:, :k, :k].astype(float)) for k in range(1, 5)]
        assert all((minor > 0.5).all() for minor in minors[:column])
        np.testing.assert_allclose(minors[column], 0, atol=1e-9)


def test_each_outcome_of_a_cholesky_column_is_exercised():
    """Also that its last pivot is 0, which no drawn matrix has."""
    text = module("%x: 3x3xf32", "%r = cholesky %x, lower = true")
    verdict = hl.verify(text, hl.lower(text, target="litert", float_mode="reassociate"), level="regions")
    assert verdict.ok
    assert all(region.not_exercised == () for region in verdict.regions)


@pytest.mark.parametrize("name", swept(PROGRAMS, "solve", "cholesky"))
def test_a_right_lowering_is_verified(name):
    """Ordinary, singular and badly scaled matrices, in regions and in the whole module."""
    verdict = verdict_of(PROGRAMS[name], level="auto")
    assert verdict.ok, verdict
    assert any("NaN and infinities in matrices" in told for region in verdict.regions for told in region.excluded)


def test_a_factor_in_a_loop_is_verified(monkeypatch):
    """Where a matrix has none, `info` says so: what reads both results of the call is compared, in a loop, too."""

    def filtered(x):
        return lax.fori_loop(0, 2, lambda _, p: jnp.linalg.cholesky(p @ p.T + jnp.eye(2)), x)

    text = jax.jit(filtered).lower(jax.ShapeDtypeStruct((2, 2), np.float32)).as_text()
    assert "potrf" in text
    assert verdict_of(text).ok
    whole_column(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    assert not verdict_of(text).ok


ALIKE = np.asarray([[-1, -1, 0], [0, -1, 1], [-1, -1, 0]], np.float32)
EVERYWHERE, FROM_SECOND = np.ones((3, 3), bool), np.asarray([[0, 0, 0], [0, 1, 1], [0, 1, 1]], bool)


@pytest.mark.parametrize(
    ("matrix", "undecided"),
    [(ALIKE, FROM_SECOND), (drawn((3, 3)), ~EVERYWHERE), (np.triu(drawn((3, 3))), ~EVERYWHERE)],
    ids=["alike", "drawn", "triangle"],
)
def test_a_column_that_rounding_decides_is_not_compared(matrix, undecided):
    """Where rounding alone stands below the diagonal, a row of R may have either sign; of a triangle it may not."""
    limits = OwnBounds(PROGRAMS["qr"]).of([matrix], results(PROGRAMS["qr"], matrix))
    assert np.array_equal(np.isinf(limits[0]), undecided)
    assert np.array_equal(np.isinf(limits[1]), undecided.diagonal())


@fault(matrices, "_first_largest")
def last_largest(_right, k, column):
    """The last of the largest candidates."""
    rows = jnp.arange(column.shape[-1], dtype="int32")
    sizes = jnp.where(rows >= k, jnp.abs(column), -1.0)
    return jnp.max(jnp.where(sizes == jnp.max(sizes, -1)[..., None], rows, 0), -1)


@fault(matrices, "_apply_reflector")
def negated_tau(right, vector, tau, a):
    """Reflections with the other sign of tau."""
    return right(vector, -tau, a)


@fault(matrices, "_reflected_norm")
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


@fault(matrices, "_cholesky_column")
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


@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize(("wrong", "program"), swept(WRONG, WRONG[0]), ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_lowering_is_caught(wrong, program, monkeypatch):
    """What people would get wrong differs by more than LAPACK's own bound on some driven matrix."""
    wrong(monkeypatch)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)  # not those that were right
    assert "differs" in {region.status for region in verdict_of(PROGRAMS[program]).regions}
