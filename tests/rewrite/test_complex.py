"""Complex numbers on targets that refuse them: each op on its parts gives the bits of native XLA; errors show."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from random_programs import MOVES, exported, program
from rewrites import assert_same, swept
from rule_examples import target
from untyped_mlir import function, module, of

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

NONE = {"complex<f32>": "none", "complex<f64>": "none"}
NO_COMPLEX, NO_FFT = target("real_only", refused_dtypes=NONE), target("real_only", "fft", refused_dtypes=NONE)
SPECIAL = np.array([0.0, -0.0, 1, -2.25, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1e-20, 0.99999994, 88.7, -7.1], "f4")
X = "3xcomplex<f32>"


def of_parts(real, imag, dtype="complex64"):
    """Complex numbers of two arrays."""
    found = np.empty(np.shape(real), dtype)
    found.real, found.imag = real, imag
    return found


def special(count=2000, seed=0, dtype="complex64"):
    """Every pair of special parts, then numbers of any magnitude."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, count)) * 10.0 ** rng.uniform(-12, 12, (2, count))
    pairs = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    return of_parts(*(np.concatenate(own) for own in zip(pairs, parts, strict=True)), dtype)


def one_op(name, count, operands=1, element="f32"):
    """A module of one elementwise op of complex numbers."""
    given = of([count], f"complex<{element}>")
    gives = of([count], element) if name in ("abs", "real", "imag") else given
    names = [f"%x{k}" for k in range(operands)]
    call = f'"stablehlo.{name}"({", ".join(names)}) : ({", ".join([given] * operands)}) -> {gives}'
    return module(", ".join(f"{x}: {given}" for x in names), f"%r = {call}")


def both(source, target=NO_COMPLEX, rounding="quick", **options):
    """The module and the lowered one under its signature, compiled."""
    lowered = hl.lower(source, target=target, **options)
    assert lowered.refused == ()
    assert "complex<" not in lowered.text
    text = source if isinstance(source, str) else source.mlir_module()
    return compile_anywhere([(text, rounding), (lowered.as_given, rounding)])


def bits(array):
    """The parts of complex numbers, as bits of floats, NaN all alike."""
    found = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    return np.where(np.isnan(found), np.nan, found).view(f"u{found.itemsize}")


def assert_same_parts(source, *given, rounding="quick"):
    """Both versions give the same bits, any NaN for NaN."""
    [expected], [found] = (version.run([*given]) for version in both(source, rounding=rounding))
    assert (bits(expected) == bits(found)).all()


EXACT = ("multiply", "divide", "abs", "sqrt", "tanh")
MORE = ("add", "subtract", "negate", "sign", "exponential", "log", "log_plus_one", "tan", "real", "imag")
GRID = [(name, element, how) for name in (*EXACT, *MORE) for element in ("f32", "f64") for how in ("quick", "exact")]
GRID += [(name, element, "default") for name, element, how in GRID if how == "exact"]


@pytest.mark.parametrize(("name", "element", "rounding"), swept(GRID, *((name, "f32", "quick") for name in EXACT)))
def test_an_op_has_the_bits_of_xla(name, element, rounding):
    """With Inf, NaN, zeros of both signs, subnormals and numbers of any size in each part, however XLA compiles it."""
    if name == "sign" and rounding != "quick":
        pytest.skip("of the signs of subnormals XLA's own two emitters differ")
    dtype = "complex64" if element == "f32" else "complex128"
    given = [special(dtype=dtype), np.random.default_rng(9).permutation(special(seed=1, dtype=dtype))]
    given = given[: 2 if name in ("add", "subtract", "multiply", "divide") else 1]
    assert_same_parts(one_op(name, len(given[0]), len(given), element), *given, rounding=rounding)


BOUNDED = {
    "sine": (np.sin, 4),
    "cosine": (np.cos, 4),
    "exponential_minus_one": (np.expm1, 4),
    "rsqrt": (lambda z: 1 / np.sqrt(z), 4),
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), 16),
    "power": (lambda z, w: z**w, 128),
}
"""Functions, what they are in NumPy, and units in the last place of the result's size (of a power for small ones)."""


