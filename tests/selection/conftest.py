"""A small tree of modules: good ones, one without scatters, one of symbolic shape, and a bad one."""

import pytest

SCATTER = """\
module @decode {
  func.func public @main(%cache: tensor<8x4xf32>, %row: tensor<4xf32>, %position: tensor<i32>) -> tensor<8x4xf32> {
    %start = stablehlo.reshape %position : (tensor<i32>) -> tensor<1xi32>
    %new = "stablehlo.scatter"(%cache, %start, %row) <{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0]>
    }> ({
    ^bb0(%current: tensor<f32>, %update: tensor<f32>):
      stablehlo.return %update : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
    return %new : tensor<8x4xf32>
  }
}
"""
PLAIN = """\
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
"""
CRASH = "module { " * 20_000 + "} " * 20_000  # deeper than the stack of jaxlib's parser


@pytest.fixture
def crash():
    """A module that jaxlib's parser does not survive."""
    return CRASH


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """The tree `zoo`, in the current folder."""
    files = {
        "top.mlir": SCATTER,
        "add/add.mlir": SCATTER.replace(
            "stablehlo.return %update", "%s = stablehlo.add %current, %update : tensor<f32>\n stablehlo.return %s"
        ),
        "add/plain.mlir": PLAIN,
        "poly/poly.mlir": SCATTER.replace("f32", "!quant.uniform<i8:f32, 2.0>"),
        "poly/recipe.mlir": "this is a recipe for bread\n",
    }
    for name, text in files.items():
        path = tmp_path / "zoo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "zoo"
