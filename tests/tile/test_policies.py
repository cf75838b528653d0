"""Scatters that overhang, gathers and slices out of bounds: tiled, they mean the same under either policy."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir import mlir
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.cut import AxisLink
from hlo_lower.testing import arguments_of, case_of_seed, module_text, reference
from hlo_lower.testing.fuzz.sensitivity import overhangs
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.verify.drive.single_elements import with_single_elements
from hlo_lower.verify.run import Executable

SCATTER = """\
func.func public @main(%t: tensor<8x4xf32>, %i: tensor<6x{k}xi32>, %x: {updates}) -> tensor<8x4xf32> {{
  %u = stablehlo.negate %x : {updates}
  %s = "stablehlo.scatter"(%t, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }}) : (tensor<8x4xf32>, tensor<6x{k}xi32>, {updates}) -> tensor<8x4xf32>
  %r = stablehlo.abs %s : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}}
"""
RUNS = "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
PLACED = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
)
MODULES = {
    "runs of rows": SCATTER.format(k=1, updates="tensor<6x3x4xf32>", numbers=RUNS),
    "parts of rows": SCATTER.format(k=2, updates="tensor<6x3xf32>", numbers=PLACED),
}
"""Three rows from a row on; three of the four positions of a row from a position on."""


def tiled(text, line, dim, size, rules=None):
    """A module with the op of a line tiled along a dim."""
    graph = hl.read(text)
    prepare(graph)
    program = Dataflow(graph, rules or default_subset_rules())
    choice = choice_by_hand(program, hl.ByHand(f"<module>:{line}", dim, size))
    emit(program, choice.plan, choice.sizes)
    return to_text(graph)


@pytest.mark.parametrize("oob", [pytest.param("xla", marks=pytest.mark.sweep), "spec"])
@pytest.mark.parametrize(
    ("what", "line", "dim"),
    [("runs of rows", 2, 0), ("runs of rows", 2, 2), ("parts of rows", 7, 0)],
    ids=["updates in order", "columns", "rows that are indexed"],
)
def test_windows_that_overhang(what, line, dim, oob):
    """Cut along positions, a covered dim or an indexed one, a scatter drops what it dropped, under both policies."""
    after = tiled(MODULES[what], line, dim, 2)
    assert "stablehlo.while" in after
    verdict = hl.verify(MODULES[what], after, oob=oob)
    assert verdict.ok, verdict.lines()
    assert verdict.module.status == "equal"


@pytest.mark.parametrize("oob", [pytest.param("xla", marks=pytest.mark.sweep), "spec"])
def test_a_cut_of_what_overhangs_is_seen(oob):
    """A dim along which windows are placed is no axis: cut there, the judge sees it under both policies."""
    rules = default_subset_rules().copy()
    right = rules.by_axes["stablehlo.scatter"]
    rules.by_axes["stablehlo.scatter"] = lambda node: [*right(node), AxisLink((0, None, None), (0,))]
    text = MODULES["runs of rows"].replace("tensor<6x3x4xf32>", "tensor<6x1x4xf32>")
    after = tiled(text, 7, 0, 2, rules)
    assert not hl.verify(text, after, level="regions", oob=oob).ok


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 400), marks=pytest.mark.sweep)], ids=["few", "many"])
def test_single_elements_are_the_specification(seeds):
    """Scatters written out as single elements, run by XLA, give what the specification says where windows overhang."""
    count = 0
    for case in map(case_of_seed, seeds):
        given = arguments_of(case, 0)
        if case.region.captured or not overhangs(case, given):
            continue  # XLA takes no region that reads what stands around it
        text = with_single_elements(mlir.parse_module(module_text([case])))
        results = Executable(text, "quick").run(given.all)
        for result, expected in zip(results, reference(case, given, "spec"), strict=True):
            np.testing.assert_array_equal(result, expected)
        count += 1
    assert count


def test_slices_out_of_bounds_are_clamped():
    """A gather and a dynamic slice whose starts are out of bounds read the same when they are tiled."""
    text = """\
func.func public @main(%t: tensor<8x4xf32>, %i: tensor<6x1xi32>, %p: tensor<i32>)
    -> (tensor<6x4xf32>, tensor<8x2xf32>) {
  %n = stablehlo.negate %t : tensor<8x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %g = "stablehlo.gather"(%n, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  %s = stablehlo.dynamic_slice %n, %zero, %p, sizes = [8, 2]
    : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
  return %g, %s : tensor<6x4xf32>, tensor<8x2xf32>
}
"""
    for line, oob in ((5, "xla"), (8, "spec")):
        after = tiled(text, line, 0, 2)
        assert "stablehlo.while" in after
        assert hl.verify(text, after, oob=oob, level="regions").ok
