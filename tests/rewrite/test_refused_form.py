"""Constants with infinities and comparisons in the total order, for a target that refuses these forms."""

import numpy as np
import pytest
from jax import numpy as jnp

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.cli import main
from hlo_lower.lowering import refused_forms
from hlo_lower.verify.run import Executable

DTYPES = {"f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64}
FINITE = hl.Target("finite", refused_forms=["constant Inf", "compare TOTALORDER"])


def numbers(element):
    """Every number of 16 bits; edges of wider ones, NaN of both signs among them."""
    dtype = np.dtype(DTYPES[element])
    if dtype.itemsize == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    edges = np.asarray([0, 1, 1.5, np.finfo(dtype).max, np.finfo(dtype).tiny, 5e-324, np.inf, np.nan], dtype)
    return np.concatenate([edges, np.negative(edges)])


def compared(direction, element, size):
    """A module that compares in the total order."""
    kind = f"tensor<{size}x{element}>"
    return f"""func.func public @main(%x: {kind}, %y: {kind}) -> tensor<{size}xi1> {{
      %r = stablehlo.compare {direction}, %x, %y, TOTALORDER : ({kind}, {kind}) -> tensor<{size}xi1>
      return %r : tensor<{size}xi1>
    }}"""


def rank(values):
    """The place of floats in IEEE 754's total order, as Python integers."""
    width = 8 * values.dtype.itemsize
    bits = [int(n) for n in values.view(f"u{values.dtype.itemsize}")]
    return [b if b < 1 << (width - 1) else (1 << (width - 1)) - 1 - b for b in bits]


@pytest.mark.few(6)
@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("element", DTYPES)
def test_the_total_order_is_that_of_the_bits(element, direction):
    """Each number against others is compared as their ranks are."""
    x = numbers(element)
    y = np.random.default_rng(0).permutation(x)
    lowered = hl.lower(compared(direction, element, x.size), target=FINITE)
    assert "TOTALORDER" not in lowered.text
    [found] = Executable(lowered.text, "exact").run([x, y])
    by = {"LT": "__lt__", "LE": "__le__", "GT": "__gt__", "GE": "__ge__", "EQ": "__eq__", "NE": "__ne__"}[direction]
    expected = [getattr(a, by)(b) for a, b in zip(rank(x), rank(y), strict=True)]
    np.testing.assert_array_equal(found, expected)


def constant(element, value):
    """A module that gives a constant."""
    return f"""func.func public @main() -> tensor<2x{element}> {{
      %c = stablehlo.constant dense<{value}> : tensor<2x{element}>
      return %c : tensor<2x{element}>
    }}"""


@pytest.mark.parametrize("element", DTYPES)
def test_infinities_keep_their_bits(element):
    """Both infinities, alone and beside numbers; a finite constant and a NaN stay as they are."""
    infinite = np.asarray([np.inf, -np.inf], DTYPES[element])
    bits = [hex(int(b)).upper().replace("X", "x") for b in infinite.view(f"u{infinite.dtype.itemsize}")]
    for value, expected in ((bits[0], [np.inf] * 2), (f"[{bits[1]}, 1.5]", [-np.inf, 1.5])):
        source = constant(element, value)
        lowered = hl.lower(source, target=FINITE)
        assert "bitcast_convert" in lowered.text
        [found] = Executable(lowered.text, "exact").run([])
        np.testing.assert_array_equal(np.asarray(found, np.float64), expected)
        assert hl.verify(source, lowered).ok
    assert hl.lower(constant(element, "1.5"), target=FINITE).notes == ()


def test_a_report_tells_of_forms_and_of_what_is_left():
    """Also where nothing else is refused; of dynamic shape it stays, with the reason."""
    [note] = survey(hl.read(compared("LT", "f32", 4)), options=hl.Options(FINITE)).notes
    assert "(total_order_to_bits)" in note
    lowered = hl.lower(compared("LT", "f32", "?"), target=FINITE)
    assert [(one.op, one.reason["note"]) for one in lowered.refused] == [
        ("stablehlo.compare", "not in the form 'compare TOTALORDER'")
    ]
    [left] = lowered.notes
    assert left.startswith("left: stablehlo.compare")
    assert "of dynamic shape" in left


def test_a_body_is_left_as_it_is():
    """What a reduction's body holds is not looked at: its consumer reads it as a whole."""
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<f32> {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        reducer(%a: tensor<f32>, %b: tensor<f32>) {
          %c = stablehlo.constant dense<0x7F800000> : tensor<f32>
          %m = stablehlo.minimum %a, %c : tensor<f32>
          %s = stablehlo.add %m, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
      return %r : tensor<f32>
    }"""
    lowered = hl.lower(text, target=FINITE)
    assert "bitcast_convert" not in lowered.text
    assert [(one.op, one.count) for one in lowered.refused] == [("stablehlo.constant", 1)]


STARTS = {
    "maximum from below": ("maximum", "0xFF800000", ()),
    "minimum from above": ("minimum", "0x7F800000", ()),
    "maximum from above": ("maximum", "0x7F800000", ("stablehlo.constant",)),
    "sum": ("add", "0xFF800000", ("stablehlo.constant",)),
}


@pytest.mark.parametrize("how", STARTS)
def test_what_is_left_in_a_refused_form_is_counted(how, tmp_path):
    """Where a reduction begins otherwise than a consumer knows it by, `convert` says so and exits with 3."""
    op, start, refused = STARTS[how]
    text = f"""func.func public @main(%x: tensor<4xf32>) -> tensor<f32> {{
      %z = stablehlo.constant dense<{start}> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.{op} across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %r : tensor<f32>
    }}"""  # noqa: E501
    lowered = hl.lower(text, target=FINITE)
    assert tuple(one.op for one in lowered.refused) == refused
    source, target = tmp_path / "in.mlir", tmp_path / "finite.toml"
    source.write_text(text)
    target.write_text('description = "finite"\nrefused_forms = ["constant Inf"]\n')
    given = ["convert", str(source), "-o", str(tmp_path / "out.mlir"), "--target", str(target), "--no-verify"]
    assert main(given) == (EXIT_NOT_LOWERED if refused else EXIT_OK)


def test_a_reduction_begins_with_the_constant_itself():
    """A consumer knows a maximum by it; another use of the same constant is written by bits."""
    text = """func.func public @main(%x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
      %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %r, %z : tensor<f32>, tensor<f32>
    }"""  # noqa: E501
    lowered = hl.lower(text, target=FINITE)
    assert lowered.text.count("0xFF800000") == 1
    assert lowered.text.count("bitcast_convert") == 1
    assert hl.verify(text, lowered).ok


def test_bits_that_are_not_turned_do_not_verify(monkeypatch):
    """Without it negative numbers stand in opposite order."""
    bits = {"f32": "i32"}
    monkeypatch.setattr(refused_forms, "ordered", lambda build, value: build.bitcast(value, bits[value.element_type]))
    source = compared("LT", "f32", 16)
    assert not hl.verify(source, hl.lower(source, target=FINITE)).ok


BRANCHES = """func.func public @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %o = stablehlo.constant dense<2.0> : tensor<4xf32>
  %r = "stablehlo.case"(%i) ({
    %c = stablehlo.constant dense<2.0> : tensor<4xf32>
    %d = stablehlo.constant dense<3.0> : tensor<4xf32>
    %s = stablehlo.add %x, %x : tensor<4xf32>
    %t = stablehlo.multiply %s, %c : tensor<4xf32>
    %u = stablehlo.subtract %t, %o : tensor<4xf32>
    %v = stablehlo.divide %u, %d : tensor<4xf32>
    stablehlo.return %v : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
ONCE = hl.Target("once", refused_forms=["case reading a value twice"])


def test_a_branch_reads_each_value_once():
    """What it reads twice it copies first, equal constants as one; what it reads once stays, and all is verified."""
    lowered = hl.lower(BRANCHES, target=ONCE)
    branches = next(node for node in lowered.graph.main.body.nodes if node.name == "stablehlo.case").blocks
    assert [node.name.removeprefix("stablehlo.") for node in branches[0].nodes][:4] == [
        *("constant", "convert", "convert", "constant"),
    ]
    for block in branches:
        inside = {value for node in block.nodes if node.name != "stablehlo.constant" for value in node.results}
        taken = [value for node in block.nodes for value in node.operands if value not in inside]
        assert len(taken) == len(set(taken))
    assert hl.verify(BRANCHES, lowered).ok
    assert "convert" not in hl.lower(BRANCHES, target=FINITE).text
