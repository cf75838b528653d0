"""Loops along a second dim, and how large tiles are: one step that is too large, accumulators that are, caches."""

import re
import sys
from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.entry import tile
from hlo_lower.tile.find.choose import CACHED, READ, choices, read_whole, step_bytes
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.verify import Assumed, verify

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_workloads import WORKLOADS

HEADS = WORKLOADS["attention"].text((4, 64, 8))


def prepared(text):
    """A module, prepared, and its entry point."""
    graph = hl.read(text)
    prepare(graph)
    return graph, Dataflow(graph, default_subset_rules())


@pytest.mark.parametrize(
    ("bound", "subsets"),
    [("96KiB", ["[i, :, :] of 4x64x64"]), ("16KiB", ["[i, :, :] of 4x64x64", "[:, i:+16, :] of 1x64x64"])],
)
def test_a_step_that_is_too_large_is_cut_again(bound, subsets, estimated):
    """A head whose scores fit is a tile; else its rows are cut within it at once, which is one plan and not two."""
    found = tile(HEADS, max_temp=bound)
    assert found.reached
    assert [loop.subset for loop in found.loops] == subsets
    assert verify(HEADS, found.text, Assumed(reassociated=True), level="regions").ok


def test_a_mask_is_made_in_the_loop(estimated):
    """What costs nothing and is read whole is made in the body, where rows of it are all that a loop in there needs;
    none is made around the loops."""
    text = tile(HEADS, max_temp="16KiB").text
    assert not re.search(r"while.*xi1>", text)
    assert set(re.findall(r"(\d+)x64xi1>", text)) == {"16"}


TOKENS = """\
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x256xf32>) -> tensor<8x256xf32> {
  %l = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<64x8xf32>, tensor<8x256xf32>) -> tensor<64x256xf32>
  %e = stablehlo.exponential %l : tensor<64x256xf32>
  %d = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] :
    (tensor<64x8xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  return %d : tensor<8x256xf32>
}"""


@pytest.mark.parametrize("most", [4096, 512], ids=["rows of it", "less than a row"])
def test_an_accumulator_is_cut_where_little_is_copied(most):
    """Pieces of a large accumulator take columns of x, which is small, as a part of their operand, and the tile of
    exponentials whole; unless a row of it is too large for a piece."""
    graph, program = prepared(TOKENS)
    choice = next(c for c in choices(program, 1 << 14) if c.plan.loops[0].accumulators)
    emit(program, choice.plan, Sizes(16, most))
    text = to_text(graph)
    parts = set(re.findall(r"slice %\S+ \[.*: \(tensor<(16x\w+)xf32>\)|slice.*: \(tensor<(16x\d+)xf32>", text))
    assert {one or other for one, other in parts} == {"16x8" if most == 4096 else "16x256"}
    assert verify(TOKENS, text, Assumed(reassociated=True), level="regions").ok


def test_tiles_are_as_large_as_is_fast():
    """With all the memory in the world a tile of gathered weights stays in a cache; one of attention is larger, for
    each reads all keys and values."""
    for name in ("experts", "attention"):
        _, program = prepared(WORKLOADS[name].text(WORKLOADS[name].full))
        plan = next(c for c in choices(program, 1 << 40) if c.plan.labels.steps > 4)
        [loop] = plan.plan.loops
        taken = plan.sizes.steps * step_bytes(program, plan.plan, loop)
        whole = read_whole(program, plan.plan, loop)
        assert (whole > 0) is (name == "attention")
        assert max(CACHED, READ * whole) // 2 <= taken <= max(CACHED, READ * whole)
