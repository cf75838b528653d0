"""Every bad input ends in a clear message and exit code 2, without an output file and without a traceback."""

import os
import subprocess
import sys

import pytest

HEAD = "module {\n  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
TAIL = "    return %y : tensor<4xf32>\n  }\n}\n"

BAD_TEXT = {
    "not_mlir": ("this is a recipe for bread\n", "1:1", "unknown"),
    "unknown_dialect": (
        HEAD + '    %y = "torch.aten.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n' + TAIL,
        "3:",
        "unknown dialect",
    ),
    "unknown_op": (HEAD + "    %y = stablehlo.sinus %x : tensor<4xf32>\n" + TAIL, "3:", "sinus"),
    "private_only": (
        HEAD.replace("public @main", "private @f") + "    return %x : tensor<4xf32>\n  }\n}\n",
        "",
        "public function",
    ),
    "verifier": (
        HEAD + "    %z = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>\n" + TAIL.replace("%y", "%x"),
        "3:",
        "number of",
    ),
    "empty": ("", "", "empty"),
    "blank": (" \n\n", "", "empty"),
    "cut_off": (HEAD, ":", "expected"),
}


@pytest.fixture(params=sorted(BAD_TEXT))
def bad(request, folder):
    """A bad file, the place and the word that the message must hold."""
    text, place, word = BAD_TEXT[request.param]
    (folder / "bad.mlir").write_text(text)
    return place, word


def no_trace_of_output(folder, names):
    """Nothing was written: no output, no temporary file."""
    return names == sorted(path.name for path in folder.iterdir())


def test_convert_refuses_bad_text(bad, folder, command, files_before):
    """The message names the file, the place and what is wrong; there is a next step; nothing is written."""
    place, word = bad
    names = sorted(path.name for path in folder.iterdir())
    result = command("convert", "bad.mlir", "-o", "out.mlir", "--report", "r.json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("bad.mlir:")
    assert place in result.err.splitlines()[0]
    assert word in result.err
    assert "  next:    " in result.err
    assert "Traceback" not in result.err
    assert no_trace_of_output(folder, names)


def test_report_refuses_bad_text(bad, command):
    """The report of one unreadable module is its error."""
    _, word = bad
    result = command("report", "bad.mlir")
    assert (result.code, result.out) == (2, "")
    assert word in result.err
    assert "Traceback" not in result.err


def test_verify_refuses_bad_text(bad, command):
    """Both sides are checked."""
    _, word = bad
    for pair in (("bad.mlir", "decode.mlir"), ("decode.mlir", "bad.mlir")):
        result = command("verify", *pair)
        assert (result.code, result.out) == (2, "")
        assert "bad.mlir" in result.err
        assert word in result.err


@pytest.mark.parametrize("keep", [4, 20, 100, -40, -1])
@pytest.mark.parametrize("emit", ["bytecode", "portable"])
def test_truncated_bytecode_is_refused(folder, command, emit, keep):
    """A cut-off module is an error that names the file, wherever the cut is."""
    assert command("convert", "decode.mlir", "-o", "whole.bin", "--emit", emit, "--no-verify").code == 0
    (folder / "cut.mlirbc").write_bytes((folder / "whole.bin").read_bytes()[:keep])
    result = command("convert", "cut.mlirbc", "-o", "out.mlir")
    assert result.code == 2
    assert result.err.startswith("cut.mlirbc")
    assert "Traceback" not in result.err
    assert not (folder / "out.mlir").exists()


def test_binary_rubbish_is_refused(folder, command):
    """Bytes that are no module are told as such, with the first of them."""
    (folder / "rubbish.bin").write_bytes(bytes(range(256)))
    result = command("report", "rubbish.bin")
    assert result.code == 2
    assert result.err.startswith("rubbish.bin: is neither MLIR text, MLIR bytecode")
    assert "00 01 02 03" in result.err


@pytest.mark.parametrize("name", ["missing.mlir", "missing/deep.mlir"])
def test_missing_file(command, name):
    """A file that does not exist is named as the user named it."""
    for argv in (("report", name), ("convert", name, "-o", "out.mlir"), ("verify", name, "decode.mlir")):
        result = command(*argv)
        assert result.code == 2
        assert result.err.startswith(f"{name}: no such file\n")


def test_directory_as_input(folder, command):
    """A directory is refused, and the message says to name files."""
    (folder / "models").mkdir()
    for argv in (("report", "models"), ("convert", "models", "-o", "out.mlir")):
        result = command(*argv)
        assert result.code == 2
        assert result.err.startswith("models: is a directory")
        assert "name a file" in result.err
    assert not (folder / "out.mlir").exists()


def test_unknown_target_lists_the_known(folder, command):
    """The message names the target that was asked for and those that exist."""
    for argv in (
        ("report", "decode.mlir"),
        ("convert", "decode.mlir", "-o", "out.mlir"),
        ("verify", "decode.mlir", "decode.mlir"),
        ("rules",),
    ):
        result = command(*argv, "--target", "toaster")
        assert (result.code, result.out) == (2, "")
        assert "toaster" in result.err
        assert "stablehlo" in result.err
    assert not (folder / "out.mlir").exists()


MODEL = """\
import jax

def step(x):
    return x + 1

EXPORTS = {"step": {"args": (jax.ShapeDtypeStruct((3,), "float32"),)}}
"""


@pytest.mark.parametrize(
    ("function", "word"),
    [
        ("llama.py:steps", "step"),
        ("lama.py:step", "llama.py"),
        ("no.such.package:step", "no"),
        ("llama.py", "not the name of a function"),
    ],
)
def test_unknown_model(folder, command, function, word):
    """A model or function that does not exist is refused, with the nearest that does."""
    (folder / "llama.py").write_text(MODEL)
    result = command("export", function, "-o", "out.mlir")
    assert (result.code, result.out) == (2, "")
    assert word in result.err
    assert "Traceback" not in result.err
    assert not (folder / "out.mlir").exists()


def test_output_folder_that_does_not_exist(folder, command):
    """The folder is named, with the command that makes it."""
    result = command("convert", "decode.mlir", "-o", "no/such/out.mlir")
    assert result.code == 2
    assert result.err == "no/such/out.mlir: the folder no/such does not exist\n  next:    make it: mkdir -p no/such\n"


def test_output_that_is_a_directory(folder, command):
    """A directory cannot be written."""
    (folder / "out").mkdir()
    result = command("convert", "decode.mlir", "-o", "out")
    assert result.code == 2
    assert result.err.startswith("out: is a directory")


def test_output_below_a_file(folder, command):
    """A file is not a folder."""
    result = command("convert", "decode.mlir", "-o", "plain.mlir/out.mlir")
    assert result.code == 2
    assert result.err.startswith("plain.mlir/out.mlir: plain.mlir is not a folder")


@pytest.mark.parametrize("denied", [".", "out.mlir"])
def test_output_without_permission(folder, command, monkeypatch, denied):
    """A folder without permission and a write-protected file are told before any work (root may write anywhere)."""
    (folder / "out.mlir").write_text("kept")
    real = os.path.realpath(denied)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != real and access(path, mode))
    result = command("convert", "missing.mlir", "-o", "out.mlir")
    assert result.code == 2
    assert result.err.startswith("out.mlir: ")
    assert "no such file" not in result.err
    assert (folder / "out.mlir").read_text() == "kept"


