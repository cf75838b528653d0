"""`rng_bit_generator` in plain ops: the bits that XLA draws on a CPU, and the state that it leaves."""

import jax
import numpy as np
import pytest
from rewrites import assert_same, results, swept
from rule_examples import target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.lowering.engine import traced
from hlo_lower.lowering.single_ops import random_bits

TARGET = target("npu", "rng_bit_generator")
NO_SHIFTS = target("npu", "rng_bit_generator", "shift_left", "shift_right_logical", "shift_right_arithmetic")
SHAPES = [(3, 4), (), (1,), (5,), (3, 5, 7), (2, 1), (17,), (1, 1, 1)]
FORMS = [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 3)]
CASES = [(*form, element, shape) for form in FORMS for shape in SHAPES for element in random_bits.DRAWN]
NOW = [case for case in CASES if case[2:] in (("ui64", (3, 4)), ("ui8", ()), ("ui32", (3, 5, 7)))]


def drawn(algorithm, size, element, shape):
    """A module that draws once."""
    s = of([size], "ui64")
    draw = f"rng_bit_generator %s, algorithm = {algorithm} : ({s}) -> ({s}, {of(shape, element)})"
    return module(f"%s: {s}", f"%a, %b = {draw}", "%a, %b")


def states(size):
    """A random state, and some near the ends of their words."""
    ends = np.array([7, 2**32 - 1, 2**64 - 1], np.uint64)[:size]
    return [np.random.default_rng(0).integers(0, 2**64, size, np.uint64), np.full(size, 2**64 - 1, np.uint64), ends]


@pytest.mark.few(7)
@pytest.mark.parametrize(("algorithm", "size", "element", "shape"), swept(CASES, *NOW))
def test_the_bits_and_the_next_state_are_those_of_xla(algorithm, size, element, shape):
    """Also where counters run over the end of a word, and where numbers are left over; shifts are lowered next."""
    text = drawn(algorithm, size, element, shape)
    npu = NO_SHIFTS if element == "ui8" else TARGET
    lowered = hl.lower(text, target=npu)
    assert not lowered.refused
    for state in states(size):
        assert_same(text, lowered, state)


def drawn_by_words(algorithm, size, read="ui32"):
    """The same from a state that is made of words, which is how JAX has it."""
    s, words = of([size], "ui64"), of([size, 2], "ui32")
    lines = f"""%s = bitcast_convert %w -> {s}
      %a, %b = rng_bit_generator %s, algorithm = {algorithm} : ({s}) -> ({s}, {of((3, 5), "ui32")})
      %after = bitcast_convert %a -> {words if read == "ui32" else of([size, 4], "ui16")}"""
    return module(f"%w: {words}", lines, "%after, %b")


NO_WIDE = target("npu", "rng_bit_generator", refused_dtypes={"i64": "none", "ui64": "none"})


@pytest.mark.parametrize(("algorithm", "size"), [("THREE_FRY", 2), ("PHILOX", 3), ("DEFAULT", 2)])
def test_a_state_of_words_needs_no_numbers_of_64_bits(algorithm, size):
    """Where they are made of words, and taken as words."""
    text = drawn_by_words(algorithm, size)
    lowered = hl.lower(text, target=NO_WIDE)
    assert not lowered.refused
    assert "ui64" not in lowered.text
    for state in states(size):
        assert_same(text, lowered, np.stack([state & 0xFFFFFFFF, state >> 32], 1).astype(np.uint32))


NUMBERS = {
    "uniform": lambda key: jax.random.uniform(key, (64,)),
    "between": lambda key: jax.random.uniform(key, (64,), minval=-3.0, maxval=5.0),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, (64,)),
    "permutation": lambda key: jax.random.permutation(key, 8),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", NUMBERS)
def test_random_numbers_without_bit_operations(name):
    """Core ML has neither these nor a bitcast: the numbers are those of JAX, and no exponent is searched."""
    source = hl.export(NUMBERS[name], jax.random.PRNGKey(0))
    lowered = hl.lower(source, target="coreml")
    assert lowered.refused == ()
    assert "stablehlo.remainder" not in lowered.text
    for key in ([0, 7], [2**32 - 1, 2**31]):
        key = np.array(key, np.uint32)
        [found] = results(lowered.as_given, key)
        np.testing.assert_array_equal(found, NUMBERS[name](key))


