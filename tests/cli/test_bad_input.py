"""Every bad input ends in a clear message and exit code 2, without an output file and without a traceback."""

import os
import subprocess
import sys

import pytest

HEAD = "module {\n  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
TAIL = "    return %y : tensor<4xf32>\n  }\n}\n"
TORCH = '    %y = "torch.aten.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n'
RESHAPE = "    %y = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>\n"
BAD_TEXT = {  # the text, the place and the word that the message holds
    "not_mlir": ("this is a recipe for bread\n", "1:1", "unknown"),
    "unknown_dialect": (HEAD + TORCH + TAIL, "3:", "unknown dialect"),
    "unknown_op": (HEAD + "    %y = stablehlo.sinus %x : tensor<4xf32>\n" + TAIL, "3:", "sinus"),
    "private_only": ((HEAD + TAIL).replace("public @main", "private @f").replace("%y", "%x"), "", "public function"),
    "verifier": (HEAD + RESHAPE + TAIL.replace("%y", "%x"), "3:", "number of"),
    "empty": ("", "", "empty"),
    "blank": (" \n\n", "", "empty"),
    "cut_off": (HEAD, ":", "expected"),
}


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text_is_refused(name, folder, refused):
    """By each command: convert names the file, the place, what is wrong and a next step; verify checks both sides."""
    text, place, word = BAD_TEXT[name]
    (folder / "bad.mlir").write_text(text)
    told = refused("convert bad.mlir -o out.mlir --report r.json", "bad.mlir:", word, "  next:    ")
    assert place in told.splitlines()[0]
    refused("report bad.mlir", "", word)
    refused("verify bad.mlir decode.mlir", "", word, "bad.mlir")
    refused("verify decode.mlir bad.mlir", "", word, "bad.mlir")


@pytest.mark.parametrize("keep", [4, 20, 100, -40, -1])
@pytest.mark.parametrize("emit", ["bytecode", "portable"])
def test_truncated_bytecode_is_refused(folder, command, refused, emit, keep):
    """A cut-off module is an error that names the file, wherever the cut is."""
    assert command(f"convert decode.mlir -o whole.bin --emit {emit} --no-verify").code == 0
    (folder / "cut.mlirbc").write_bytes((folder / "whole.bin").read_bytes()[:keep])
    refused("convert cut.mlirbc -o out.mlir", "cut.mlirbc")


MODEL = """\
import jax

def step(x):
    return x + 1

EXPORTS = {"step": {"args": (jax.ShapeDtypeStruct((3,), "float32"),)}}
"""
NO_FOLDER = "no/such/out.mlir: the folder no/such does not exist\n  next:    make it: mkdir -p no/such\n"


@pytest.mark.parametrize(
    ("line", "start", "words"),
    [
        ("report rubbish.bin", "rubbish.bin: is neither MLIR text, MLIR bytecode", ["00 01 02 03"]),
        *(
            (line, f"{name}: no such file\n", [])
            for name in ("missing.mlir", "missing/deep.mlir")
            for line in (f"report {name}", f"convert {name} -o out.mlir", f"verify {name} decode.mlir")
        ),
        *((line, "models: is a directory", ["name a file"]) for line in ("report models", "convert models -o o.mlir")),
        *(
            (f"{line} --target toaster", "", ["toaster", "stablehlo"])
            for line in (
                "report decode.mlir",
                "convert decode.mlir -o o.mlir",
                "verify decode.mlir decode.mlir",
                "rules",
            )
        ),
        # a model or function that does not exist is told with the nearest that does
        ("export llama.py:steps -o out.mlir", "", ["step"]),
        ("export lama.py:step -o out.mlir", "", ["llama.py"]),
        ("export no.such.package:step -o out.mlir", "", ["no"]),
        ("export llama.py -o out.mlir", "", ["not the name of a function"]),
        # outputs, which are looked at before the input is read
        ("convert decode.mlir -o models", "models: is a directory", []),
        ("convert decode.mlir -o plain.mlir/out.mlir", "plain.mlir/out.mlir: plain.mlir is not a folder", []),
        ("convert missing.mlir -o no/out.mlir", "", ["the folder no does not exist"]),
        ("convert missing.mlir -o out.mlir --report no/r.json", "", ["the folder no does not exist"]),
        ("report missing.mlir -o no/r.json --format json", "", ["the folder no does not exist"]),
        ("export missing.py:step -o no/out.mlir", "", ["the folder no does not exist"]),
        ("convert decode.mlir -o out.mlir --report ./out.mlir", "", []),
        # standard input is read once
        ("verify - -", "", []),
        ("report - -", "", []),
        ("convert decode.mlir -o - --report -", "", []),
        ("report a.mlir b.mlir -o r.txt", "", ["a.mlir: no such file", "b.mlir: no such file"]),
        # what is not there: modules, rules, ops and scatters
        ("pipeline none.mlir", "", ["  next:    "]),
        ("rules maks", "", ["nearest: mask"]),
        ("ops tahn", "", ["tanh", "hlo-lower ops"]),
        ("report decode.mlir --explain 2", "", ["there is no scatter 2 to explain", "the only scatter is number 1"]),
        ("convert decode.mlir -o out.mlir --only nowhere.py:*", "", ["nowhere.py:*"]),
    ],
)
def test_what_is_refused(folder, refused, line, start, words):
    """Files, targets, functions, outputs and scatters that are not there or no such thing are told by name."""
    (folder / "rubbish.bin").write_bytes(bytes(range(256)))
    (folder / "models").mkdir()
    (folder / "llama.py").write_text(MODEL)
    refused(line, start, *words)


def test_output_folder_that_does_not_exist(refused):
    """The folder is named, with the command that makes it."""
    assert refused("convert decode.mlir -o no/such/out.mlir") == NO_FOLDER


@pytest.mark.parametrize("denied", [".", "out.mlir"])
def test_output_without_permission(folder, refused, monkeypatch, denied):
    """A folder without permission and a write-protected file are told before any work (root may write anywhere)."""
    (folder / "out.mlir").write_text("kept")
    real, access = os.path.realpath(denied), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != real and access(path, mode))
    assert "no such file" not in refused("convert missing.mlir -o out.mlir", "out.mlir: ")
    assert (folder / "out.mlir").read_text() == "kept"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "explode",
        "convert decode.mlir",
        "convert decode.mlir -o out.mlir --oob clamp",
        "convert decode.mlir -o out.mlir --verify sometimes",
        "report",
        "report decode.mlir --format pdf",
        "report decode.mlir --explain x",
        "report decode.mlir --fail-on scatter",
        "report decode.mlir --form json",
        "verify decode.mlir",
        "verify decode.mlir decode.mlir --runs -1",
        "export llama.py:step -o x.mlir --set layers",
    ],
)
def test_bad_usage(refused, line):
    """A command line that makes no sense gives a usage line and exit code 2."""
    refused(line, "", "usage: hlo-lower")


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04rubbish", b"rubbish"])
def test_inputs_that_are_no_arrays(folder, refused, content):
    """A file of inputs that is missing or no .npz is named."""
    if content is not None:
        (folder / "x.npz").write_bytes(content)
    refused("verify decode.mlir decode.mlir --inputs x.npz", "x.npz: ")


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
