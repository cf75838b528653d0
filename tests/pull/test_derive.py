"""What is derived, and what is not: rewritings that are equal, and near misses that differ in one place."""

import pytest

pytest.importorskip("z3")

from hlo_lower.verify.pull import derive, terms

TILE = """func.func public @main(%x: tensor<SIZExf32>) -> tensor<SIZExf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %count = stablehlo.constant dense<COUNT> : tensor<i32>
  %step = stablehlo.constant dense<STEP> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i32>, tensor<SIZExf32>
    cond {
      %c = stablehlo.compare LT, %k, %count, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %at = stablehlo.multiply %k, %step : tensor<i32>
      %part = stablehlo.dynamic_slice %x, %at, sizes = [WIDTH] : (tensor<SIZExf32>, tensor<i32>) -> tensor<WIDTHxf32>
      %new = stablehlo.tanh %part : tensor<WIDTHxf32>
      %t = stablehlo.dynamic_update_slice %v, %new, %at : (tensor<SIZExf32>, tensor<WIDTHxf32>, tensor<i32>) -> tensor<SIZExf32>
      stablehlo.return %next, %t : tensor<i32>, tensor<SIZExf32>
    }
  return %w#1 : tensor<SIZExf32>
}"""  # noqa: E501


def tiled(count, step, width, size=1 << 20):
    """tanh of a million numbers, tile by tile."""
    text = TILE
    for word, number in (("SIZE", size), ("COUNT", count), ("STEP", step), ("WIDTH", width)):
        text = text.replace(word, str(number))
    return text


def unary(*lines, shape="1048576xf32", result=None):
    """A module of one argument %x whose last line gives %r; T is the type."""
    body = "\n".join(lines).replace("T", f"tensor<{shape}>")
    result = f"tensor<{result or shape}>"
    return f"func.func public @main(%x: tensor<{shape}>) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


NUMBERS = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
COSINE = unary("%r = stablehlo.cosine %x : T")


def scatter(body, indices="%i"):
    """Eight numbers into a million, at indices of any value."""
    return f"""func.func public @main(
  %x: tensor<1048576xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>
) -> tensor<1048576xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<8x1xi32>
  %low = stablehlo.maximum %i, %zero : tensor<8x1xi32>
  %r = "stablehlo.scatter"(%x, {indices}, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{NUMBERS}>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    {body}
  }}) : (tensor<1048576xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}}"""


def summed(filler="-0.0", count=8):
    """`scatter(ADD)` as a sum at each place, of the updates that go there and of fillers."""
    return f"""func.func public @main(
  %x: tensor<1048576xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>
) -> tensor<1048576xf32> {{
  %f = stablehlo.constant dense<{filler}> : tensor<f32>
  %j = stablehlo.slice %i [0:{count}, 0:1] : (tensor<8x1xi32>) -> tensor<{count}x1xi32>
  %k = stablehlo.reshape %j : (tensor<{count}x1xi32>) -> tensor<{count}xi32>
  %v = stablehlo.slice %u [0:{count}] : (tensor<8xf32>) -> tensor<{count}xf32>
  %where = stablehlo.broadcast_in_dim %k, dims = [1] : (tensor<{count}xi32>) -> tensor<1048576x{count}xi32>
  %here = stablehlo.iota dim = 0 : tensor<1048576x{count}xi32>
  %is = stablehlo.compare EQ, %where, %here : (tensor<1048576x{count}xi32>, tensor<1048576x{count}xi32>)
    -> tensor<1048576x{count}xi1>
  %all = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<{count}xf32>) -> tensor<1048576x{count}xf32>
  %none = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1048576x{count}xf32>
  %those = stablehlo.select %is, %all, %none : tensor<1048576x{count}xi1>, tensor<1048576x{count}xf32>
  %s = stablehlo.reduce(%those init: %f) applies stablehlo.add across dimensions = [1]
    : (tensor<1048576x{count}xf32>, tensor<f32>) -> tensor<1048576xf32>
  %r = stablehlo.add %x, %s : tensor<1048576xf32>
  return %r : tensor<1048576xf32>
}}"""


IN_ORDER = """func.func public @main(%x: tensor<1024x512xf32>) -> tensor<1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %count = stablehlo.constant dense<512> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<1024xf32>
  %w:2 = stablehlo.while(%k = %zero, %v = %none) : tensor<i32>, tensor<1024xf32>
    cond {
      %c = stablehlo.compare LT, %k, %count, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %part = stablehlo.dynamic_slice %x, %zero, %k, sizes = [1024, 1]
        : (tensor<1024x512xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x1xf32>
      %row = stablehlo.reshape %part : (tensor<1024x1xf32>) -> tensor<1024xf32>
      %t = stablehlo.add %v, %row : tensor<1024xf32>
      stablehlo.return %next, %t : tensor<i32>, tensor<1024xf32>
    }
  return %w#1 : tensor<1024xf32>
}"""
"""The sum of each row, in order."""