def test_a_shuffle_sorts_by_unsigned_keys():
    """The target stores them in signed ones, and has no bitcast; equal keys keep their order."""
    source = hl.export(lambda keys: jax.lax.sort_key_val(keys, np.arange(6, dtype=np.int32)), np.zeros(6, np.uint32))
    lowered = hl.lower(source, target="coreml")
    assert lowered.refused == ()
    for keys in ([0, 2**32 - 1, 2**31, 2**31 - 1, 1, 0], [7, 7, 2**31, 7, 2**31, 0]):
        keys = np.array(keys, np.uint32)
        for found, expected in zip(results(lowered.as_given, keys), results(source.mlir_module(), keys), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_bf16_from_bits_is_the_f32_of_the_same_number():
    """Where bf16 becomes f32: all 65,536 of them, but for NaN, of which one is as good as another."""
    lines = "%r = bitcast_convert %x -> 65536xbf16"
    for element, dtype in (("ui16", np.uint16), ("i16", np.int16)):
        text = module(f"%x: 65536x{element}", lines)
        bits = np.arange(65536).astype(dtype)
        [found] = results(hl.lower(text, widen="bf16=f32").text, bits)
        np.testing.assert_array_equal(found, results(text, bits)[0].astype(np.float32))


def bitcast(low, high, made="f32", of="ui32"):
    """A module that bitcasts integers between two."""
    return module(f"%x: 64x{of}", f"%b = clamp {low}, %x, {high}; %r = bitcast_convert %b -> 64x{made}")


NO_BITCAST = target("npu", "bitcast_convert")
DTYPES = {"i16": np.int16, "ui16": np.uint16, "i32": np.int32, "ui32": np.uint32}
OF_ONE = {
    "1 to 2": (0x3F800000, 0x3FFFFFFF),
    "a part of 2 to 4, with a sign": (0x40000005, 0x40000010, "f32", "i32"),
    "the least exponent": (24 << 23, (25 << 23) - 1),
    "the greatest": (254 << 23, (255 << 23) - 1),
    "f16": (0x3C00, 0x3FFF, "f16", "ui16"),
    "bf16": (0x3F80, 0x3FFF, "bf16", "ui16"),
    "negative": (0xBF800000, 0xBFFFFFFF),
    "negative f16, with a sign": (0xBC00 - (1 << 16), 0xBFFF - (1 << 16), "f16", "i16"),
}
OF_MORE = {
    "two exponents": bitcast(0x3F7FFFFF, 0x3FFFFFFF),
    "of either sign": bitcast(0xBF7FFFFF, 0xBFFFFFFF, of="i32"),
    "products that are subnormal": bitcast(23 << 23, (24 << 23) - 1),
    "NaN": bitcast(255 << 23, (255 << 23) + 5),
    "other widths": module("%x: 4x2xui16", "%r = bitcast_convert %x -> 4xf32"),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_floats_of_one_exponent_are_computed(name):
    """All bits at random, and both ends."""
    low, high, *types = OF_ONE[name]
    text = bitcast(low, high, *types)
    lowered = hl.lower(text, target=NO_BITCAST)
    assert lowered.refused == ()
    dtype = DTYPES[types[-1] if types else "ui32"]
    given = np.random.default_rng(0).integers(low, high, 64, np.int64, endpoint=True)
    given[:4] = low, high, 0, 1 << 15
    assert_same(text, lowered, given.astype(dtype))


MASKS = {
    "of f32": ("i32", "f32", -0x7F800001, 0x3F000000),
    "without a sign": ("ui32", "f32", 0x807FFFFF, 0x3F000000),
    "of f16": ("i16", "f16", -0x7C01, 0x3800),
    "some bits alone": ("i32", "f32", 0x7FFFFF, 0x40000000),
}


@pytest.mark.parametrize("name", MASKS)
def test_floats_whose_exponent_is_masked_are_computed(name):
    """`jnp.frexp` and `ldexp` put one exponent in the place of all; the sign stays."""
    of, made, mask, exponent = MASKS[name]
    body = f"%m = constant {mask} : 64x{of}; %e = constant {exponent} : 64x{of}; %a = and %x, %m; %b = or %a, %e"
    text = module(f"%x: 64x{of}", f"{body}; %r = bitcast_convert %b -> 64x{made}")
    lowered = hl.lower(text, target=NO_BITCAST)
    assert lowered.refused == ()
    dtype = DTYPES[of]
    given = np.random.default_rng(0).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 64, dtype, endpoint=True)
    given[:3] = 0, np.iinfo(dtype).max, np.iinfo(dtype).min
    assert_same(text, lowered, given)
    every = -1 if of.startswith("i") else 2**32 - 1
    for less in (text.replace(f"dense<{exponent}>", "dense<3>"), text.replace(f"dense<{mask}>", f"dense<{every}>")):
        assert less != text
        assert [one.op for one in hl.lower(less, target=NO_BITCAST).refused] == ["stablehlo.bitcast_convert"]


@pytest.mark.parametrize("name", OF_MORE)
def test_other_floats_are_not(name):
    assert [one.op for one in hl.lower(OF_MORE[name], target=NO_BITCAST).refused] == ["stablehlo.bitcast_convert"]


def test_a_state_that_is_taken_otherwise_is_left():
    """Halves of words are not what it was made of."""
    lowered = hl.lower(drawn_by_words("PHILOX", 2, "ui16"), target=NO_WIDE, keep_unsupported=True)
    assert "stablehlo.rng_bit_generator" in lowered.text
    assert any("ui64" in note for note in lowered.notes)


@pytest.mark.parametrize(("size", "is_lowered"), [(2, False), (3, True)])
def test_a_state_of_three_numbers_is_a_form_of_its_own(size, is_lowered):
    """IREE's Philox is XLA's from a state of two."""
    lowered = hl.lower(drawn("PHILOX", size, "ui32", (4,)), target="iree")
    assert ("stablehlo.rng_bit_generator" not in lowered.text) is is_lowered


@pytest.mark.parametrize(("size", "element", "shape"), [(2, "ui32", (0, 3)), (2, "f32", (4,)), (1, "ui32", (4,))])
def test_what_xla_does_not_draw_is_left_and_told(size, element, shape):
    """Nothing at all, floats, or from a state of another form."""
    lowered = hl.lower(drawn("THREE_FRY", size, element, shape), target=TARGET, keep_unsupported=True)
    assert "stablehlo.rng_bit_generator" in lowered.text
    assert any("the state" in note for note in lowered.notes)


@pytest.mark.sweep
@pytest.mark.parametrize("constant", ["THREEFRY_PARITY", "PHILOX_ROUNDS"])
def test_other_bits_do_not_verify(constant, monkeypatch):
    """A wrong constant of either algorithm is seen."""
    text = drawn("THREE_FRY" if "FRY" in constant else "PHILOX", 2, "ui32", (4,))
    monkeypatch.setattr(random_bits, constant, getattr(random_bits, constant) - 1)
    monkeypatch.setattr(traced, "jaxpr_of", traced.jaxpr_of.__wrapped__)  # what is kept stays right
    assert not hl.verify(text, hl.lower(text, target=TARGET), runs=1).ok
