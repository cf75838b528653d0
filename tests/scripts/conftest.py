"""Scripts run as a person runs them: a process of its own, in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
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


@pytest.fixture
def script(tmp_path):
    """Run a script beside decode.mlir, which holds one scatter."""
    (tmp_path / "decode.mlir").write_text(SCATTER)

    def run(name, *argv):
        command = [sys.executable, str(SCRIPTS / name), *argv]
        env = {**os.environ, "COLUMNS": "160"}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run
