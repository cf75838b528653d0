"""Random programs of 64-bit integers for a target that computes on none: each result has the bits of native XLA."""

import numpy as np
import pytest
from element_type_programs import target_taking
from halves_programs import WITHOUT, differing, no_64_bits, no_unsigned_64_bits, program

import hlo_lower as hl
from hlo_lower.lowering.types.carried import halves, pairs
from hlo_lower.verify.judges.devices import compile_anywhere

WORD = ("i1", "i32", "f32")
BIT_OPS = {"and", "or", "xor", "not", *("shift_left", "shift_right_logical", "popcnt", "count_leading_zeros")}
BLOCK = 100
"""Programs of one test of the sweep."""

FEW = [
    (("extreme", "sort", "own_order"), "all"),
    (("matrices", "own_body", "convolution"), "few_types"),
    (("quotient_by_known", "shift", "unary"), "no_loops"),
    (("convert", "convert_to", "clamp"), "no_shifts"),
    (("dynamic_slice", "gather", "windows"), "few_types"),
]
"""Ops, and a target, of what every run of the tests tries."""


@pytest.mark.parametrize(("names", "target"), FEW, ids=str)
def test_programs_of_few_ops_give_the_bits_of_native_xla(names, target):
    """Sorts, folds of two results, products, quotients, shifts, conversions and moves by indices of 64 bits."""
    assert not differing(program(3, names, steps=4), no_64_bits(target))[0]


@pytest.mark.parametrize("names", [("shift", "quotient_by_known"), ("convert", "convert_to", "clamp")], ids=str)
def test_unsigned_integers_that_are_stored_as_signed_ones_have_the_bits_of_native_xla(names):
    """A ui64 that has no room is an i64, and the halves of that where an op takes none."""
    assert not differing(program(3, names, steps=4), no_unsigned_64_bits())[0]


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_programs_of_every_op_give_the_bits_of_native_xla(block):
    """Two thousand programs; where the target has bit operations on predicates alone only these may be left."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        target = list(WITHOUT)[seed % 9 % 5]
        differs, left = differing(program(seed), no_64_bits(target), (2 * seed, 2 * seed + 1))
        assert not differs, (seed, target)
        if target in ("all", "no_loops"):
            assert left == set(), (seed, target)


# --- complex numbers beside integers that are refused, too ---

REAL_ONLY = hl.Target(
    "npu",
    refused={"stablehlo.scatter": "lowered"},
    refused_dtypes={"complex<f32>": "none"},
    op_dtypes={op: d for op, d in target_taking(*WORD).op_dtypes.items() if "real" not in op and "imag" not in op}
    | {"stablehlo.convert": [*WORD], "stablehlo.complex": [*WORD]},
)
BESIDE = {
    "converted": "%r = stablehlo.convert %i : (tensor<4xTYPE>) -> tensor<4xcomplex<f32>>",
    "an index": """%k = stablehlo.slice %i [1:2] : (tensor<4xTYPE>) -> tensor<1xTYPE>
  %j = stablehlo.reshape %k : (tensor<1xTYPE>) -> tensor<TYPE>
  %d = stablehlo.dynamic_slice %x, %j, sizes = [2] : (tensor<4xcomplex<f32>>, tensor<TYPE>) -> tensor<2xcomplex<f32>>
  %z = stablehlo.constant dense<(0.0,1.0)> : tensor<complex<f32>>
  %r = stablehlo.pad %d, %z, low = [2], high = [0], interior = [0]
    : (tensor<2xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>""",
    "in a fold": """%z = stablehlo.constant dense<0> : tensor<TYPE>
  %c = stablehlo.constant dense<(0.0,1.0)> : tensor<complex<f32>>
  %f:2 = "stablehlo.reduce"(%x, %i, %c, %z) ({
  ^b(%a: tensor<complex<f32>>, %n: tensor<TYPE>, %e: tensor<complex<f32>>, %m: tensor<TYPE>):
    %g = stablehlo.compare GT, %n, %m : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
    %v = stablehlo.select %g, %a, %e : tensor<i1>, tensor<complex<f32>>
    %w = stablehlo.select %g, %n, %m : tensor<i1>, tensor<TYPE>
    stablehlo.return %v, %w : tensor<complex<f32>>, tensor<TYPE>
  }) {dimensions = array<i64: 0>} : (tensor<4xcomplex<f32>>, tensor<4xTYPE>, tensor<complex<f32>>, tensor<TYPE>)
    -> (tensor<complex<f32>>, tensor<TYPE>)
  %r = stablehlo.broadcast_in_dim %f#0, dims = [] : (tensor<complex<f32>>) -> tensor<4xcomplex<f32>>""",
}
NUMBERS = {"ui32": np.array([2**32 - 9, 1, 5, 2**31], np.uint32), "i64": np.array([1 << 40, -1, 2, -(1 << 62)])}


