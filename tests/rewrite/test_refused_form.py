"""Constants with infinities, comparisons in the total order and branches, for a target that refuses these forms."""

import numpy as np
import pytest
from jax import numpy as jnp
from rewrites import assert_same, main, results

import hlo_lower as hl
from hlo_lower import cli
from hlo_lower.api.many.survey import survey
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.lowering import refused_forms

DTYPES = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64}
FINITE = hl.Target("finite", refused_forms=["constant Inf", "compare TOTALORDER"])
V, F = "tensor<4xf32>", "tensor<f32>"


def numbers(element):
    """Every number of 16 bits; edges of wider ones, NaN of both signs among them."""
    dtype = np.dtype(DTYPES[element])
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    edges = np.asarray([0, 1, 1.5, np.finfo(dtype).max, np.finfo(dtype).tiny, 5e-324, np.inf, np.nan], dtype)
    return np.concatenate([edges, np.negative(edges)])


def compared(direction, element, size):
    """A module that compares in the total order."""
    x, r = f"tensor<{size}x{element}>", f"tensor<{size}xi1>"
    body = f"%r = stablehlo.compare {direction}, %x, %y, TOTALORDER : ({x}, {x}) -> {r}"
    return main(f"%x: {x}, %y: {x}", body, f"%r : {r}")


def rank(values):
    """The place of floats in IEEE 754's total order, as Python integers."""
    width = 8 * values.dtype.itemsize
    found = [int(n) for n in values.view(f"u{values.dtype.itemsize}")]
    return [b if b < 1 << (width - 1) else (1 << (width - 1)) - 1 - b for b in found]


@pytest.mark.few(6)
@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("element", DTYPES)
def test_the_total_order_is_that_of_the_bits(element, direction):
    """Each number against others is compared as their ranks are."""
    x = numbers(element)
    y = np.random.default_rng(0).permutation(x)
    lowered = hl.lower(compared(direction, element, x.size), target=FINITE)
    assert "TOTALORDER" not in lowered.text
    by = f"__{direction.lower()}__"
    expected = [getattr(a, by)(b) for a, b in zip(rank(x), rank(y), strict=True)]
    np.testing.assert_array_equal(results(lowered, x, y, rounding="exact")[0], expected)


@pytest.mark.parametrize("element", DTYPES)
def test_infinities_keep_their_bits(element):
    """Both infinities, alone and beside numbers; a finite constant and a NaN stay as they are."""
    of, infinite = f"tensor<2x{element}>", np.asarray([np.inf, -np.inf], DTYPES[element])
    bits = [f"0x{int(b):X}" for b in infinite.view(f"u{infinite.dtype.itemsize}")]
    for value, expected in ((bits[0], [np.inf] * 2), (f"[{bits[1]}, 1.5]", [-np.inf, 1.5]), ("1.5", None)):
        source = main("", f"%c = stablehlo.constant dense<{value}> : {of}", f"%c : {of}")
        lowered = hl.lower(source, target=FINITE)
        assert ("bitcast_convert" in lowered.text) is (lowered.notes != ()) is (expected is not None)
        if expected:
            np.testing.assert_array_equal(np.asarray(results(lowered)[0], np.float64), expected)
            assert hl.verify(source, lowered).ok


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


def reduced(op, start, more=""):
    """A module that reduces from a start, and may return that, too."""
    across = f"applies stablehlo.{op} across dimensions = [0] : ({V}, {F}) -> {F}"
    body = f"%z = stablehlo.constant dense<{start}> : {F} %r = stablehlo.reduce(%x init: %z) {across}"
    return main(f"%x: {V}", body, f"%r, %z : {F}, {F}" if more else f"%r : {F}")


