"""Slices and gathers go up through what makes a large value: what comes out, what stays, and wrong ways to do it."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_picks import WRONG, mismatch

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.prepare.slice_hoisting import pull_up

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_workloads import WORKLOADS

TABLE = """\
func.func public @main(%table: tensor<64x16xi8>, %scales: tensor<64xf32>, %ids: tensor<4x1xi32>) -> tensor<4x16xf32> {
  %a = stablehlo.convert %table : (tensor<64x16xi8>) -> tensor<64x16xf32>
  %b = stablehlo.broadcast_in_dim %scales, dims = [0] : (tensor<64xf32>) -> tensor<64x16xf32>
  %c = stablehlo.multiply %a, %b : tensor<64x16xf32>
  %rows = "stablehlo.gather"(%c, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
    : (tensor<64x16xf32>, tensor<4x1xi32>) -> tensor<4x16xf32>
  return %rows : tensor<4x16xf32>
}
"""

LOGITS = """\
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x96xf32>, %i: tensor<i8>) -> tensor<1x96xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x96xf32>) -> tensor<64x96xf32>
  %likely = stablehlo.exponential %logits : tensor<64x96xf32>
  %row = stablehlo.dynamic_slice %likely, %i, %zero, sizes = [1, 96]
    : (tensor<64x96xf32>, tensor<i8>, tensor<i8>) -> tensor<1x96xf32>
  return %row : tensor<1x96xf32>
}
"""

FROM_TABLE = """\
%0 = "stablehlo.gather"(%arg0, %arg2)
%1 = stablehlo.convert %0 : (tensor<4x16xi8>) -> tensor<4x16xf32>
%2 = "stablehlo.gather"(%arg1, %arg2)
%3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
%4 = stablehlo.multiply %1, %3 : tensor<4x16xf32>
return %4 : tensor<4x16xf32>"""

ONE_ROW = """\
%0 = stablehlo.clamp %c_0, %arg2, %c_1 : tensor<i8>
%1 = stablehlo.clamp %c_2, %0, %c_3 : tensor<i8>
%2 = stablehlo.dynamic_slice %arg0, %1, %c_2, sizes = [1, 8]
%3 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [0]
%4 = stablehlo.exponential %3 : tensor<1x96xf32>
return %4 : tensor<1x96xf32>"""


@pytest.mark.parametrize(
    ("text", "golden", "ops", "mode"),
    [(TABLE, FROM_TABLE, 3, "exact"), (LOGITS, ONE_ROW, 2, "reassociate")],
    ids=["table", "logits"],
)
def test_before_and_after(text, golden, ops, mode):
    """Rows of a table are gathered of its int8 and its scales; one row of logits is a product of one row; equal."""
    graph = hl.read(text)
    [told] = pull_up(graph, least=1)
    after = to_text(graph)
    lines = [line.strip() for line in after.splitlines()]
    found = [line for line in lines if line.startswith(("%0 ", "%1 ", "%2 ", "%3 ", "%4 ", "return"))]
    for expected, line in zip(golden.splitlines(), found, strict=True):
        assert line.startswith(expected)
    assert (told.ops, told.is_exact) == (ops, mode == "exact")
    assert hl.verify(text, after, level="regions", float_mode=mode).ok


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tensor<4x1", "tensor<96x1"),
        ("tensor<64x16xf32>, tensor<4x1xi32>) -> tensor<4x16xf32>", None),
    ],
    ids=["more rows than there are", "small"],
)
def test_what_is_not_pulled(old, new):
    """More rows than the table has, or a value that is not large: the module is left as it is."""
    text = TABLE if new is None else TABLE.replace(old, new).replace("<4x16", "<96x16")
    graph = hl.read(text)
    before = to_text(graph)
    assert pull_up(graph, least=1 if new else 1 << 20) == ()
    assert to_text(graph) == before


def test_a_product_that_is_used_otherwise_stays():
    """A row of logits of which all are returned, too, is not computed again."""
    text = LOGITS.replace("-> tensor<1x96xf32> {", "-> (tensor<1x96xf32>, tensor<64x96xf32>) {")
    text = text.replace("return %row : tensor<1x96xf32>", "return %row, %logits : tensor<1x96xf32>, tensor<64x96xf32>")
    graph = hl.read(text)
    [told] = pull_up(graph, least=1)
    assert (told.ops, told.is_exact) == (1, True)


@pytest.mark.usefixtures("estimated")
def test_one_row_needs_no_loop():
    """A search that reaches its bound by pulling alone makes no loop, and tells of what it pulled."""
    tiled = hl.tile(LOGITS, max_temp="4KiB", name="row.mlir")
    assert (tiled.reached, tiled.loops, tiled.float_mode) == (True, (), "reassociate")
    assert tiled.lines()[1] == "  pulled up row.mlir:6: stablehlo.dynamic_slice of 1x96xf32 of 64x96xf32, through 2 ops"
    assert tiled.to_json()["pulled"][0]["ops"] == 2


@pytest.mark.sweep
def test_the_table_is_pulled_and_cut_by_rows():
    """Of the step on an int8 table the gathers are pulled up, and loops over its rows do the rest."""
    workload = WORKLOADS["int8_table"]
    tiled = hl.tile(workload.text((512, 16, 8)), max_temp="16KiB")
    assert tiled.reached
    assert [pull.op for pull in tiled.pulled] == ["stablehlo.gather"]
    assert tiled.loops
    assert all(loop.subset.startswith("[i:+") for loop in tiled.loops)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30))
def test_random_pulls_change_nothing(seed):
    """Slices and gathers, out of bounds too, of random chains of ops: pulled up they pick the same, bit for bit."""
    assert mismatch(seed)[1] is False


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_many_random_pulls_change_nothing(block):
    """The same for a hundred programs, in most of which there is something to pull."""
    found = [mismatch(seed) for seed in range(100 * block, 100 * (block + 1))]
    assert sum(count > 0 for count, _ in found) > 60
    assert not any(is_wrong for _, is_wrong in found)


SEEN = {"wrapped": 4, "contracted": 29, "first_columns": 0, "unmoved": 0}
"""A program in which each wrong way to pull gives other results."""


@pytest.mark.parametrize(
    "wrong",
    [w if w is WRONG[0] else pytest.param(w, marks=pytest.mark.sweep) for w in WRONG],
    ids=lambda wrong: wrong.__name__,
)
def test_a_wrong_pull_is_seen(wrong, monkeypatch):
    """Each wrong way to pull a pick up gives other results in a program that is right without it."""
    seed = SEEN[wrong.__name__]
    assert mismatch(seed)[1] is False
    wrong(monkeypatch)
    assert mismatch(seed)[1] is True