@pytest.mark.parametrize(("how", "element"), [("converted", "ui32"), ("an index", "i64"), ("in a fold", "i64")])
def test_integers_beside_complex_numbers_are_carried_after_them(how, element):
    """A `ui32` that becomes complex is unsigned, indices and operands of 64 bits stay one value of their own."""
    body = BESIDE[how].replace("TYPE", element)
    text = f"""func.func public @main(%x: tensor<4xcomplex<f32>>, %i: tensor<4x{element}>) -> tensor<4xcomplex<f32>> {{
  {body}
  return %r : tensor<4xcomplex<f32>>
}}"""
    lowered = hl.lower(text, target=REAL_ONLY)
    assert lowered.refused == ()
    given = [np.arange(4) + 1j * np.arange(1, 5), NUMBERS[element]]
    given[0] = given[0].astype(np.complex64)
    native, ours = compile_anywhere([(text, "quick"), (lowered.as_given, "quick")])
    assert np.array_equal(native.run(given)[0], ours.run(given)[0])


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
    text = f"""func.func public @main(%x: tensor<512x{element}>) -> tensor<512x{narrow}> {{
  %r = stablehlo.convert %x : (tensor<512x{element}>) -> tensor<512x{narrow}>
  return %r : tensor<512x{narrow}>
}}"""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 63 if element == "i64" else 64, 512)
    drawn = [int(rng.integers(1 << 62)) % (1 << int(n)) | 1 << int(n) for n in lengths]
    middles = [((257 + 2 * k) << int(n) % 54) + k % 3 - 1 for k, n in enumerate(lengths)]
    signs = rng.choice([1, -1], 512) if element == "i64" else np.ones(512, int)
    x = [int(s) * (m if k % 2 else d) for k, (s, m, d) in enumerate(zip(signs, middles, drawn, strict=True))]
    lowered = hl.lower(text, target=no_64_bits())
    assert lowered.refused == ()
    [ours] = compile_anywhere([(lowered.as_given, "quick")])
    with np.errstate(over="ignore"):
        expected = np.asarray([rounded_to(number, bits) for number in x], np.float64).astype(np.float32)
        expected = expected.astype(np.float16).astype(np.float32) if narrow == "f16" else expected
    found = ours.run([np.asarray(x, {"i64": np.int64, "ui64": np.uint64}[element])])[0]
    assert np.array_equal(np.asarray(found, np.float32), expected)


def test_an_op_without_a_form_says_so():
    """A power of integers has no carrier; its sizes are known, so that none are asked for."""
    text = """func.func public @main(%x: tensor<3xi64>) -> tensor<3xi64> {
  %r = stablehlo.power %x, %x : tensor<3xi64>
  return %r : tensor<3xi64>
}"""
    assert hl.lower(text, target=no_64_bits()).notes[0].endswith("element types i64: npu takes no form of it")


# --- wrong on purpose ---

BROKEN = {
    "halves of a sort's rows that do not meet": (
        pairs,
        "_order",
        lambda c, node, block: list(range(len(pairs.flat_types(c, block.arguments)))),
        "own_order",
    ),
    "digits in another place": (halves, "DIGIT", 16, "matrices"),
    "an upper half without the sign": (
        halves,
        "_from_narrow",
        lambda c, x, given, element: (c.build.convert(x, "i32"), c.number(0, c.build.convert(x, "i32"))),
        "convert_to",
    ),
}


SLOWEST = "digits in another place"


@pytest.mark.parametrize("how", [h if h != SLOWEST else pytest.param(h, marks=pytest.mark.sweep) for h in BROKEN])
def test_what_is_wrong_differs(how, monkeypatch):
    """Random programs see what is needed: without it some result has other bits."""
    owner, name, instead, op = BROKEN[how]
    monkeypatch.setattr(owner, name, instead)
    assert differing(program(4, (op,), steps=3), no_64_bits())[0]