def test_a_body_is_left_as_it_is():
    """What a reduction's body holds is not looked at: its consumer reads it as a whole."""
    body = f"""%z = stablehlo.constant dense<0.0> : {F}
  %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : ({V}, {F}) -> {F} reducer(%a: {F}, %b: {F}) {{
    %c = stablehlo.constant dense<0x7F800000> : {F}
    %m = stablehlo.minimum %a, %c : {F}
    %s = stablehlo.add %m, %b : {F}
    stablehlo.return %s : {F}
  }}"""
    lowered = hl.lower(main(f"%x: {V}", body, f"%r : {F}"), target=FINITE)
    assert "bitcast_convert" not in lowered.text
    assert [(one.op, one.count) for one in lowered.refused] == [("stablehlo.constant", 1)]


BELOW, ABOVE = "0xFF800000", "0x7F800000"


@pytest.mark.parametrize(
    ("op", "start", "is_known"),
    [("maximum", BELOW, True), ("minimum", ABOVE, True), ("maximum", ABOVE, False), ("add", BELOW, False)],
)
def test_what_is_left_in_a_refused_form_is_counted(op, start, is_known, tmp_path):
    """Where a reduction begins otherwise than a consumer knows it by, `convert` says so and exits with 3."""
    text = reduced(op, start)
    refused = [one.op for one in hl.lower(text, target=FINITE).refused]
    assert refused == ([] if is_known else ["stablehlo.constant"])
    source, target = tmp_path / "in.mlir", tmp_path / "finite.toml"
    source.write_text(text)
    target.write_text('description = "finite"\nrefused_forms = ["constant Inf"]\n')
    given = ["convert", str(source), "-o", str(tmp_path / "out.mlir"), "--target", str(target), "--no-verify"]
    assert cli.main(given) == (EXIT_OK if is_known else EXIT_NOT_LOWERED)


def test_a_reduction_begins_with_the_constant_itself():
    """A consumer knows a maximum by it; another use of the same constant is written by bits."""
    text = reduced("maximum", BELOW, "%z")
    lowered = hl.lower(text, target=FINITE)
    assert lowered.text.count(BELOW) == 1
    assert lowered.text.count("bitcast_convert") == 1
    assert hl.verify(text, lowered).ok


def test_bits_that_are_not_turned_do_not_verify(monkeypatch):
    """Without it negative numbers stand in opposite order."""
    bits = {"f32": "i32"}
    monkeypatch.setattr(refused_forms, "ordered", lambda build, value: build.bitcast(value, bits[value.element_type]))
    source = compared("LT", "f32", 16)
    assert not hl.verify(source, hl.lower(source, target=FINITE)).ok


BRANCHES = main(
    f"%i: tensor<i32>, %x: {V}",
    f"""%o = stablehlo.constant dense<2.0> : {V}
  %r = "stablehlo.case"(%i) ({{
    %c = stablehlo.constant dense<2.0> : {V}
    %d = stablehlo.constant dense<3.0> : {V}
    %s = stablehlo.add %x, %x : {V}
    %t = stablehlo.multiply %s, %c : {V}
    %u = stablehlo.subtract %t, %o : {V}
    %v = stablehlo.divide %u, %d : {V}
    stablehlo.return %v : {V}
  }}, {{ stablehlo.return %x : {V} }}) : (tensor<i32>) -> {V}""",
    f"%r : {V}",
)


def test_a_branch_reads_each_value_once():
    """What it reads twice it copies first, equal constants as one; what it reads once stays, and all is verified."""
    lowered = hl.lower(BRANCHES, target=hl.Target("once", refused_forms=["case reading a value twice"]))
    branches = next(node for node in lowered.graph.main.body.nodes if node.name == "stablehlo.case").blocks
    names = [node.name.removeprefix("stablehlo.") for node in branches[0].nodes]
    assert names[:4] == ["constant", "convert", "convert", "constant"]
    for block in branches:
        inside = {value for node in block.nodes if node.name != "stablehlo.constant" for value in node.results}
        taken = [value for node in block.nodes for value in node.operands if value not in inside]
        assert len(taken) == len(set(taken))
    assert_same(BRANCHES, lowered, np.int32(0), np.float32([1, -2, 0, 9]))
    assert hl.verify(BRANCHES, lowered).ok
    assert "convert" not in hl.lower(BRANCHES, target=FINITE).text
