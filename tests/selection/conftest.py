"""A small tree of modules: good ones, one without scatters, one of symbolic shape, and a bad one."""

import pytest
from decode_module import SCATTER

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
