"""Modules, a folder of their own, and the command line as a function."""

from dataclasses import dataclass

import pytest

from hlo_lower.cli import main

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
module @plain {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with decode.mlir (one scatter) and plain.mlir (none), made current."""
    (tmp_path / "decode.mlir").write_text(SCATTER)
    (tmp_path / "plain.mlir").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


@pytest.fixture
def command(folder, capfdbinary):
    """Run a command in the folder."""

    def run(*argv):
        code = main(argv)
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return run


@pytest.fixture
def files_before(folder):
    """The names in the folder when the test starts."""
    return sorted(path.name for path in folder.iterdir())
