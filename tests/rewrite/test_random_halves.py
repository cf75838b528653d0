"""Random programs of 64-bit integers for a target that computes on none: each result has the bits of native XLA."""

import numpy as np
import pytest
from element_type_programs import on_32_bits, target_taking
from halves_programs import OPS, WITHOUT, differing, every_op, no_64_bits, no_unsigned_64_bits, random_program
from rewrites import assert_same, results, swept
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.lowering.types.carried import halves, pairs

WORD = ("i1", "i32", "f32")
BLOCK = 100
"""Programs of one test of the sweep."""

FEW = [
    (("extreme", "f32_extreme", "sort"), no_64_bits("all")),
    (("matrices", "batched", "reduce"), no_64_bits("few_types")),
    (("convolution", "own_body"), no_64_bits("few_types")),
    (("quotient_by_known", "shift_by_known", "shift_left", "shift_right_arithmetic"), no_64_bits("no_loops")),
    (("min", "chosen", "by_bounds", "population_count", "clz", "signed"), no_64_bits("no_shifts")),
    (("convert", "from_floats", "from_narrow", "bitcast"), no_64_bits("no_shifts")),
    (("dynamic_slice", "others_by_index", "gather", "update", "windows", "cumulative"), no_64_bits("few_types")),
    (("scatter", "combined", "pad", "loop", "case"), no_64_bits("all")),
    (("shift_by_known", "quotient_by_known", "other_sign"), no_unsigned_64_bits()),
    (("convert", "from_narrow", "other_sign"), no_unsigned_64_bits()),
]
"""Ops, and a target; of each the default run tries one or two programs."""


BOTH = [(names, npu, seed) for names, npu in FEW for seed in (2, 3)]


@pytest.mark.parametrize(("names", "npu", "seed"), swept(BOTH, *BOTH[::4], *BOTH[3::4], BOTH[9], BOTH[13]), ids=str)
def test_programs_of_few_ops_give_the_bits_of_native_xla(names, npu, seed):
    """Of halves; a ui64 that has no room is an i64, and the halves of that where an op takes none."""
    assert not differing(*random_program(seed, names), npu)[0]


SHORT = ("div", "rem", "shift_left", "shift_by_known", "reduce", "gather", "pad", "chosen", "convert", "mul", "min")

WIDE = ("add", "sub", "mul", "min", "max", "xor", "chosen", "shift_by_known", "neg", "convert", "slice", "transpose")


@pytest.mark.parametrize(
    ("dtype", "names", "without"),
    [
        ("uint64", SHORT, ()),
        ("int64", ("add", "sub", "from_floats", "quotient_by_known", "sum", "update", "transpose"), ()),
        *(pytest.param(dtype, OPS, (), marks=pytest.mark.sweep) for dtype in ("int64", "uint64")),
        pytest.param("int64", ("div", "rem", "shift_left", "clamp", "sum"), ("while",), marks=pytest.mark.sweep),
        pytest.param("int64", WIDE, ("and", "or"), marks=pytest.mark.sweep),
    ],
    ids=lambda part: part if isinstance(part, str) else str(len(part)),
)
def test_every_op_gives_the_bits_of_native_xla_for_many_numbers(dtype, names, without):
    """Where the target computes on 32 bits alone: all pairs of some numbers, edges and others."""
    differs, left = differing(*every_op(sorted(names)), dtype, 32, on_32_bits(without, ("f32", "f64", "bf16", "f16")))
    assert not differs
    assert left <= {f"stablehlo.{op}" for op in without if op != "while"}


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_programs_of_every_op_give_the_bits_of_native_xla(block):
    """Two thousand programs; where the target has bit operations on predicates alone only these may be left."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        target = list(WITHOUT)[seed % 9 % 5]
        differs, left = differing(*random_program(seed, OPS), no_64_bits(target))
        assert not differs, (seed, target)
        if target in ("all", "no_loops"):
            assert left <= ({"stablehlo.while"} if target == "no_loops" else set()), (seed, target)


OWN_ORDER = module(
    "%x: 12xi64, %y: 12xi64",
    """%s:2 = sort(%x, %y) <dimension = 0 : i64, is_stable = true> {%x0, %x1, %i, %j:
    %a = minimum %x0, %x1; %b = compare EQ, %a, %x0; %c = compare NE, %x0, %x1; %o = and %b, %c; return %o
  }""",
    "%s#0, %s#1",
)
"""Rows in the order of a key of 64 bits, told by the lesser of two, of which no columns are read."""
KEYS = np.array([5, 5 << 32, -1, 5, 1 << 63, 0, -(1 << 40), (5 << 32) | 5, 2, 1 << 31, 5, 7], object) % (1 << 64)
KEYS = KEYS.astype(np.uint64).view(np.int64)


C = "4xcomplex<f32>"
NO_PARTS = {op: taken for op, taken in target_taking(*WORD).op_dtypes.items() if "real" not in op and "imag" not in op}
REAL_ONLY = hl.Target(
    "npu",
    refused={"stablehlo.scatter": "lowered"},
    refused_dtypes={"complex<f32>": "none"},
    op_dtypes=NO_PARTS | {f"stablehlo.{op}": [*WORD] for op in ("convert", "complex")},
)
BESIDE = {
    ("converted", "ui32"): f"%r = convert %i -> {C}",
    ("an index", "i64"): f"""%k = slice %i [1:2]; %j = reshape %k -> i64; %d = dynamic_slice %x, %j, sizes = [2]
      %z = constant (0.0,1.0) : complex<f32>; %r = pad %d, %z, low = [2], high = [0], interior = [0] -> {C}""",
    ("in a fold", "i64"): f"""%z = constant 0 : i64; %c = constant (0.0,1.0) : complex<f32>
      %f:2 = reduce(%x, %i, %c, %z) <dimensions = array<i64: 0>> {{%a, %n, %e, %m:
        %g = compare GT, %n, %m; %v = select %g, %a, %e; %w = select %g, %n, %m; return %v, %w
      }} -> (complex<f32>, i64)
      %r = broadcast_in_dim %f#0, dims = [] -> {C}""",
}
NUMBERS = {"ui32": np.array([2**32 - 9, 1, 5, 2**31], np.uint32), "i64": np.array([1 << 40, -1, 2, -(1 << 62)])}


