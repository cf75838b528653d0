"""Wrong second versions that were once verified, each small: an edge, lost numbers, attributes, other functions."""

import pytest
from two_programs import main

import hlo_lower as hl
from hlo_lower.verify import Assumed, verify

SCATTER = """%r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>): stablehlo.return %q : tensor<f32>
  }}) : (tensor<{n}xf32>, tensor<1x1xi32>, tensor<1xf32>) -> tensor<{n}xf32>"""
UNGUARDED = """%s = stablehlo.reshape %i : (tensor<1x1xi32>) -> tensor<i32>
  %r = stablehlo.dynamic_update_slice %x, %u, %s :
    (tensor<{n}xf32>, tensor<1xf32>, tensor<i32>) -> tensor<{n}xf32>"""


def module(write=SCATTER, behind="", returned="%r", *, n=8, attributes="", more=""):
    """A module that writes one element of n, and returns that or what is computed behind."""
    kind = f"tensor<{n}xf32>"
    return f"""func.func public @main(%x: {kind}{attributes}, %u: tensor<1xf32>, %i: tensor<1x1xi32>) -> {kind} {{
  {write.format(n=n)}
  {behind}
  return {returned} : {kind}
}}
{more}"""


EXTENTS = [(8, "auto"), (128, "regions"), *(pytest.param(n, "auto", marks=pytest.mark.sweep) for n in (1, 4, 64, 100))]


@pytest.mark.parametrize(("n", "level"), EXTENTS)
def test_an_update_without_a_guard(n, level):
    """A slice is updated at the nearest place where a scatter writes nothing, whatever the extent is."""
    before = module(n=n)
    verdict = verify(before, module(UNGUARDED, n=n), level=level)
    assert (verdict.differs, verdict.exit_code) == (True, 1), verdict.lines()
    [region] = verdict.regions
    assert not 0 <= region.inputs[2].item() < n
    assert verify(before, hl.lower(before).text, level=level).ok


