"""Complex numbers on targets that refuse them: each op on its parts gives the bits of native XLA; errors show."""

import jax.numpy as jnp
import numpy as np
import pytest
from complex_programs import (
    NO_COMPLEX,
    NO_FFT,
    arguments,
    exported,
    one_op,
    parts,
    program,
    special,
)

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.ir import mlir
from hlo_lower.lowering.engine import traced
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.single_ops import fft
from hlo_lower.lowering.types.carried import complex_functions, complex_ops
from hlo_lower.lowering.types.storage import as_given
from hlo_lower.verify.bounds.compare import only_signs_of_zeros
from hlo_lower.verify.judges.devices import compile_anywhere

EXACT = ("multiply", "divide", "abs", "sqrt", "tanh")
MORE = ("add", "subtract", "negate", "sign", "exponential", "log", "log_plus_one", "tan", "real", "imag")
BINARY = ("add", "subtract", "multiply", "divide", "power")
BOUNDED = {
    "sine": (np.sin, 4),
    "cosine": (np.cos, 4),
    "exponential_minus_one": (np.expm1, 4),
    "rsqrt": (lambda z: 1 / np.sqrt(z), 4),
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), 16),
    "power": (lambda z, w: z**w, 128),
}
"""Functions, what they are in NumPy, and units in the last place of the result's size (of a power for small ones)."""


def both(source, target=NO_COMPLEX, rounding="quick", **options):
    """The module and the lowered one under its signature, compiled."""
    lowered = hl.lower(source, target=target, **options)
    assert lowered.refused == ()
    assert "complex<" not in lowered.text
    text = source if isinstance(source, str) else source.mlir_module()
    return compile_anywhere([(text, rounding), (lowered.as_given, rounding)])


def assert_same_bits(name, element="f32", rounding="quick"):
    """An op on special and random numbers gives the same bits, any NaN for NaN."""
    dtype = "complex64" if element == "f32" else "complex128"
    given = [special(dtype=dtype), np.random.default_rng(9).permutation(special(seed=1, dtype=dtype))]
    given = given[: 2 if name in BINARY else 1]
    one, other = both(one_op(name, len(given[0]), len(given), element), rounding=rounding)
    [expected], [found] = one.run(given), other.run(given)
    assert (parts(expected) == parts(found)).all()


@pytest.mark.parametrize("name", EXACT)
def test_an_op_has_the_bits_of_xla(name):
    """With Inf, NaN, zeros of both signs, subnormals and numbers of any size in each part."""
    assert_same_bits(name)


@pytest.mark.sweep
@pytest.mark.parametrize("rounding", ["quick", "exact", "default"])
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", [*EXACT, *MORE])
def test_every_exact_op_has_the_bits_of_xla(name, element, rounding):
    """Of both types, however XLA compiles it (of the signs of subnormals its own two emitters differ)."""
    if name == "sign" and rounding != "quick":
        pytest.skip("XLA's emitters differ on subnormals")
    assert_same_bits(name, element, rounding)


def assert_near(name):
    """A function is as near to the true number as is said."""
    reference, units = BOUNDED[name]
    rng = np.random.default_rng(2)
    given = [(rng.uniform(-5, 5, 3000) + 1j * rng.uniform(-3, 3, 3000)).astype(np.complex64) for _ in range(2)]
    given = given[: 2 if name == "power" else 1]
    _, lowered = both(one_op(name, 3000, len(given)), float_mode="reassociate")
    expected = reference(*(x.astype(np.complex128) for x in given))
    [found] = lowered.run(given)
    assert (np.abs(found - expected) <= units * 2.0**-23 * np.abs(expected)).all()


def test_a_function_is_within_its_bound():
    """The sine, which XLA itself computes as a difference that loses all digits near 0."""
    assert_near("sine")


@pytest.mark.sweep
@pytest.mark.parametrize("name", BOUNDED)
def test_every_function_is_within_its_bound(name):
    """Those that are built in the float mode reassociate."""
    assert_near(name)


