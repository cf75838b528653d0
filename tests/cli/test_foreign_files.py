"""Files that are no StableHLO module are told by name, with what to do, before JAX is imported."""

import os
import subprocess
import sys
import threading

import pytest

import hlo_lower as hl
from hlo_lower.cli import main

FILES = [  # a name, what the file begins with, and what is said
    ("model.onnx", b"\x08\x07\x12\x07pytorch", "is an ONNX model", "export the model that it came from"),
    ("model.bin", b"\x1c\0\0\0TFL3\x14", "is a TFLite model", "--target litert writes one"),
    ("model.vmfb", b"PK\x03\x04", "is compiled for IREE", "--target iree writes one"),
    ("model.pt2", b"PK\x03\x04", "is a PyTorch file", "docs/tutorials/pytorch.md"),
    ("model.mlir", b"HloModule jit_f, is_scheduled=true", "is HLO text", "hlo-translate"),
    (
        "model.py",
        b"# a model\nimport jax\n",
        "is a Python program",
        "hlo-lower export model.py:FUNCTION -o module.mlir",
    ),
]


@pytest.mark.parametrize(("name", "start", "what", "next_step"), FILES, ids=[what for _, _, what, _ in FILES])
def test_a_model_of_another_tool_is_recognised(name, start, what, next_step, tmp_path, monkeypatch, capsys):
    """The command and `hl.read` say what the file is and what to do with it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(start)
    assert main(["report", name]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{name}: {what}, not StableHLO\n  next:    ")
    assert next_step in told
    with pytest.raises(hl.InputError, match=what):
        hl.read(tmp_path / name)


def test_a_module_may_have_any_suffix(tmp_path):
    """Only what does not begin as MLIR is judged by its suffix."""
    (tmp_path / "module.onnx").write_text("module { func.func @main() { return } }")
    assert hl.read(tmp_path / "module.onnx").main.name == "main"


@pytest.mark.parametrize("line", ["report none.mlir", "verify none.mlir none.mlir", "convert none.mlir -o out.mlir"])
def test_a_missing_file_does_not_cost_the_import_of_jax(line, tmp_path):
    """A single file that is not there is told at once."""
    program = (
        f"import sys; from hlo_lower.cli import main; code = main({line.split()!r}); print(code, 'jax' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("2 False\n", "none.mlir: no such file\n  next:    check the path\n")


def test_a_pipe_is_read_whole(tmp_path, capsys):
    """Its beginning is not taken away by the look at it, as in `hlo-lower report <(cat module.mlir)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "module { func.func @main() { return } }"
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    assert main(["report", str(pipe)]) == 0, capsys.readouterr().err
    writer.join(5)
