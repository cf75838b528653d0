"""Cleaning up: what a lowering left dead goes, what was dead before stays."""

import re
from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.cleanup import erase_uncalled

_, *MODULES = Path(__file__).with_name("cleanup.mlir").read_text().split("// -----\n// ")
BY_NAME = {module.partition("\n")[0]: f"// {module}" for module in MODULES}
UPDATE = next(name for name in BY_NAME if name.endswith("tanh"))


def check(module):
    """Check that of a lowered module words are gone, and that it keeps others."""
    text, before = hl.lower(module).text, module[module.index("func.func") :]
    gone, kept = (re.findall(f"^// {word}: (.*)$", module, re.M) for word in ("GONE", "KEEPS"))
    assert gone or kept
    assert [word for word in gone if word not in before or word in text] == []
    assert [word for word in kept if word not in text] == []


@pytest.mark.parametrize("what", BY_NAME)
def test_what_goes_and_what_stays(what):
    check(BY_NAME[what])


@pytest.mark.parametrize("op", ["exponential", "cosine", "cbrt"])
def test_any_pure_op_goes(op):
    check(BY_NAME[UPDATE].replace("tanh", op))


def test_candidates_that_are_used_are_left_alone():
    """A candidate with a user is not touched, nor is one with effects."""
    graph = read("""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.negate %x : tensor<4xf32>
  %b = stablehlo.abs %a : tensor<4xf32>
  return %b : tensor<4xf32>
}""")
    before = to_text(graph)
    erase_uncalled(graph, [])
    assert before == to_text(graph)