def test_what_is_not_exact_needs_the_float_mode():
    """In the exact mode it is left, with the reason, and the report says what helps."""
    source = one_op("sine", 4)
    lowered = hl.lower(source, target=NO_COMPLEX)
    assert [one.reason["dtype"] for one in lowered.refused] == ["complex<f32>"]
    assert any("the float mode reassociate allows" in note for note in lowered.notes)
    assert lowered.text.count("complex<f32>") > 0
    assert hl.verify(source, lowered).ok


def test_a_report_names_the_float_mode():
    """A survey finds what is left of a module with a matrix product, and the option that helps."""
    source = exported(lambda x: x @ x, np.zeros((3, 3), np.complex64)).mlir_module()
    found = survey(hl.read(source), options=Options(target=NO_COMPLEX))
    assert [(str(one.reason["dtype"]), one.remedy) for one in found.refused] == [
        ("complex<f32>", "--float-mode reassociate")
    ]


def assert_same_program(seed, *, verified=False):
    """A random program has the same results to the bit; by XLA alone, or by the verification."""
    rng = np.random.default_rng(seed)
    function, names = program(rng)
    given = arguments(rng)
    source = exported(function, *given)
    for rounding in ("quick", "unfused"):  # the first one contracts products and sums by what stands beside them
        runs = [one.run(list(given)) for one in both(source, rounding=rounding)]
        if only_signs_of_zeros(*runs):  # XLA makes x of 0.0 + x
            break
    else:  # XLA contracts within its own product or quotient, and not of parts that it does not fuse
        for one, other in zip(*runs, strict=True):
            assert np.allclose(one, other, rtol=1e-6, atol=1e-30, equal_nan=True), names
    if verified:
        assert not hl.verify(source, hl.lower(source, target=NO_COMPLEX)).differs


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_are_the_same(seed):
    """Loops, branches, calls, constants, moves and arithmetic."""
    assert_same_program(seed)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(10, 310))
def test_many_random_programs_are_the_same(seed):
    """300 of them, every tenth by the verification, too."""
    assert_same_program(seed, verified=seed % 10 == 0)


# --- transforms ---


