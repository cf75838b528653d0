"""Along which dims the elements of a tensor are surely the same."""

import pytest

from hlo_lower.facts.scatter.combine import constant_dims
from hlo_lower.ir.reader import read


def dims_of(lines, shape):
    """The dims along which %r is the same, of lines that make it of %s: f32, %v: 4xf32 and %m: 2x4xf32."""
    graph = read(f"""func.func @main(%s: tensor<f32>, %v: tensor<4xf32>, %m: tensor<2x4xf32>) -> tensor<{shape}xf32> {{
  {lines}
  return %r : tensor<{shape}xf32>
}}""")
    return set(constant_dims(graph.main.body.terminator.operand(0).raw))


SPREAD = "%b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<4xf32>) -> tensor<3x4x5xf32>\n  "


@pytest.mark.parametrize(
    ("lines", "shape", "expected"),
    [
        ("%r = stablehlo.constant dense<1.0> : tensor<3x4xf32>", "3x4", {0, 1}),
        ("%r = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>", "2", set()),
        ("%r = stablehlo.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>", "2x1", {1}),
        ("%r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3x4xf32>", "3x4", {0, 1}),
        (SPREAD.replace("%b", "%r"), "3x4x5", {0, 2}),
        (
            "%o = stablehlo.slice %m [0:1, 0:4] : (tensor<2x4xf32>) -> tensor<1x4xf32>\n"
            "  %r = stablehlo.broadcast_in_dim %o, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<3x4xf32>",
            "3x4",
            {0},
        ),
        (
            f"{SPREAD}%r = stablehlo.transpose %b, dims = [1, 2, 0] : (tensor<3x4x5xf32>) -> tensor<4x5x3xf32>",
            "4x5x3",
            {1, 2},
        ),
        (f"{SPREAD}%r = stablehlo.negate %b : tensor<3x4x5xf32>", "3x4x5", {0, 2}),
        (f"{SPREAD}%r = stablehlo.reshape %b : (tensor<3x4x5xf32>) -> tensor<12x5xf32>", "12x5", set()),
        (
            "%b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3x4xf32>\n"
            "  %r = stablehlo.reshape %b : (tensor<3x4xf32>) -> tensor<12xf32>",
            "12",
            {0},
        ),
        (f"{SPREAD}%r = stablehlo.add %b, %b : tensor<3x4x5xf32>", "3x4x5", set()),
        ("%r = stablehlo.iota dim = 0 : tensor<3x4xf32>", "3x4", set()),
        ("%r = stablehlo.abs %m : tensor<2x4xf32>", "2x4", set()),
    ],
    ids=[
        *("splat", "constant", "column", "scalar", "spread", "row spread", "transpose", "negate", "merged", "reshaped"),
        *("add", "iota", "argument"),
    ],
)
def test_where_elements_are_the_same(lines, shape, expected):
    """Splats and what is spread are; what a dim is mixed with, or what is not followed, is not said to be."""
    assert dims_of(lines, shape) == expected
