"""What torch_xla exports is found: norms that are a `batch_norm_training` over rows, and bf16 that it computes in f32,
op by op."""

import sys
from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.named import find

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.finder import raised
from recall.meaning import wrong_meanings


def norm(x="2x4x8", rows="1x8x8", parameter="8", dims="2", element="f32", ones="1.0", zeros="0.0", feature=1):
    """A norm as torch_xla exports it: x, as rows, normalized, as x again, times a weight, plus a bias."""
    count = rows.split("x")[feature]
    text = f"""
func.func @main(%bias: P, %x: X, %weight: P) -> B {{
  %zeros = stablehlo.constant dense<{zeros}> : F
  %ones = stablehlo.constant dense<{ones}> : F
  %0 = stablehlo.reshape %x : (X) -> R
  %output, %mean, %variance = "stablehlo.batch_norm_training"(%0, %ones, %zeros)
    <{{epsilon = 9.99999974E-6 : f32, feature_index = {feature} : i64}}> : (R, F, F) -> (R, F, F)
  %1 = stablehlo.broadcast_in_dim %bias, dims = [{dims}] : (P) -> B
  %2 = stablehlo.reshape %output : (R) -> B
  %3 = stablehlo.broadcast_in_dim %weight, dims = [{dims}] : (P) -> B
  %4 = stablehlo.multiply %2, %3 : B
  %5 = stablehlo.add %1, %4 : B
  return %5 : B
}}"""
    for letter, shape in {"X": x, "R": rows, "F": count, "P": parameter, "B": x}.items():
        for before, behind in ((" ", " "), (" ", ","), (" ", ")"), (" ", "\n"), ("(", ")"), ("(", ","), (">", "\n")):
            text = text.replace(f"{before}{letter}{behind}", f"{before}tensor<{shape}x{element}>{behind}")
    return text


def found(text):
    """Of each norm its name, operands, and axes or axis of channels."""
    return [
        (match.name, " ".join(match.inputs), match.attributes.get("axes", match.attributes.get("channel_axis")))
        for match in find(text)
    ]


WHOLE = "x weight bias"

FOUND = {
    "of the last axis": ({}, ("layer_norm", WHOLE, (2,))),
    "bf16": ({"element": "bf16"}, ("layer_norm", WHOLE, (2,))),
    "of two axes": (
        {"x": "3x4x8", "rows": "1x3x32", "parameter": "4x8", "dims": "1, 2"},
        ("layer_norm", WHOLE, (1, 2)),
    ),
    "of one row": ({"x": "8", "rows": "1x1x8", "dims": "0"}, ("layer_norm", WHOLE, (0,))),
    "of groups": ({"x": "2x8x4x4", "rows": "1x8x32", "dims": "1"}, ("group_norm", WHOLE, 1)),
    "a weight of the rows is none": ({"x": "8x8", "dims": "0"}, ("layer_norm", "x", (1,))),
    "features are columns": ({"feature": 2}, ("layer_norm", "x", (0, 1))),
}


@pytest.mark.parametrize("what", FOUND)
def test_norms_of_torch_xla_are_found(what):
    """With their axes, weight and bias; what is raised computes the op on random operands, and is verified."""
    settings, expected = FOUND[what]
    text = norm(**settings)
    assert found(text) == [expected]
    assert list(wrong_meanings(raised(text))) == []
    assert hl.verify(text, hl.raise_named(text).text).ok


NOT_FOUND = {
    "a scale of 2": {"ones": "2.0"},
    "an offset of 1": {"zeros": "1.0"},
    "a weight before the division": {"ones": "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]"},
    "one element in each row": {"x": "2x4x1", "rows": "1x8x1", "parameter": "1"},
}


@pytest.mark.parametrize("what", NOT_FOUND)
def test_what_looks_like_one_is_not_found(what):
    """A norm that is scaled or moved otherwise."""
    assert found(norm(**NOT_FOUND[what])) == []


def test_conversions_between_ops_are_looked_through():
    """In each function its op, and what is raised computes it; a maximum from the lowest finite number is one."""
    text = Path(__file__).with_name("torch_xla.mlir").read_text()
    assert [match.name for match in find(text)] == ["silu", "gelu", "gelu", "swiglu", "rope", "softmax"]
    assert list(wrong_meanings(raised(text))) == []
    other = text.replace("-3.40282347E+38", "-3.40282347E+37")
    assert "softmax" not in [match.name for match in find(other)]