@pytest.mark.parametrize(
    "argv",
    [
        ("convert", "missing.mlir", "-o", "no/out.mlir"),
        ("convert", "missing.mlir", "-o", "out.mlir", "--report", "no/r.json"),
        ("report", "missing.mlir", "-o", "no/r.json", "--format", "json"),
        ("export", "missing.py:step", "-o", "no/out.mlir"),
    ],
)
def test_output_is_checked_before_the_work(command, argv):
    """The output is complained about before the input is read."""
    result = command(*argv)
    assert result.code == 2
    assert "the folder no does not exist" in result.err


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("explode",),
        ("convert", "decode.mlir"),
        ("convert", "decode.mlir", "-o", "out.mlir", "--oob", "clamp"),
        ("convert", "decode.mlir", "-o", "out.mlir", "--verify", "sometimes"),
        ("report",),
        ("report", "decode.mlir", "--format", "pdf"),
        ("report", "decode.mlir", "--explain", "x"),
        ("report", "decode.mlir", "--fail-on", "scatter"),
        ("report", "decode.mlir", "--form", "json"),
        ("verify", "decode.mlir"),
        ("verify", "decode.mlir", "decode.mlir", "--runs", "-1"),
        ("export", "llama.py:step", "-o", "x.mlir", "--set", "layers"),
    ],
)
def test_bad_usage(folder, command, argv):
    """A command line that makes no sense gives a usage line and exit code 2."""
    result = command(*argv)
    assert (result.code, result.out) == (2, "")
    assert "usage: hlo-lower" in result.err
    assert not (folder / "out.mlir").exists()


def test_standard_input_twice(command):
    """Standard input is read once."""
    assert command("verify", "-", "-").code == 2
    assert command("report", "-", "-").code == 2
    assert command("convert", "decode.mlir", "-o", "-", "--report", "-").code == 2


def test_report_onto_the_output(folder, command):
    """The JSON report does not overwrite the module."""
    result = command("convert", "decode.mlir", "-o", "out.mlir", "--report", "./out.mlir")
    assert result.code == 2
    assert not (folder / "out.mlir").exists()


def test_explain_beyond_the_last_scatter(command):
    """The message says which numbers there are."""
    result = command("report", "decode.mlir", "--explain", "2")
    assert (result.code, result.out) == (2, "")
    assert "there is no scatter 2 to explain" in result.err
    assert "the only scatter is number 1" in result.err


def test_only_that_matches_nothing(folder, command):
    """A pattern without a scatter is an error, not an unchanged module."""
    result = command("convert", "decode.mlir", "-o", "out.mlir", "--only", "nowhere.py:*")
    assert result.code == 2
    assert "nowhere.py:*" in result.err
    assert not (folder / "out.mlir").exists()


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04rubbish", b"rubbish"])
def test_inputs_that_are_no_arrays(folder, command, content):
    """A file of inputs that is missing or no .npz is named."""
    if content is not None:
        (folder / "x.npz").write_bytes(content)
    result = command("verify", "decode.mlir", "decode.mlir", "--inputs", "x.npz")
    assert result.code == 2
    assert result.err.startswith("x.npz: ")


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("convert", "bad.mlir", "-o", "out.mlir"), "bad.mlir:1:1"),
        (("convert", "decode.mlir", "-o", "no/out.mlir"), "no/out.mlir: the folder no does not exist"),
    ],
)
def test_as_a_process(folder, argv, word):
    """`python -m hlo_lower` gives the same message and exit code, and no traceback."""
    (folder / "bad.mlir").write_text("this is a recipe for bread\n")
    done = subprocess.run([sys.executable, "-m", "hlo_lower", *argv], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out.mlir").exists()
