"""Constants, comparisons, branches, sines, tangents and powers, for a target that refuses them in some form."""

import numpy as np
import pytest
from jax import numpy as jnp
from rewrites import assert_same, results
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower import cli
from hlo_lower.api.many.survey import survey
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.lowering import refused_forms
from hlo_lower.lowering.engine import traced

DTYPES = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64}
COUNTED = """%a = constant {1} : f32; %b = constant {2} : f32; %c = {0} %a, %b
%y1 = broadcast_in_dim %c, dims = [] -> 8xf32; %r = power %x, %y1"""
FINITE = hl.Target("finite", refused_forms=["constant Inf", "compare TOTALORDER"])
QUADRANTS = hl.Target("quadrants", refused_forms=["sine, cosine or tangent of large numbers"])
POSITIVE = hl.Target("positive", refused_forms=["sine or tangent below 0", "power below 0"])


def every(element, edges):
    """Every number of 16 bits; edges of wider ones of both signs, and NaN."""
    dtype = np.dtype(DTYPES[element])
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    return np.asarray([*edges, *np.negative(edges), np.nan, -np.nan], dtype)


def compared(directions, element, size):
    """A module that compares in the total order."""
    x, names = of([size], element), directions.split()
    body = "\n".join(f"%{name} = compare {name}, %x, %y, TOTALORDER" for name in names)
    return module(f"%x: {x}, %y: {x}", body, ", ".join(f"%{name}" for name in names))


def rank(values):
    """The place of floats in IEEE 754's total order, as Python integers."""
    width = 8 * values.dtype.itemsize
    found = [int(n) for n in values.view(f"u{values.dtype.itemsize}")]
    return [b if b < 1 << (width - 1) else (1 << (width - 1)) - 1 - b for b in found]


@pytest.mark.parametrize("element", DTYPES)
def test_the_total_order_is_that_of_the_bits(element):
    """Each number against others is compared as their ranks are."""
    x = every(element, [0, 1, 1.5, np.finfo(np.float32).max, np.finfo(np.float32).tiny, 5e-324, np.inf])
    y, names = np.random.default_rng(0).permutation(x), "LT LE GT GE EQ NE"
    lowered = hl.lower(compared(names, element, x.size), target=FINITE)
    assert "TOTALORDER" not in lowered.text
    first, second = (np.array(rank(values), object) for values in (x, y))
    for name, found in zip(names.split(), results(lowered, x, y, rounding="exact"), strict=True):
        np.testing.assert_array_equal(found, getattr(first, f"__{name.lower()}__")(second))


@pytest.mark.parametrize("element", DTYPES)
def test_infinities_keep_their_bits(element):
    """Both infinities, alone and beside numbers; a finite constant and a NaN stay as they are."""
    infinite = np.asarray([np.inf, -np.inf], DTYPES[element])
    bits = [f"0x{int(b):X}" for b in infinite.view(f"u{infinite.dtype.itemsize}")]
    for value, expected in ((bits[0], [np.inf] * 2), (f"[{bits[1]}, 1.5]", [-np.inf, 1.5]), ("1.5", None)):
        source = module("", f"%r = constant {value} : 2x{element}")
        lowered = hl.lower(source, target=FINITE)
        assert ("bitcast_convert" in lowered.text) is (lowered.notes != ()) is (expected is not None)
        if expected:
            np.testing.assert_array_equal(np.asarray(results(lowered)[0], np.float64), expected)
            assert hl.verify(source, lowered).ok


def test_a_constant_whose_reader_takes_another_type_is_lowered_in_that():
    """LiteRT refuses infinite constants, and bf16: the reader of the first constant gets one of f32."""
    source = hl.export(lambda x: jnp.maximum(x, -jnp.inf), np.zeros((3, 5), jnp.bfloat16))
    lowered = hl.lower(source, target="litert")
    assert "0xFF80" not in lowered.text
    assert lowered.refused == ()
    assert hl.verify(source, lowered, level="regions").ok


def test_a_report_tells_of_forms_and_of_what_is_left():
    """Also where nothing else is refused; of dynamic shape it stays, with the reason."""
    [note] = survey(hl.read(compared("LT", "f32", 4)), options=hl.Options(FINITE)).notes
    assert "(total_order_to_bits)" in note
    lowered = hl.lower(compared("LT", "f32", "?"), target=FINITE)
    [one] = lowered.refused
    assert (one.op, one.reason["note"]) == ("stablehlo.compare", "not in the form 'compare TOTALORDER'")
    [left] = lowered.notes
    assert left.startswith("left: stablehlo.compare")
    assert "of dynamic shape" in left


