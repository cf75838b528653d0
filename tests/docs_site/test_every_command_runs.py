"""Every command of hlo-lower in a code block of the documents runs and ends as it should; tutorials run elsewhere.

Each runs in a folder with the files that the documents speak of: an exported decode step and what it is lowered to, one
with open sizes, a training step, a folder of two modules, inputs, a target.
"""

import re
import shlex
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
from page_steps import ROOT

import hlo_lower as hl
from hlo_lower.cli import main

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
INSTALLED = "the example has to be installed; its own test runs it"
LEFT_OUT = {
    "prove": "the whole family takes hours; single rules are here",
    "conformance --on xla --only 'rows/add/*'": INSTALLED,
    "verify --on xla decode.mlir lowered.mlir": INSTALLED,
    "tile prefill.mlir -o tiled.mlir --op llama.py:88 --sizes 0=128 --fuse producers": "the op is the reader's",
    "tile sums.mlir -o tiled.mlir --op sums.mlir:4 --sizes 0=4 --sizes 1=4": "tests/tile/test_tiling.py",
    "tile tiled.mlir -o fused.mlir --op tiled.mlir:3 --into tiled.mlir:7": "tests/tile/test_loop_form.py",
    "convert tiled.mlir -o loops.mlir --target linalg --linalg-loops forall": "tests/linalg/test_into_structured.py",
    "tile loops.mlir -o fused.mlir --op loops.mlir:8 --into loops.mlir:10 --against sums.mlir --print-loops": (
        "tests/linalg/test_into_structured.py"
    ),
}
CODES = {
    "report zoo/ --target coreml --demote-i64 --fail-on refused": {0, 3},
    "convert poly.mlir -o lowered.mlir": {0, 4},
    "diff decode.mlir lowered.mlir": {1},
    "conformance --on iree --only 'rows/*' --jobs 2": {0, 3},  # IREE rejects two modules of f64
}
"""Exit codes besides 0 that are right, since they tell of the module and not of the command."""


def commands():
    """Each command once, in the order of the pages."""
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", "\n".join(p.read_text() for p in PAGES), re.DOTALL | re.M))
    words = [shlex.split(line.partition(" | ")[0], comments=True) for line in blocks.splitlines()]
    return {shlex.join(line[1:]): line[1:] for line in words if line[:1] == ["hlo-lower"]}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of which each command gets a copy."""
    folder = tmp_path_factory.mktemp("documents")
    shapes = ["--shapes", "...", "b, _, t, _", "b, s", "..."]
    for function, name, more in (
        ("llama.py:decode", "decode", []),
        ("llama.py:prefill", "other", []),
        ("llama.py:prefill", "poly", shapes),
        ("train_step.py:sgd", "train", []),
    ):
        assert main(["export", f"{ROOT}/models/{function}", "-o", f"{folder}/{name}.mlir", *more]) == 0
    (folder / "zoo").mkdir()
    decode = folder / "decode.mlir"
    for copy in ("zoo/decode.mlir", "in.mlir"):
        shutil.copy(decode, folder / copy)
    shutil.copy(folder / "other.mlir", folder / "zoo")
    (folder / "lowered.mlir").write_text(hl.lower(decode).text)
    (folder / "raised.mlir").write_text(hl.raise_named(decode).text)
    (folder / "named.mlir").write_text(hl.raise_named(decode, target="litert").text)
    kinds = {"f32": np.float32, "i32": np.int32, "bf16": np.float32}
    graph = hl.read(decode)  # which its arguments do not keep
    inputs = [np.zeros(value.shape, kinds[value.element_type]) for value in graph.main.body.arguments]
    np.savez(folder / "inputs.npz", *inputs)
    (folder / "my_npu.toml").write_text('[refused]\n"stablehlo.scatter" = "no kernel"\n')
    return folder


@pytest.mark.sweep
@pytest.mark.parametrize("command", sorted(commands()))
def test_a_command_runs(command, files, tmp_path, monkeypatch):
    """It ends with 0, or with what tells of its module."""
    words = commands()[command]
    if command in LEFT_OUT or "point_select" in words:
        pytest.skip(LEFT_OUT.get(command, INSTALLED))
    if {"iree", "--on"} <= set(words) and find_spec("iree") is None:
        pytest.skip("needs the extra iree")
    shutil.copytree(files, tmp_path / "here")
    for name in ("models", "examples"):
        (tmp_path / "here" / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path / "here")
    assert main(words) in CODES.get(command, {0})


def test_what_is_left_out_is_there():
    """A command that was renamed is not left out by its old name, nor are its exit codes."""
    assert {*LEFT_OUT, *CODES} - set(commands()) == set()