ZEROS = "%z = stablehlo.constant dense<0.0> : tensor<8xf32>\n  "
BEHIND = {
    "a NaN becomes a zero": f"""{ZEROS}%c = stablehlo.compare EQ, %r, %r :
    (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %s = stablehlo.select %c, %r, %z : tensor<8xi1>, tensor<8xf32>""",
    "-0.0 becomes 0.0": f"{ZEROS}%s = stablehlo.add %r, %z : tensor<8xf32>",
    "infinity becomes finite": """%l = stablehlo.constant dense<-3.40282347E+38> : tensor<8xf32>
  %h = stablehlo.constant dense<3.40282347E+38> : tensor<8xf32>
  %s = stablehlo.clamp %l, %r, %h : tensor<8xf32>""",
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_number_that_is_lost_behind_a_scatter(name):
    """What is changed of NaN, infinity and the sign of zero alone is a difference behind what both have in common."""
    verdict = verify(module(), module(behind=BEHIND[name], returned="%s"), level="regions")
    assert (verdict.differs, {region.status for region in verdict.regions}) == (True, {"differs"}), verdict.lines()


@pytest.mark.parametrize(
    ("op", "kind"),
    [("stablehlo.abs %k", "i32"), ("stablehlo.minimum %k, %most", "i32"), ("stablehlo.maximum %k, %least", "i8")],
)
def test_integers_that_place_nothing(op, kind):
    """Data below zero, above 31 and at the end of its type is drawn, too."""
    ends = f"""%most = stablehlo.constant dense<40> : tensor<4x{kind}>
%least = stablehlo.constant dense<-127> : tensor<4x{kind}>"""
    data = f"tensor<4x{kind}>"
    texts = [
        main(f"%k: {data}", f"{ends}\n{body}", returned, data)
        for body, returned in (("", "%k"), (f"%m = {op} : {data}", "%m"))
    ]
    assert verify(*texts, level="regions").differs
    assert verify(texts[0], texts[0], level="regions").ok


PLAIN = {"mhlo.sharding": '"{replicated}"', "tf.aliasing_output": "0 : i32", "jax.buffer_donor": "true"}
PROMISED = {name: f" {{{name} = {value}}}" for name, value in PLAIN.items()}


@pytest.mark.parametrize("name", PROMISED)
def test_an_attribute_of_an_argument_that_is_lost_or_gained(name):
    """Donation, aliasing and sharding are promises to the caller: told by name, whatever is computed."""
    texts = module(), module(attributes=PROMISED[name])
    for one, other, told in ((*texts, "gains"), (*texts[::-1], "loses")):
        verdict = verify(one, other, level="regions")
        assert (verdict.differs, len(verdict.interface)) == (True, 1)
        assert f"argument 0 {told} {name}" in verdict.interface[0]
    assert verify(texts[1], texts[1], level="regions").ok


def test_a_sharding_that_is_another_one():
    """Split over two devices is not replicated on both."""
    texts = [module(attributes=f' {{mhlo.sharding = "{{{s}}}"}}', more="") for s in ("replicated", "devices=[2]0,1")]
    verdict = verify(*texts, level="regions")
    assert verdict.differs
    assert "argument 0 has mhlo.sharding" in verdict.interface[0]


OTHER = """func.func public @other(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %b = stablehlo.{op} %a, %a : tensor<4xf32>
  return %b : tensor<4xf32>
}}"""


def test_another_public_function_that_computes_something_else():
    """A public function beside @main is verified, and told by its name."""
    verdict = verify(*(module(more=OTHER.format(op=op)) for op in ("add", "multiply")), level="regions")
    assert (verdict.differs, [region.function for region in verdict.regions]) == (True, ["other"])
    assert verify(*[module(more=OTHER.format(op="add"))] * 2, level="regions").ok


LOGITS = """func.func public @main(%x: tensor<16xf32>, %i: tensor<3x1xi32>) -> tensor<16xf32> {{
  %k = stablehlo.constant dense<{k}> : tensor<16xf32>
  %ban = stablehlo.constant dense<-1.0e30> : tensor<3xf32>
  %y = stablehlo.multiply %x, %k : tensor<16xf32>
  %r = "stablehlo.scatter"(%y, %i, %ban) <{{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>): stablehlo.return %q : tensor<f32>
  }}) : (tensor<16xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}}"""


@pytest.mark.parametrize(("wrong", "reassociated"), [("0.0", True), ("2.001", True), ("2.001", False)])
def test_logits_beside_a_ban(wrong, reassociated):
    """Beside -1e30 zeros are not logits, nor are logits that are off by a part in two thousand, in either mode."""
    before = LOGITS.format(k="2.0")
    right, after = (hl.lower(LOGITS.format(k=k)).text for k in ("2.0", wrong))
    assert verify(before, after, Assumed(reassociated=reassociated)).differs
    assert verify(before, right, Assumed(reassociated=reassociated)).ok


SOFTMAX = """func.func public @main(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {{
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %top = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
    : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %tops = stablehlo.broadcast_in_dim %top, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %moved = stablehlo.subtract %x, %tops : tensor<4x16xf32>
  %e = stablehlo.exponential %{exponent} : tensor<4x16xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x16xf32>, tensor<f32>) -> tensor<4xf32>
  %sums = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
  %r = stablehlo.divide %e, %sums : tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}}"""


@pytest.mark.parametrize("reassociated", [False, True])
def test_exponentials_that_overflow_are_seen(reassociated):
    """Without the maximum a softmax is the same for small numbers only: also where sums may be in another order."""
    safe, bare = (SOFTMAX.format(exponent=name) for name in ("moved", "x"))
    assert verify(safe, bare, Assumed(reassociated=reassociated)).differs
    assert verify(safe, safe.replace("%moved", "%other"), Assumed(reassociated=reassociated)).ok