ASSIGN, ADD = (
    "stablehlo.return %d : tensor<f32>",
    "%s = stablehlo.add %c, %d : tensor<f32>\nstablehlo.return %s : tensor<f32>",
)
TURNED = "%s = stablehlo.add %d, %c : tensor<f32>\nstablehlo.return %s : tensor<f32>"
TANH = unary("%r = stablehlo.tanh %x : T")
TWO, THREE = ("%c = stablehlo.constant dense<2.0> : T", "%c = stablehlo.constant dense<3.0> : T")
HALF_, THIRD = ("%c = stablehlo.constant dense<0.5> : T", "%c = stablehlo.constant dense<0.333333343> : T")
SUBNORMAL = "%c = stablehlo.constant dense<1.0e-38> : T"
DIVIDED, MULTIPLIED = "%r = stablehlo.divide %x, %c : T", "%r = stablehlo.multiply %x, %c : T"
SUM = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%r = stablehlo.reduce({} init: %z) applies stablehlo.add across dimensions = [{}] : (tensor<{}xf32>, tensor<f32>) -> tensor<1024xf32>"  # noqa: E501
TURN = "%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<1024x512xf32>) -> tensor<512x1024xf32>"

EQUAL = {
    "tiles that cover it": (TANH, tiled(64, 16384, 16384)),
    "tiles that overlap": (TANH, tiled(1365, 768, 1024)),
    "an odd function": (
        TANH,
        unary("%n = stablehlo.negate %x : T", "%t = stablehlo.tanh %n : T", "%r = stablehlo.negate %t : T"),
    ),
    "a division by a power of two": (unary(TWO, DIVIDED), unary(HALF_, MULTIPLIED)),
    "operands of a combiner exchanged": (scatter(ADD), scatter(TURNED)),
    "a sum of a transpose": (
        unary(SUM.format("%x", 1, "1024x512"), shape="1024x512xf32", result="1024xf32"),
        unary(TURN, SUM.format("%t", 0, "512x1024"), shape="1024x512xf32", result="1024xf32"),
    ),
    "a scatter as a sum": (scatter(ADD), summed()),
    "a reverse of a reverse": (
        unary("%r = stablehlo.optimization_barrier %x : T"),
        unary("%t = stablehlo.reverse %x, dims = [0] : T", "%r = stablehlo.reverse %t, dims = [0] : T"),
    ),
}  # fmt: skip

DIFFERENT = {
    "a tile is missing": (TANH, tiled(63, 16384, 16384)),
    "tiles with gaps": (TANH, tiled(1365, 768, 512)),
    "an even function taken for an odd one": (
        COSINE,
        unary("%n = stablehlo.negate %x : T", "%t = stablehlo.cosine %n : T", "%r = stablehlo.negate %t : T"),
    ),
    "a division by three": (unary(THREE, DIVIDED), unary(THIRD, MULTIPLIED)),
    "clamped indices": (scatter(ADD), scatter(ADD, "%low")),
    "the last writer and a sum": (scatter(ASSIGN), scatter(ADD)),
    "zeros among what is summed": (scatter(ADD), summed("0.0")),
    "a summand less": (scatter(ADD), summed(count=7)),
    "a sum in order and one in any order": (
        IN_ORDER,
        unary(SUM.format("%x", 1, "1024x512"), shape="1024x512xf32", result="1024xf32"),
    ),
    "a sum along the other dim": (
        unary(SUM.format("%x", 1, "1024x1024"), shape="1024x1024xf32", result="1024xf32"),
        unary(SUM.format("%x", 0, "1024x1024"), shape="1024x1024xf32", result="1024xf32"),
    ),
    "a subnormal number more": (
        TANH,
        unary(SUBNORMAL, "%t = stablehlo.tanh %x : T", "%r = stablehlo.add %t, %c : T"),
    ),
    "zero with its sign": (
        unary("%r = stablehlo.optimization_barrier %x : T"),
        unary("%c = stablehlo.constant dense<0.0> : T", "%r = stablehlo.add %x, %c : T"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_derived(name):
    """Whatever the size."""
    found = derive(*EQUAL[name])
    assert found, found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not(name):
    """It stays open, with a reason."""
    found = derive(*DIFFERENT[name])
    assert found.status == "open"
    assert found.reason


def test_terms_that_are_too_large_are_not_derived(monkeypatch):
    """Before z3 is asked the terms are walked through, which takes as long as they are large."""
    monkeypatch.setattr(terms, "MOST_PARTS", 2)
    found = derive(scatter("stablehlo.return %d : tensor<f32>"), scatter("stablehlo.return %c : tensor<f32>"))
    assert found.reason == "a term of more than 2 parts"
