"""Floats that are moved in the last place: by how much, and which are not."""

import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import function, module

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
    kind = f"{len(values)}x{element}"
    body = f"%p = constant 7 : ui32; %t = constant {tail} : ui32; %r = call @f(%v, %s, %p, %m, %t) -> {kind}"
    text = module(f"%v: {kind}, %s: ui32, %m: ui32", body, "%r", function_text("f", [len(values)], element))
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


COMPOSITE = '%r = stablehlo.composite "my.twice" %a {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>'


def test_a_composite_is_disturbed_in_its_decomposition():
    """It becomes a call, so that what rounds within is moved; arguments keep their attributes."""
    own = function("private @f", "%a: 4xf32", "%r = exponential %a")
    after = disturbed(module("%a: 4xf32 {jax.buffer_donor = true}", COMPOSITE, "%r", own))
    assert "composite" not in after
    assert "jax.buffer_donor" in after
    x = np.linspace(0.1, 2.3, 4, dtype=np.float32)
    results = [Executable(after, "quick").run([x, np.uint32(salt)])[0] for salt in range(4)]
    assert len({r.tobytes() for r in results}) > 1
    np.testing.assert_allclose(results[0], np.exp(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "rounds"),
    [
        ("%n = negate %a; %r = maximum %n, %a; %j = add %i, %i", False),
        ("%n = negate %a; %r = add %n, %a; %j = add %i, %i", True),
        # ops whose declarations say that they round nothing, whatever lists there are
        ("%r = chlo.next_after %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>", False),
        ("%r = set_dimension_size %a, %s, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>", False),
    ],
)
def test_what_does_not_round_is_not_disturbed(body, rounds):
    """A module that moves, compares, negates and adds integers has no disturbed version."""
    text = module("%a: 4xf32, %i: 4xi32, %s: i32", body, "%r, %j" if "%j" in body else "%r")
    assert (disturbed(text) is not None) == rounds


def test_what_is_rounded_once_is_moved_as_a_sum_is():
    """By less than a function that every consumer approximates in its own way."""
    raw = mlir.parse_module(module("%a: 4xf32", "%r = reduce_precision %a, format = e5m10; %t = tanh %r", "%t"))
    found = (most_of(op, op.results[0].type, 1) for op in mlir.named(raw.operation, {REDUCE_PRECISION, TANH})[0])
    assert tuple(found) == (MOST["f32"].plain, MOST["f32"].function)
