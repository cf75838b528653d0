"""Modules, a folder of their own, and the command line as a function."""

from dataclasses import dataclass

import pytest
from decode_module import SCATTER

from hlo_lower.cli import main

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