@pytest.mark.parametrize("name", swept(BOUNDED, "sine"))
def test_a_function_is_within_its_bound(name):
    """In the float mode reassociate; also the sine, which XLA computes as a difference that loses all digits near 0."""
    reference, units = BOUNDED[name]
    rng, count = np.random.default_rng(2), 2 if name == "power" else 1
    given = [(rng.uniform(-5, 5, 3000) + 1j * rng.uniform(-3, 3, 3000)).astype(np.complex64) for _ in range(count)]
    _, lowered = both(one_op(name, 3000, count), float_mode="reassociate")
    expected, [found] = reference(*(x.astype(np.complex128) for x in given)), lowered.run(given)
    assert (np.abs(found - expected) <= units * 2.0**-23 * np.abs(expected)).all()


def test_what_is_not_exact_needs_the_float_mode():
    """In the exact mode it is left, with the reason, and a report says what helps."""
    source = one_op("sine", 4)
    lowered = hl.lower(source, target=NO_COMPLEX)
    assert [one.reason["dtype"] for one in lowered.refused] == ["complex<f32>"]
    assert any("the float mode reassociate allows" in note for note in lowered.notes)
    assert "complex<f32>" in lowered.text
    product = exported(lambda x: x @ x, np.zeros((3, 3), np.complex64)).mlir_module()
    [one] = survey(hl.read(product), options=Options(target=NO_COMPLEX)).refused
    assert (str(one.reason["dtype"]), one.remedy) == ("complex<f32>", "--float-mode reassociate")


OPS = MOVES | {
    "add": lambda x, y, i, k: x + y,
    "subtract": lambda x, y, i, k: x - y,
    "multiply": lambda x, y, i, k: x * y,
    "divide": lambda x, y, i, k: x / y,
    "negate": lambda x, y, i, k: -x,
    "conj": lambda x, y, i, k: jnp.conj(x) + 1j,
    "sizes": lambda x, y, i, k: lax.complex(jnp.abs(x), jnp.imag(y)),
    "exponential": lambda x, y, i, k: jnp.exp(x * 0.1),
    **{op.__name__: lambda x, y, i, k, op=op: op(x) for op in (jnp.sign, jnp.log, jnp.log1p, jnp.sqrt, jnp.tanh)},
    "select": lambda x, y, i, k: jnp.where(x == y, y, jnp.where(x != 0, x, 3j)),
    "constant": lambda x, y, i, k: x * np.array([1 + 2j, -0.5, 3j, np.inf], np.complex64),
    "real": lambda x, y, i, k: jnp.real(x).astype(jnp.complex64) + y,
    "wide": lambda x, y, i, k: x.astype(jnp.complex128).astype(x.dtype) + y,
    "narrow": lambda x, y, i, k: jnp.imag(y).astype(jnp.int32).astype(jnp.complex64) * x,
    "sort": lambda x, y, i, k: lax.sort((jnp.real(x), x), dimension=1, num_keys=1)[1],
}


@pytest.mark.parametrize("seed", swept(range(310), 1, 15, 19))
def test_random_programs_are_the_same(seed):
    """Loops, branches, calls, constants, moves and arithmetic of numbers that are real or zero in part."""
    rng = np.random.default_rng(seed)
    steps, names = program(rng, OPS)
    given = [of_parts(*rng.standard_normal((2, 4, 4)).astype(np.float32)) for _ in range(2)]
    for numbers in given:
        numbers.reshape(-1)[::5] = of_parts(*rng.choice(SPECIAL[:4], (2, 4)))
    given.append(rng.integers(0, 4, 4).astype(np.int32))
    source = exported(steps, *given)
    quick, unfused = ([one.run([*given]) for one in both(source, rounding=how)] for how in ("quick", "unfused"))
    is_same = [only_signs_of_zeros(*runs) for runs in (quick, unfused)]  # XLA makes x of 0.0 + x
    if not any(is_same):  # XLA contracts within its own product or quotient, and not of parts that it does not fuse
        for one, other in zip(*unfused, strict=True):
            assert np.allclose(one, other, rtol=1e-6, atol=1e-30, equal_nan=True), names
    if seed % 10 == 0 and all(is_same):  # it contracts by what stands beside: then the verification sees that
        assert not hl.verify(source, hl.lower(source, target=NO_COMPLEX)).differs