def assert_transform(name, length, axes=1):
    """A transform is as near to NumPy's as is said, and comes out in its shape."""
    rng = np.random.default_rng(length)
    shape = (3, 4, length)[3 - axes - 1 :] if axes == 2 else (3, length)
    size = (*shape[:-1], length // 2 + 1) if name.startswith("irfft") else shape
    x = rng.standard_normal(size)
    x = x.astype(np.float32) if name.startswith("rfft") else (x + 1j * rng.standard_normal(size)).astype(np.complex64)
    more = {"n": length} if name == "irfft" else {}
    source = exported(lambda x: getattr(jnp.fft, name)(x, **more), x)
    _, lowered = both(source, NO_FFT, float_mode="reassociate")
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected, [found] = getattr(np.fft, name)(wide, **more), lowered.run([x])
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= 3 * 2.0**-23 * np.linalg.norm(expected)


@pytest.mark.parametrize(("name", "length"), [("fft", 12), ("ifft", 130), ("rfft", 67), ("irfft", 66)])
def test_a_transform_is_within_its_bound(name, length):
    """All four kinds; a dense one, two steps, and a convolution."""
    assert_transform(name, length)


@pytest.mark.sweep
@pytest.mark.parametrize("length", [1, 2, 3, 5, 16, 63, 64, 65, 97, 128, 202, 360, 1000, 1024, 4096, 6007])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2"])
def test_every_transform_is_within_its_bound(name, length):
    """Lengths with short factors and without, along one dim and two."""
    if name.endswith("2") and length > 128:
        pytest.skip("large")
    assert_transform(name, length, axes=2 if name.endswith("2") else 1)


# --- the signature ---

LOOP = """
func.func public @main(%x: tensor<3xcomplex<f32>>, %n: tensor<i32>) -> tensor<3xcomplex<f32>> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %c = stablehlo.constant dense<[(1.0, 2.0), (0.0, -0.0), (0x7FC00000, 3.0)]> : tensor<3xcomplex<f32>>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<3xcomplex<f32>> cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = func.call @turned(%s, %c) : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
    stablehlo.return %next, %t : tensor<i32>, tensor<3xcomplex<f32>>
  }
  return %r#1 : tensor<3xcomplex<f32>>
}
func.func private @turned(%a: tensor<3xcomplex<f32>>, %b: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %r = stablehlo.multiply %a, %b : tensor<3xcomplex<f32>>
  return %r : tensor<3xcomplex<f32>>
}
"""


def test_what_holds_complex_numbers_holds_their_parts():
    """Arguments, results, loops and calls get a last dim of 2, which is told, and can be told from the text alone."""
    lowered = hl.lower(LOOP, target=NO_COMPLEX)
    assert "complex" not in lowered.text
    assert "func.func private @turned(%arg0: tensor<3x2xf32>, %arg1: tensor<3x2xf32>)" in lowered.text
    told = [note for note in lowered.notes if note.startswith("stored: argument 0")]
    assert told == [
        "stored: argument 0 (x) of @main, complex<f32>, as f32: real and imaginary parts along a last dim of 2"
    ] or told == ["stored: argument 0 of @main, complex<f32>, as f32: real and imaginary parts along a last dim of 2"]
    assert as_given(LOOP, lowered.text, NO_COMPLEX).count("stablehlo.complex") == 1


def test_a_loop_of_complex_numbers_is_the_same():
    """Run on the original's arguments, it gives the same bits, NaN in a constant included."""
    one, other = both(LOOP)
    given = [special()[40:43], np.int32(5)]
    assert (parts(one.run(given)[0]) == parts(other.run(given)[0])).all()


@pytest.mark.sweep
def test_a_loop_of_complex_numbers_is_verified():
    """By the verification, from the text alone."""
    assert hl.verify(LOOP, hl.lower(LOOP, target=NO_COMPLEX).text, target=NO_COMPLEX).ok


def test_jit_keeps_the_signature():
    """A function that is compiled for such a target takes and gives complex numbers."""
    x = np.array([1 + 2j, -0.5j], np.complex64)
    found = hl.jit(lambda x: x * x + 1, target=NO_COMPLEX)(x)
    assert (np.asarray(found) == x * x + 1).all()


def test_an_exported_signature_follows():
    """The shapes and types that JAX knows of what is exported are those of the parts."""
    source = exported(lambda x: x * 2, np.zeros((3, 4), np.complex64))
    lowered = hl.lower(source, target=NO_COMPLEX).exported
    assert [(a.shape, str(a.dtype)) for a in (*lowered.in_avals, *lowered.out_avals)] == [((3, 4, 2), "float32")] * 2


def test_a_target_that_takes_the_type_keeps_it():
    """Where only an op is refused, its numbers are taken apart and put together around it."""
    target = hl.Target("some", refused={"stablehlo.scatter": "none"}, op_dtypes={"stablehlo.multiply": ["f32"]})
    source = one_op("multiply", 3, 2)
    lowered = hl.lower(source, target=target)
    assert lowered.refused == ()
    assert [lowered.text.count(f"stablehlo.{name}") for name in ("real", "imag", "complex", "multiply")] == [2, 2, 1, 4]
    assert hl.verify(source, lowered).ok


CUSTOM = """
func.func public @main(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %y = stablehlo.negate %x : tensor<3xcomplex<f32>>
  %r = stablehlo.custom_call @lapack_x(%y) : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>
  %s = stablehlo.add %r, %y : tensor<3xcomplex<f32>>
  return %s : tensor<3xcomplex<f32>>
}
"""


def test_a_call_that_stays_keeps_its_types():
    """What is not known keeps complex numbers, which are taken apart and put together around it; that is told."""
    lowered = hl.lower(CUSTOM, target=NO_COMPLEX)
    assert "unrealized" not in lowered.text
    assert "(tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>>" in lowered.text
    assert lowered.refused


@pytest.mark.parametrize(
    "written",
    [
        "dense<(1.5, -0.0)>",
        "dense<[(1.0, 2.0), (-0.0, 0x7F800000), (0x7FC00000, 1.0e-40)]>",
        'dense<"0x0000803F000000400000004000008040000080BF000000C0">',
    ],
)
def test_a_complex_constant_is_read(written):
    """One number, several, and raw bytes: the parts are those that XLA has."""
    source = f"""func.func public @main() -> tensor<3xcomplex<f32>> {{
      %c = stablehlo.constant {written} : tensor<3xcomplex<f32>>
      return %c : tensor<3xcomplex<f32>>
    }}"""
    one, other = both(source)
    assert (parts(one.run([])[0]) == parts(other.run([])[0])).all()


# --- wrong on purpose ---


def wrong_product(a, b, c, d):
    """The imaginary part's sum a difference."""
    return a * c - b * d, a * d - b * c


def wrong_join(build, pair):
    """The halves swapped."""
    return right_join(build, pair[::-1])


right_join = complex_ops.join

WRONG = {
    "sign of a product": (complex_functions.ARITHMETIC, "multiply", wrong_product, lambda x: x * x),
    "conjugate forgotten": (complex_functions.ARITHMETIC, "negate", lambda a, b: (-a, b), lambda x: -x),
    "recovery forgotten": (
        complex_functions.ARITHMETIC,
        "divide",
        lambda a, b, c, d: complex_functions.smith(jnp.abs(c) < jnp.abs(d), a, b, c, d),
        lambda x: x / (x - x),
    ),
    "other branch": (complex_functions.EXACT, "tanh", complex_functions.tan, jnp.tanh),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_on_purpose_is_caught(case, monkeypatch):
    """A sign, a conjugate, Inf and NaN, another function: the verification tells each."""
    table, name, wrong, function = WRONG[case]
    monkeypatch.setitem(table, name, wrong)
    source = exported(function, np.zeros(6, np.complex64))
    assert hl.verify(source, hl.lower(source, target=NO_COMPLEX)).differs


def test_swapped_halves_are_caught(monkeypatch):
    """The imaginary part first is told."""
    monkeypatch.setattr(complex_ops, "join", wrong_join)
    source = exported(lambda x: x * x, np.zeros(6, np.complex64))
    assert hl.verify(source, hl.lower(source, target=NO_COMPLEX)).differs


@pytest.mark.parametrize(
    "name", ["rfft", "ifft", *(pytest.param(n, marks=pytest.mark.sweep) for n in ("fft", "irfft"))]
)
def test_a_right_transform_is_verified(name):
    """Whatever the algorithm makes of NaN and infinities, which is said; what is wrong is seen in the tests below."""
    x = np.zeros((2, 16), np.float32 if name == "rfft" else np.complex64)
    source = exported(getattr(jnp.fft, name), x)
    verdict = hl.verify(
        source, hl.lower(source, target=NO_FFT, float_mode="reassociate"), float_mode="reassociate", runs=1
    )
    assert verdict.ok, verdict
    assert any("in what is transformed" in told for region in verdict.regions for told in region.excluded)


def test_a_transform_in_the_other_direction_is_caught(monkeypatch):
    """The conjugate matrix is told, within the bounds of another order."""
    right = fft._roots
    monkeypatch.setattr(fft, "_roots", lambda *given, is_inverse: right(*given, is_inverse=not is_inverse))
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    source = exported(jnp.fft.fft, np.zeros((2, 8), np.complex64))
    lowered = hl.lower(source, target=NO_FFT, float_mode="reassociate")
    assert hl.verify(source, lowered, float_mode="reassociate").differs


def test_a_mirror_without_conjugate_is_caught(monkeypatch):
    """A transform back to real numbers whose other half is not conjugated is told."""
    right = fft._mirrored
    monkeypatch.setattr(fft, "_mirrored", lambda *given, is_odd: right(*given, is_odd=False))
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    source = exported(lambda x: jnp.fft.irfft(x, n=66), np.zeros((2, 34), np.complex64))
    lowered = hl.lower(source, target=NO_FFT, float_mode="reassociate")
    assert hl.verify(source, lowered, float_mode="reassociate").differs


def test_complex_constants_stay_unread_elsewhere():
    """Analyses of integers are not given complex numbers."""
    module = mlir.parse_module(LOOP)
    [constant] = [
        op
        for op in mlir.walked(module.operation)
        if "complex" in str(op.results and op.results[0].type) and op.name == "stablehlo.constant"
    ]
    assert mlir.constant_value(constant) is None
    assert mlir.constant_value(constant, is_complex=True)[0] == 1 + 2j