def test_a_body_is_left_as_it_is():
    """What a reduction's body holds is not looked at: its consumer reads it as a whole."""
    body = """%z = constant 0.0 : f32
      %r = reduce(%x, %z) <dimensions = array<i64: 0>> {%a, %b:
        %m = minimum %a, 0x7F800000; %s = add %m, %b; return %s
      } -> f32"""
    lowered = hl.lower(module("%x: 4xf32", body), target=FINITE)
    assert "bitcast_convert" not in lowered.text
    assert [(one.op, one.count) for one in lowered.refused] == [("stablehlo.constant", 1)]


BELOW, ABOVE = "0xFF800000", "0x7F800000"


def reduced(op, start, returned="%r"):
    """A module that reduces from a start, and may return that, too."""
    across = f"applies stablehlo.{op} across dimensions = [0]"
    return module("%x: 4xf32", f"%z = constant {start} : f32; %r = reduce(%x init: %z) {across}", returned)


@pytest.mark.parametrize(
    ("op", "start", "is_known"),
    [("maximum", BELOW, True), ("minimum", ABOVE, True), ("maximum", ABOVE, False), ("add", BELOW, False)],
)
def test_what_is_left_in_a_refused_form_is_counted(op, start, is_known):
    """Where a reduction begins otherwise than a consumer knows it by, that is refused."""
    refused = [one.op for one in hl.lower(reduced(op, start), target=FINITE).refused]
    assert refused == ([] if is_known else ["stablehlo.constant"])


def test_convert_tells_of_a_refused_form(tmp_path):
    """It exits with 3, and with 0 where none is left."""
    source, npu = tmp_path / "in.mlir", tmp_path / "finite.toml"
    npu.write_text('refused_forms = ["constant Inf"]\n')
    for op, code in (("add", EXIT_NOT_LOWERED), ("maximum", EXIT_OK)):
        source.write_text(reduced(op, BELOW))
        given = ["convert", str(source), "-o", str(tmp_path / "out.mlir"), "--target", str(npu), "--no-verify"]
        assert cli.main(given) == code


def test_a_reduction_begins_with_the_constant_itself():
    """A consumer knows a maximum by it; another use of the same constant is written by bits."""
    text = reduced("maximum", BELOW, "%r, %z")
    lowered = hl.lower(text, target=FINITE)
    assert lowered.text.count(BELOW) == lowered.text.count("bitcast_convert") == 1
    assert hl.verify(text, lowered).ok


def test_bits_that_are_not_turned_do_not_verify(monkeypatch):
    """Without it negative numbers stand in opposite order."""
    monkeypatch.setattr(refused_forms, "ordered_integers", lambda build, value: build.bitcast(value, "i32"))
    source = compared("LT", "f32", 16)
    assert not hl.verify(source, hl.lower(source, target=FINITE)).ok


def test_a_branch_reads_each_value_once():
    """What it reads twice it copies first, equal constants as one; what it reads once stays, and all is verified."""
    body = """%o = constant 2.0 : 4xf32
      %r = case(%i) {
        %c = constant 2.0 : 4xf32; %d = constant 3.0 : 4xf32; %s = add %x, %x; %t = multiply %s, %c
        %u = subtract %t, %o; %v = divide %u, %d; return %v
      } { return %x }"""
    text = module("%i: i32, %x: 4xf32", body)
    lowered = hl.lower(text, target=hl.Target("once", refused_forms=["case reading a value twice"]))
    branches = next(node for node in lowered.graph.main.body.nodes if node.name == "stablehlo.case").blocks
    names = [node.name.removeprefix("stablehlo.") for node in branches[0].nodes]
    assert names[:4] == ["constant", "convert", "convert", "constant"]
    for block in branches:
        inside = {value for node in block.nodes if node.name != "stablehlo.constant" for value in node.results}
        taken = [value for node in block.nodes for value in node.operands if value not in inside]
        assert len(taken) == len(set(taken))
    assert_same(text, lowered, np.int32(0), np.float32([1, -2, 0, 9]))
    assert hl.verify(text, lowered).ok
    assert "convert" not in hl.lower(text, target=FINITE).text


EDGES = 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-10, 1e30, 2.0**24 - 1, 2.0**25, np.inf, 0.99951172
"""The last one less 2 is 1 once it is rounded to f16."""
SUBNORMAL, SMALLEST = 1e-42, 2.0**-126


def of_two(body, element="f32", size=8):
    """A module of ops of %x and %y."""
    return module(f"%x: {of([size], element)}, %y: {of([size], element)}", body)


def assert_same_numbers(source, lowered, x, y, compared=slice(None)):
    """All bits are the same, but those of NaN."""
    [expected], [found] = (results(one, x, y, rounding="exact") for one in (source, lowered))
    wide = np.asarray(expected, np.float64)
    np.testing.assert_array_equal(np.asarray(found, np.float64)[compared], wide[compared])
    signs = (np.signbit(one)[compared][~np.isnan(wide[compared])] for one in (found, expected))
    np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("op", ["sine", "tan"])
