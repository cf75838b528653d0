"""Modules, a folder of their own, and the command line as a function."""

import shlex
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
    """Run a command in the folder, of arguments or of one line as in a shell."""

    def run(*argv):
        code = main(shlex.split(argv[0]) if len(argv) == 1 else argv)
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return run


@pytest.fixture
def refused(folder, command):
    """Run a command that is refused: nothing is written or printed but a message that starts so and holds the words."""

    def files():  # but what Python keeps of a program that it reads
        return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)

    def run(line, start="", *words, code=2):
        before = files()
        result = command(line)
        assert (result.code, result.out) == (code, "")
        assert result.err.startswith(start)
        for word in words:
            assert word in result.err
        assert "Traceback" not in result.err
        assert before == files()
        return result.err

    return run
