"""XLA's own custom calls for the largest elements: what they are, bit for bit, and what may be something else."""

import numpy as np
import pytest
from legalized import legalized, results

import hlo_lower as hl

RESULTS = "(tensor<4x3xf32>, tensor<4x3xi32>)"
GREATER = """
  func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %r = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %r : tensor<i1>
  }"""
EXACT = f"""module {{
  func.func public @main(%x: tensor<4x9xf32>) -> {RESULTS} {{
    %t:2 = stablehlo.custom_call @TopK(%x) {{called_computations = [@greater]}} : (tensor<4x9xf32>) -> {RESULTS}
    return %t#0, %t#1 : tensor<4x3xf32>, tensor<4x3xi32>
  }}
{GREATER}
}}"""
HOW = "aggregate_to_topk = true, is_fallback = true, recall_target = 9.5e-01 : f32, reduction_dim = 1 : i64"
APPROXIMATE = f"""module {{
  func.func public @main(%x: tensor<4x9xf32>) -> {RESULTS} {{
    %i = stablehlo.iota dim = 1 : tensor<4x9xi32>
    %n = stablehlo.constant dense<-1> : tensor<i32>
    %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %t:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %l, %n) {{backend_config = "", called_computations = [@greater],
      mhlo.backend_config = {{{HOW}, reduction_input_size_override = -1 : i64, top_k = 3 : i64}}}}
      : (tensor<4x9xf32>, tensor<4x9xi32>, tensor<f32>, tensor<i32>) -> {RESULTS}
    return %t#0, %t#1 : tensor<4x3xf32>, tensor<4x3xi32>
  }}
{GREATER.replace(", TOTALORDER", "")}
}}"""


def rows(seed):
    """Rows with equal numbers, NaN of both signs, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0, -2.5], np.float32)
    x = rng.choice(special, (4, 9))
    x[:2] = np.where(rng.random((2, 9)) < 0.5, rng.integers(-3, 3, (2, 9)), x[:2])
    return x.astype(np.float32)


@pytest.mark.parametrize("text", [EXACT, APPROXIMATE], ids=["exact", "approximate"])
def test_the_largest_are_those_of_xla(text):
    """Values and places, where it is written out and as a sort of the target's own."""
    after, _ = legalized(text)
    sorts = hl.lower(text, target="tt", legalize=True)
    assert "custom_call" not in after
    for seed in range(20):
        x = rows(seed)
        expected = results(text, x)
        for one in (after, sorts.text):
            for own, found in zip(expected, results(one, x), strict=True):
                np.testing.assert_array_equal(own, found)
                np.testing.assert_array_equal(np.signbit(own), np.signbit(found) | np.isnan(own) & np.signbit(own))


LEAST = APPROXIMATE.replace("GT,", "LT,").replace("0xFF800000", "0x7F800000")


def test_the_least_are_sorted_by_the_function_itself():
    """As XLA sorts them, NaN among them, which it does not put in order; a target without sorts says so."""
    after, _ = legalized(LEAST)
    assert "custom_call" not in after
    for seed in range(20):
        x = rows(seed)
        for own, found in zip(results(LEAST, x), results(after, x), strict=True):
            np.testing.assert_array_equal(own.view(np.int32), found.view(np.int32))
    [left] = hl.lower(LEAST, target="coreml", legalize=True).refused
    assert left.op == "stablehlo.sort"
    assert "floats need compare_type TOTALORDER (NaN)" in str(hl.lower(LEAST, target="coreml", legalize=True).notes)


def test_the_least_integers_are_found_without_a_sort():
    """Of integers the function is an order, which the sort is lowered by."""
    text = LEAST.replace("0x7F800000> : tensor<f32>", "7> : tensor<i32>").replace("9.5e-01 : f32", "9.5e-01 : F32")
    text = text.replace("f32", "i32").replace("F32", "f32")
    lowered = hl.lower(text, target="coreml", legalize=True)
    assert lowered.refused == ()
    x = np.random.default_rng(0).integers(-3, 3, (4, 9), np.int32)
    expected, found = results(text, x), results(lowered.text, x)
    np.testing.assert_array_equal(expected[0], found[0])
    np.testing.assert_array_equal(np.take_along_axis(x, found[1], 1), found[0])


OTHERS = {
    "the least": (EXACT, "GT", "LT"),
    "the other way round": (EXACT, "GT, %a, %b", "GT, %b, %a"),
    "by its places": (
        EXACT,
        "GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>)",
        "GT, %i, %j : (tensor<i32>, tensor<i32>)",
    ),
    "an effect": (EXACT, "{called", "{has_side_effect = true, called"),
    "an attribute that is not read": (EXACT, "{called", "{novel = 1 : i32, called"),
    "of a part": (APPROXIMATE, "aggregate_to_topk = true", "aggregate_to_topk = false"),
    "along another dim": (APPROXIMATE, "reduction_dim = 1", "reduction_dim = 0"),
    "other numbers beside": (APPROXIMATE, "iota dim = 1", "iota dim = 0"),
    "a word that is not read": (APPROXIMATE, "top_k = 3", "novel = 1 : i64, top_k = 3"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_may_be_something_else_is_left(name):
    text, old, new = OTHERS[name]
    assert old in text
    assert "custom_call" in legalized(text.replace(old, new, 1))[0]
