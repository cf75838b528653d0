"""Floats that are moved in the last place: by how much, and which are not."""

import ml_dtypes
import numpy as np
import pytest

from hlo_lower.ir import mlir
from hlo_lower.ops.names import REDUCE_PRECISION, TANH
from hlo_lower.verify.bounds.perturbed_module import MOST, SHORT, disturbed, function_text, most_of
from hlo_lower.verify.run import Executable

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
KEPT = [0.0, -0.0, 1.0, 0.5, -2.0, 6.0, np.inf, -np.inf, np.nan]
"""Zeros, short numbers, and what is no number."""


def moved(element, values, salt, most, tail=None):
    """Values moved by the function of their type."""
    tail = (1 << SHORT[element]) - 1 if tail is None else tail
    size, tensor = len(values), f"tensor<{len(values)}x{element}>"
    text = f"""func.func public @main(%v: {tensor}, %s: tensor<ui32>, %m: tensor<ui32>) -> {tensor} {{
      %p = stablehlo.constant dense<7> : tensor<ui32>
      %t = stablehlo.constant dense<{tail}> : tensor<ui32>
      %r = call @f(%v, %s, %p, %m, %t) : ({tensor}, {", ".join(["tensor<ui32>"] * 4)}) -> {tensor}
      return %r : {tensor}
    }}
    {function_text("f", [size], element)}"""
    [result] = Executable(text, "quick").run([np.asarray(values, DTYPES[element]), np.uint32(salt), np.uint32(most)])
    return result


def places(array):
    """Where each float stands in the order of its type's magnitudes."""
    return array.view(f"u{array.dtype.itemsize}").astype(np.int64)


@pytest.mark.parametrize("element", DTYPES)
def test_each_is_moved_by_at_most_so_many_units(element):
    """By -5 to 5 units, both ends among them; zeros, short numbers, infinities, NaN and the ends of the range not at
    all; equal numbers alike, and otherwise under another salt."""
    info = ml_dtypes.finfo(DTYPES[element])
    ends = [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)]
    drawn = np.random.default_rng(0).standard_normal(500).astype(DTYPES[element])
    values = np.concatenate([np.asarray([*KEPT, *ends], DTYPES[element]), drawn, drawn])
    result = moved(element, values, 1, 5)
    first = len(KEPT) + len(ends)
    assert result[:first].tobytes() == values[:first].tobytes()
    steps = places(result[first:]) - places(values[first:])
    assert (int(steps.min()), int(steps.max())) == (-5, 5)
    np.testing.assert_array_equal(steps[:500], steps[500:])
    assert (moved(element, values, 2, 5)[first:] != result[first:]).mean() > 0.5
    assert MOST[element].plain >= 2


def test_short_numbers_are_moved_where_it_is_said():
    """1000.0 as the argument of a cosine is; zeros and what is no number are not."""
    values = np.asarray([*KEPT, *[1000.0] * 3], np.float32)
    results = [moved("f32", values, salt, 5, (1 << 32) - 1) for salt in range(6)]
    assert any((r[-1] != 1000.0) and abs(r[-1] - 1000.0) < 1e-3 for r in results)
    assert all(r[[0, 1, 6, 7, 8]].tobytes() == values[[0, 1, 6, 7, 8]].tobytes() for r in results)


def test_what_does_not_round_is_not_disturbed():
    """A module that moves, compares, negates and adds integers has no disturbed version."""
    text = """func.func public @main(%a: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
      %n = stablehlo.negate %a : tensor<4xf32>
      %m = stablehlo.maximum %n, %a : tensor<4xf32>
      %j = stablehlo.add %i, %i : tensor<4xi32>
      return %m, %j : tensor<4xf32>, tensor<4xi32>
    }"""
    assert disturbed(text) is None
    assert disturbed(text.replace("stablehlo.maximum", "stablehlo.add")) is not None


def test_a_composite_is_disturbed_in_its_decomposition():
    """It becomes a call, so that what rounds within is moved; arguments keep their attributes."""
    text = """module {
      func.func public @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
        %r = stablehlo.composite "my.twice" %a {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>
        return %r : tensor<4xf32>
      }
      func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
        %r = stablehlo.exponential %a : tensor<4xf32>
        return %r : tensor<4xf32>
      }
    }"""
    after = disturbed(text)
    assert "composite" not in after
    assert "jax.buffer_donor" in after
    x = np.linspace(0.1, 2.3, 4, dtype=np.float32)
    results = [Executable(after, "quick").run([x, np.uint32(salt)])[0] for salt in range(4)]
    assert len({r.tobytes() for r in results}) > 1
    np.testing.assert_allclose(results[0], np.exp(x), rtol=1e-5)


KIND = "tensor<4xf32>"


@pytest.mark.parametrize(
    "line",
    [
        f"chlo.next_after %a, %a : {KIND}, {KIND} -> {KIND}",
        f"stablehlo.set_dimension_size %a, %n, dim = 0 : ({KIND}, tensor<i32>) -> {KIND}",
    ],
)
def test_what_is_never_rounded_is_not_disturbed(line):
    """Ops whose declarations say that they round nothing, whatever lists there are."""
    text = f"func.func public @main(%a: {KIND}, %n: tensor<i32>) -> {KIND} {{ %r = {line}\n return %r : {KIND} }}"
    assert disturbed(text) is None


def test_what_is_rounded_once_is_moved_as_a_sum_is():
    """By less than a function that every consumer approximates in its own way."""
    module = mlir.parse_module(f"""func.func public @main(%a: {KIND}) -> {KIND} {{
      %r = stablehlo.reduce_precision %a, format = e5m10 : {KIND}
      %t = stablehlo.tanh %r : {KIND}
      return %t : {KIND}
    }}""")
    once, function = (
        most_of(op, op.results[0].type, 1) for op in mlir.named(module.operation, {REDUCE_PRECISION, TANH})[0]
    )
    assert (once, function) == (MOST["f32"].plain, MOST["f32"].function)