@pytest.mark.parametrize("element", DTYPES)
def test_an_odd_function_is_that_of_the_magnitude(element, op):
    """Every number of 16 bits, and edges of wider ones; of subnormals XLA's tangent is zero, its sine is not."""
    x = every(element, [*EDGES, *([SUBNORMAL] if op == "sine" else [])])
    source = of_two(f"%r = {op} %x", element, x.size)
    lowered = hl.lower(source, target=POSITIVE)
    assert (lowered.refused, "(odd_function_to_magnitude)" in lowered.notes[0]) == ((), True)
    with np.errstate(invalid="ignore"):  # of NaN that signal
        size = np.abs(x.astype(np.float64))
    assert_same_numbers(source, lowered, x, x, (size == 0) | ~(size < (SMALLEST if op == "tan" else 0.0)))


@pytest.mark.parametrize("element", DTYPES)
def test_a_power_is_that_of_the_magnitude(element):
    """Each edge to the power of each: zeros, infinities, NaN, whole and odd numbers up to where all are even."""
    with np.errstate(over="ignore"):
        edges = np.asarray([*EDGES, *np.negative(EDGES), np.nan]).astype(DTYPES[element])
    x, y = (np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(edges, edges))
    source = of_two("%r = power %x, %y", element, x.size)
    lowered = hl.lower(source, target=POSITIVE)
    assert lowered.refused == ()
    assert_same_numbers(source, lowered, x, y)


@pytest.mark.parametrize(
    ("text", "is_lowered", "is_short"),
    [
        # the square is that of the magnitude; of 0, of odd and of broken exponents there is more to say
        *((of_two(f"%r = power %x, {value}"), True, True) for value in ("2.0", "-4.0")),
        *((of_two(f"%r = power %x, {value}"), True, False) for value in ("0.0", "3.0", "0.5")),
        # what is made of constants is one: x^(2 - 1) is x, x^(2 + 2) that of the magnitude
        *((of_two(COUNTED.format(op, "2.0", c)), True, True) for op, c in (("subtract", "1.0"), ("add", "2.0"))),
        (of_two(COUNTED.format("multiply", "0.0", "2.0")), True, False),
        # base and exponent may come from any op; (-0)^y has a sign where y is odd
        (of_two("%a = add %x, %y; %r = power %a, %a"), True, False),
        (of_two("%r = power -0.0, %x"), True, False),
        # a base without a sign may be 0, 1 or infinite, where the exponent may be 0 or infinite
        *((of_two(f"%a = {op} %x; %r = power %a, %y"), True, False) for op in ("abs", "exponential")),
        *((of_two(f"%r = power {base}, %x"), True, False) for base in ("0.0", "1.0")),
        (of_two("%a = abs %x; %r = power %a, 0.5"), False, True),
        # a base that is a constant of no sign, a magnitude, and what is no float are taken as they are
        (of_two("%r = power 10000.0, %x"), False, True),
        (of_two("%r = power %x, %y", "i32"), False, True),
        (of_two("%r = sine %x", "complex<f32>"), False, True),
        (of_two("%a = abs %x; %r = sine %a"), False, True),
    ],
)
def test_what_may_be_below_zero_is_lowered_and_nothing_else(text, is_lowered, is_short):
    """As a power of the magnitude, in as few ops as may be; and all is verified."""
    lowered = hl.lower(text, target=POSITIVE)
    assert lowered.refused == ()
    assert any("(power_to_magnitude)" in note for note in lowered.notes) is is_lowered
    assert ("floor" not in lowered.text) is is_short
    assert hl.verify(text, lowered).ok if is_lowered else lowered.notes == ()


