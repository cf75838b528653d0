"""Every command of hlo-lower in a code block of the documents runs and ends as it should; tutorials run elsewhere.

Each runs in a folder with the files that the documents speak of: an exported decode step and what it is lowered to, one
with open sizes, a training step, a folder of two modules, inputs, a target.
"""

import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
LLAMA = "models/llama.py"

LEFT_OUT = {
    "prove": "the whole family takes hours; single rules are here",
    "conformance --on xla --only 'rows/add/*'": "the example has to be installed; its own test runs it",
    "verify --on xla decode.mlir lowered.mlir": "the example has to be installed; its own test runs it",
    "tile prefill.mlir -o tiled.mlir --op llama.py:88 --sizes 0=128 --fuse producers": "the op is the reader's",
}
CODES = {
    "report zoo/ --target coreml --demote-i64 --fail-on refused": {0, 3},
    "convert poly.mlir -o lowered.mlir": {0, 4},
}
"""Exit codes besides 0 that are right, since they tell of the module and not of the command."""


def commands():
    """Each command once, in the order of the pages."""
    found = {}
    for page in PAGES:
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.M):
            for line in block.splitlines():
                words = shlex.split(line.partition(" | ")[0], comments=True)
                if words[:1] == ["hlo-lower"]:
                    found.setdefault(shlex.join(words[1:]), words[1:])
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of which each command gets a copy."""
    folder = tmp_path_factory.mktemp("documents")
    for function, name in (("decode", "decode.mlir"), ("prefill", "other.mlir")):
        assert main(["export", str(ROOT / f"{LLAMA}:{function}"), "-o", str(folder / name)]) == 0
    shapes = ["--shapes", "...", "b, _, t, _", "b, s", "..."]
    assert main(["export", str(ROOT / f"{LLAMA}:prefill"), "-o", str(folder / "poly.mlir"), *shapes]) == 0
    assert main(["export", str(ROOT / "models/train_step.py:sgd"), "-o", str(folder / "train.mlir")]) == 0
    (folder / "zoo").mkdir()
    for name in ("decode.mlir", "other.mlir"):
        shutil.copy(folder / name, folder / "zoo" / name)
    shutil.copy(folder / "decode.mlir", folder / "in.mlir")
    (folder / "lowered.mlir").write_text(hl.lower(folder / "decode.mlir").text)
    (folder / "raised.mlir").write_text(hl.raise_named(folder / "decode.mlir").text)
    (folder / "named.mlir").write_text(hl.raise_named(folder / "decode.mlir", target="litert").text)
    graph = hl.read(folder / "decode.mlir")
    inputs = graph.main.body.arguments
    kinds = {"f32": np.float32, "i32": np.int32, "bf16": np.float32}
    np.savez(folder / "inputs.npz", *(np.zeros(value.shape, kinds[value.element_type]) for value in inputs))
    (folder / "my_npu.toml").write_text('[refused]\n"stablehlo.scatter" = "no kernel"\n')
    return folder


@pytest.mark.sweep
@pytest.mark.parametrize("command", sorted(commands()))
def test_a_command_runs(command, files, tmp_path, monkeypatch):
    """It ends with 0, or with what tells of its module."""
    words = commands()[command]
    if command in LEFT_OUT:
        pytest.skip(LEFT_OUT[command])
    if "iree" in words and "--on" in words and find_spec("iree") is None:
        pytest.skip("needs the extra iree")
    if "prove" in words and find_spec("z3") is None:
        pytest.skip("needs the extra prove")
    if "point_select" in words:
        pytest.skip("the example has to be installed; its own test runs it")
    shutil.copytree(files, tmp_path / "here")
    (tmp_path / "here" / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path / "here")
    assert main(words) in CODES.get(command, {0})


def test_what_is_left_out_is_there():
    """A command that was renamed is not left out by its old name, nor are its exit codes."""
    assert {*LEFT_OUT, *CODES} - set(commands()) == set()