@pytest.mark.parametrize(("how", "element"), BESIDE)
def test_integers_beside_complex_numbers_are_carried_after_them(how, element):
    """A `ui32` that becomes complex is unsigned, indices and operands of 64 bits stay one value of their own."""
    text = module(f"%x: {C}, %i: 4x{element}", BESIDE[how, element])
    lowered = hl.lower(text, target=REAL_ONLY)
    assert lowered.refused == ()
    assert_same(text, lowered.as_given, (np.arange(4) + 1j * np.arange(1, 5)).astype(np.complex64), NUMBERS[element])


def rounded_to(number, bits):
    """An integer rounded to so many bits, to the even one of two that are as near."""
    cut = max(abs(number).bit_length() - bits, 0)
    kept, rest = divmod(abs(number), 1 << cut)
    kept += 2 * rest > 1 << cut or (2 * rest == 1 << cut and kept % 2)
    return (kept << cut) * (1 if number >= 0 else -1)


@pytest.mark.parametrize(("narrow", "bits"), [("bf16", 8), ("f16", 11)])
@pytest.mark.parametrize("element", ["i64", "ui64"])
def test_halves_are_rounded_to_a_narrow_float_once(element, narrow, bits):
    """What is just above the middle of two numbers, and in f32 that middle, goes up."""
    lowered = hl.lower(module(f"%x: 512x{element}", f"%r = convert %x -> 512x{narrow}"), target=no_64_bits())
    assert lowered.refused == ()
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 63 if element == "i64" else 64, 512)
    drawn = [int(rng.integers(1 << 62)) % (1 << int(n)) | 1 << int(n) for n in lengths]
    middles = [((257 + 2 * k) << int(n) % 54) + k % 3 - 1 for k, n in enumerate(lengths)]
    signs = rng.choice([1, -1], 512) if element == "i64" else np.ones(512, int)
    given = [int(s) * (m if k % 2 else d) for k, (s, m, d) in enumerate(zip(signs, middles, drawn, strict=True))]
    with np.errstate(over="ignore"):
        expected = np.asarray([rounded_to(number, bits) for number in given], np.float64).astype(np.float32)
        expected = expected.astype(np.float16).astype(np.float32) if narrow == "f16" else expected
    [found] = results(lowered.as_given, np.asarray(given, {"i64": np.int64, "ui64": np.uint64}[element]))
    assert np.array_equal(np.asarray(found, np.float32), expected)


def test_an_op_without_a_form_says_so():
    """A power of integers has no carrier; its sizes are known, so that none are asked for."""
    text = module("%x: 3xi64", "%r = power %x, %x")
    assert hl.lower(text, target=no_64_bits()).notes[0].endswith("element types i64: npu takes no form of it")


def not_met(c, node, block):
    """Halves of a sort's rows that do not meet."""
    return list(range(len(pairs.flat_types(c, block.arguments))))


def without_sign(c, x, given, element):
    """An upper half without the sign."""
    return c.build.convert(x, "i32"), c.number(0, c.build.convert(x, "i32"))


def test_halves_of_an_order_that_do_not_meet_differ(monkeypatch):
    """What is right is the same, and needed."""
    given = KEYS, np.arange(12)
    assert_same(OWN_ORDER, hl.lower(OWN_ORDER, target=no_64_bits()).as_given, *given)
    monkeypatch.setattr(pairs, "_order", not_met)
    with pytest.raises(AssertionError):
        assert_same(OWN_ORDER, hl.lower(OWN_ORDER, target=no_64_bits()).as_given, *given)


@pytest.mark.parametrize(
    ("name", "instead", "ops"),
    [
        pytest.param("DIGIT", 16, ("matrices",), marks=pytest.mark.sweep),  # the slowest
        ("_from_narrow", without_sign, ("from_narrow",)),
    ],
)
def test_what_is_wrong_differs(name, instead, ops, monkeypatch):
    """Programs see what is needed: without it some result has other bits."""
    monkeypatch.setattr(halves, name, instead)
    assert any(differing(*random_program(seed, ops), no_64_bits())[0] for seed in range(2))