def test_open_shapes_and_bodies_are_lowered_too():
    """The sine of an open shape, and in a reduction, is lowered; a power of open shape stays and is told."""
    lowered = hl.lower(of_two("%r = sine %x", size="?"), target=POSITIVE)
    assert (lowered.refused, "stablehlo.abs" in lowered.text) == ((), True)
    [left] = hl.lower(of_two("%r = power %x, %y", size="?"), target=POSITIVE).refused
    assert left.op == "stablehlo.power"
    folded = "{%a, %b: %m = sine %a; %s = add %m, %b; return %s}"
    text = of_two(f"%z = constant 0.0 : f32; %r = reduce(%x, %z) <dimensions = array<i64: 0>> {folded} -> f32", size=4)
    lowered = hl.lower(text, target=POSITIVE)
    assert lowered.refused == ()
    x = np.asarray([-1.0, 2.0, -0.0, -1e-3], np.float32)
    assert_same_numbers(text, lowered, x, x, ...)


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize(
    ("op", "word"),
    [("compare LT, %x, %y, TOTALORDER", "compare TOTALORDER"), ("sine %x", "sine or tangent below 0"),
     ("power %x, %y", "power below 0")],
)  # fmt: skip
def test_an_op_in_a_form_that_stands_on_a_refused_type_is_lowered_for_both(op, word, element):
    """It is an op of two kinds; what one of them makes of it is lowered by the other."""
    name, text = f"stablehlo.{op.split()[0]}", of_two(f"%r = {op}", element)
    scatter, wide = {"stablehlo.scatter": "lowered"}, {"i1", "i32", "f32"}
    target = hl.Target("npu", refused=scatter, refused_forms=[word], op_dtypes={name: wide}, float_mode="reassociate")
    lowered = hl.lower(text, target=target)
    assert lowered.refused == ()
    numbers = np.asarray([0.0, -0.0, 1.0, -1.0, np.inf, -2.0, np.nan, 0.5], DTYPES[element])
    [expected], [found] = (results(one, numbers, numbers[::-1], rounding="exact") for one in (text, lowered))
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64))


SMALL_ANGLES = [
    "%i = iota dim = 0 : 8xf32; %a = multiply %i, 0.5",
    "%i = iota dim = 0 : 8xi32; %c = convert %i -> 8xf32; %a = divide_by_8 %c",
    "%s = sine %b; %t = logistic %x; %m = multiply %s, 3.0; %a = subtract %m, %t",
    "%k = constant 7.0 : 8xf32; %m = abs %x; %p = compare GT, %m, %k, FLOAT; %a = select %p, %k, %m",
    "%c = convert %x -> 8xi1; %a = convert %c -> 8xf32",
    "%k = constant -8.0 : 8xf32; %n = negate %k; %a = minimum %n, %k",
]
LARGE_ANGLES = [
    "%a = add %x, %x",
    "%i = iota dim = 0 : 8xf32; %a = multiply %i, 2.0",
    "%k = constant 7.0 : 8xf32; %a = minimum %x, %k",
    "%k = constant 7.0 : 8xf32; %p = compare GT, %x, %k, FLOAT; %a = select %p, %k, %x",
    "%k = constant 7.0 : 8xf32; %p = compare LT, %x, %k, FLOAT; %a = select %p, %k, %x",
    "%k = constant 7.0 : 8xf32; %p = compare GT, %y, %k, FLOAT; %a = select %p, %k, %x",
    "%c = convert %x -> 8xi8; %d = multiply %c, %c; %a = convert %d -> 8xf32",
    "%k = constant 0x7FC00000 : 8xf32; %s = sine %b; %a = add %s, %k",
]


@pytest.mark.parametrize(
    ("body", "is_large"), [*((body, False) for body in SMALL_ANGLES), *((body, True) for body in LARGE_ANGLES)]
)
def test_angles_that_are_known_to_be_small_are_left(body, is_large):
    """By what makes them, of finite numbers; nothing is known of a sum or product that wraps around."""
    body = body.replace("%s = sine %b", "%b = constant 0.5 : 8xf32; %s = sine %b").replace(
        "divide_by_8 %c", "multiply %c, 0.125"
    )
    text = of_two(f"{body}; %r = cosine %a")
    lowered = hl.lower(text, target=QUADRANTS)
    assert (lowered.refused, "(angle_to_quadrant)" in "".join(lowered.notes)) == ((), is_large)


@pytest.mark.parametrize(
    ("element", "op", "is_lowered"),
    [("bf16", "tan", True), ("f16", "cosine", True), ("f16", "tan", False), ("f64", "sine", False)],
)
def test_of_which_types_angles_are_lowered(element, op, is_lowered):
    """Of those that are computed in f32, but a tangent of f16, of which XLA divides in f16."""
    text = of_two(f"%r = {op} %x", element)
    lowered = hl.lower(text, target=QUADRANTS)
    assert (lowered.refused, "(angle_to_quadrant)" in "".join(lowered.notes)) == ((), is_lowered)
    assert hl.verify(text, lowered).ok


@pytest.mark.parametrize(("name", "instead"), [("neg", "abs"), ("floor", "ceil"), ("div", "multiply")])
def test_wrong_powers_do_not_verify(monkeypatch, name, instead):
    """Without the sign, or what is whole, it is another function; without a division (-0)^3 has no sign."""
    source = of_two("%r = power %x, %y", size=64)
    monkeypatch.setitem(traced.ELEMENTWISE, name, instead)
    lowered = hl.lower(source, target=POSITIVE)
    if name == "div":
        [found] = results(lowered, *(np.full(64, n, np.float32) for n in (-0.0, 3.0)), rounding="exact")
        assert not np.signbit(found[0])
    else:
        assert not hl.verify(source, lowered).ok