LENGTHS = (1, 2, 3, 5, 16, 63, 64, 65, 97, 128, 202, 360, 1000, 1024, 4096, 6007)
TRANSFORMS = [(name, n) for name in ("fft", "ifft", "rfft", "irfft") for n in (12, 66, 67, 130, *LENGTHS)]
TRANSFORMS += [(name, n) for name in ("fft2", "ifft2", "rfft2") for n in LENGTHS if n <= 128]
NOW = ("fft", 12), ("ifft", 130), ("rfft", 67), ("irfft", 66)
"""All four kinds; a dense one, two steps, and a convolution."""


@pytest.mark.parametrize(("name", "length"), swept(TRANSFORMS, *NOW))
def test_a_transform_is_within_its_bound(name, length):
    """It is as near to NumPy's as is said, of lengths with short factors and without, along one dim and two."""
    rng = np.random.default_rng(length)
    size = (3, length // 2 + 1) if name.startswith("irfft") else (4, length) if name.endswith("2") else (3, length)
    x = rng.standard_normal(size)
    x = x.astype(np.float32) if name.startswith("rfft") else (x + 1j * rng.standard_normal(size)).astype(np.complex64)
    more = {"n": length} if name == "irfft" else {}
    _, lowered = both(exported(lambda x: getattr(jnp.fft, name)(x, **more), x), NO_FFT, float_mode="reassociate")
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected, [found] = getattr(np.fft, name)(wide, **more), lowered.run([x])
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= 3 * 2.0**-23 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", swept(["fft", "ifft", "rfft", "irfft"], "rfft"))
def test_a_right_transform_is_verified(name):
    """Whatever the algorithm makes of NaN and infinities, which is said; what is wrong is seen in the test below."""
    source = exported(getattr(jnp.fft, name), np.zeros((2, 16), np.float32 if name == "rfft" else np.complex64))
    lowered = hl.lower(source, target=NO_FFT, float_mode="reassociate")
    verdict = hl.verify(source, lowered, float_mode="reassociate", runs=1)
    assert verdict.ok, verdict
    assert any("in what is transformed" in told for region in verdict.regions for told in region.excluded)


LOOP = module(
    f"%x: {X}, %n: i32",
    f"""%zero = constant 0 : i32; %c = constant [(1.0, 2.0), (0.0, -0.0), (0x7FC00000, 3.0)] : {X}
  %r:2 = while(%i = %zero, %s = %x) cond {{ %go = compare LT, %i, %n; return %go }} do {{
    %next = add %i, 1; %t = call @turned(%s, %c) -> {X}; return %next, %t
  }}""",
    "%r#1",
    function("private @turned", f"%a: {X}, %b: {X}", "%r = multiply %a, %b"),
)


def test_what_holds_complex_numbers_holds_their_parts():
    """Arguments, results, loops and calls get a last dim of 2, which is told, and can be told from the text alone."""
    lowered = hl.lower(LOOP, target=NO_COMPLEX)
    assert "complex" not in lowered.text
    assert "func.func private @turned(%arg0: tensor<3x2xf32>, %arg1: tensor<3x2xf32>)" in lowered.text
    [told] = [note.replace(" (x)", "") for note in lowered.notes if note.startswith("stored: argument 0")]
    assert told == ("stored: argument 0 of @main, complex<f32>, as f32: real and imaginary parts along a last dim of 2")
    assert as_given(LOOP, lowered.text, NO_COMPLEX).count("stablehlo.complex") == 1
    assert_same_parts(LOOP, special()[40:43], np.int32(5))  # NaN in a constant included


@pytest.mark.sweep
def test_a_loop_of_complex_numbers_is_verified():
    """By the verification, from the text alone."""
    assert hl.verify(LOOP, hl.lower(LOOP, target=NO_COMPLEX).text, target=NO_COMPLEX).ok


def test_jit_keeps_the_signature():
    """A function that is compiled for such a target takes and gives complex numbers; what is exported has the parts."""
    x = np.array([1 + 2j, -0.5j], np.complex64)
    assert (np.asarray(hl.jit(lambda x: x * x + 1, target=NO_COMPLEX)(x)) == x * x + 1).all()
    source = exported(lambda x: x * 2, np.zeros((3, 4), np.complex64))
    lowered = hl.lower(source, target=NO_COMPLEX).exported
    assert [(a.shape, str(a.dtype)) for a in (*lowered.in_avals, *lowered.out_avals)] == [((3, 4, 2), "float32")] * 2


def test_what_is_kept_stands_between_conversions():
    """Of an op alone that is refused, and around a call that stays, numbers are taken apart and put together."""
    target = hl.Target("some", refused={"stablehlo.scatter": "none"}, op_dtypes={"stablehlo.multiply": ["f32"]})
    source = one_op("multiply", 3, 2)
    lowered = hl.lower(source, target=target)
    assert lowered.refused == ()
    assert [lowered.text.count(f"stablehlo.{name}") for name in ("real", "imag", "complex", "multiply")] == [2, 2, 1, 4]
    assert_same(source, lowered, special()[40:43], special(seed=1)[90:93], any_nan=True)
    call = f"%y = negate %x; %k = custom_call @lapack_x(%y) -> {X}; %r = add %k, %y"
    left = hl.lower(module(f"%x: {X}", call), target=NO_COMPLEX)
    assert "unrealized" not in left.text
    assert f"(tensor<{X}>) -> tensor<{X}>" in left.text
    assert left.refused


@pytest.mark.parametrize(
    "written",
    [
        "(1.5, -0.0)",
        "[(1.0, 2.0), (-0.0, 0x7F800000), (0x7FC00000, 1.0e-40)]",
        '"0x0000803F000000400000004000008040000080BF000000C0"',
    ],
)
def test_a_complex_constant_is_read(written):
    """One number, several, and raw bytes: the parts are those that XLA has; analyses of integers are given none."""
    text = module("", f"%r = constant {written} : {X}")
    assert_same_parts(text)
    parsed = mlir.parse_module(text)
    [constant] = [op for op in mlir.operations_within(parsed.operation) if op.name == "stablehlo.constant"]
    assert mlir.constant_value(constant) is None
    assert mlir.constant_value(constant, is_complex=True).dtype == np.complex64


JOIN, ROOTS, MIRRORED = complex_ops.join, fft._roots, fft._mirror


def wrong_quotient(a, b, c, d):
    """Inf and NaN are not recovered."""
    return complex_functions.smith(jnp.abs(c) < jnp.abs(d), a, b, c, d)


ARITHMETIC = complex_functions.ARITHMETIC
WRONG = {
    "sign of a product": (ARITHMETIC, "multiply", lambda a, b, c, d: (a * c - b * d, a * d - b * c), lambda x: x * x),
    "conjugate forgotten": (ARITHMETIC, "negate", lambda a, b: (-a, b), lambda x: -x),
    "recovery forgotten": (ARITHMETIC, "divide", wrong_quotient, lambda x: x / (x - x)),
    "other branch": (complex_functions.EXACT, "tanh", complex_functions.tan, jnp.tanh),
    "swapped halves": (complex_ops, "join", lambda build, pair: JOIN(build, pair[::-1]), lambda x: x * x),
    "other direction": (
        *(fft, "_roots", lambda *given, is_inverse: ROOTS(*given, is_inverse=not is_inverse)),
        lambda x: jnp.fft.fft(x.reshape(-1, 4)),
    ),
    "mirror without conjugate": (
        *(fft, "_mirror", lambda *given, is_odd: MIRRORED(*given, is_odd=False)),
        lambda x: jnp.fft.irfft(x, n=66),
    ),
}
QUICK = ("sign of a product", "swapped halves", "other direction", "mirror without conjugate")


@pytest.mark.parametrize("case", swept(WRONG, *QUICK))
def test_what_is_wrong_on_purpose_is_caught(case, monkeypatch):
    """The verification tells each, of transforms within the bounds of another order."""
    owner, name, wrong, steps = WRONG[case]
    (monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr)(owner, name, wrong)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)
    mode = "reassociate" if owner is fft else "exact"
    source = exported(steps, np.zeros((2, 34) if "mirror" in case else 16, np.complex64))
    lowered = hl.lower(source, target=NO_FFT if owner is fft else NO_COMPLEX, float_mode=mode)
    assert hl.verify(source, lowered, float_mode=mode).differs
