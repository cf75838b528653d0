"""hl.tile and its parts: workloads, what is found large, tiles by hand, bounds, and what is not tiled."""

import sys
from pathlib import Path

import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.loops.tiled_loop import rounded
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.cut import Boundary
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.byte_sizes import parsed_bytes
from hlo_lower.tile.emit.emit_loops import emit
from hlo_lower.tile.entry import tile
from hlo_lower.tile.find.choose import SMALLEST, choices
from hlo_lower.tile.plan_search import Search, SearchLimits
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.tile.tiled_module import records

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_exports import EXPORTS
from benchmark.memory_workloads import WORKLOADS

ROWS = """\
func.func public @main(%x: tensor<24x8xf32>, %w: tensor<8x96xf32>) -> (tensor<24xf32>, tensor<8x96xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x8xf32>, tensor<8x96xf32>) -> tensor<24x96xf32>
  %likely = stablehlo.exponential %logits : tensor<24x96xf32>
  %sums = stablehlo.reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  %dw = stablehlo.dot_general %x, %likely, contracting_dims = [0] x [0]
    : (tensor<24x8xf32>, tensor<24x96xf32>) -> tensor<8x96xf32>
  return %sums, %dw : tensor<24xf32>, tensor<8x96xf32>
}
"""


def prepared(text):
    """A module, prepared, and its entry point."""
    graph = hl.read(text)
    prepare(graph)
    return graph, Dataflow(graph, default_subset_rules())


def largest(text):
    """Bytes that are live at the peak of a module, by the estimate."""
    return max(liveness(prepared(text)[1]).live)


def first_choice(text, budget):
    """The module with the loops of the most promising plan, and what is told of them."""
    graph, program = prepared(text)
    choice = choices(program, budget)[0]
    told = records(choice.program, choice.plan, choice.sizes)
    emit(choice.program, choice.plan, choice.sizes)
    return to_text(graph), told


LONG = ("cross_entropy", "attention_gradient", "experts", "prefill", "cached_attention", "pair_block", "unet_block")
"""Workloads that are verified long."""

SMALL = [
    name
    for name in WORKLOADS
    if name not in ("cross_entropy_128k", "attention_16k", "experts_4k", "prefill", "pair_block")
]
"""Workloads that one plan is enough for and of which no other one is the same at these sizes."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sweep] * (n in LONG)) for n in SMALL])
def test_workloads_become_loops(name):
    """The plan that comes first leaves less than half live at the peak, and the judge finds both versions equal."""
    workload = WORKLOADS[name]
    text = workload.text(workload.small)
    after, told = first_choice(text, largest(text) // 4)
    assert told
    assert 2 * largest(after) < largest(text)
    assert hl.verify(text, after, level="regions", float_mode="reassociate").ok


def test_one_loop_for_loss_and_gradients():
    """The loss, its gradient to x and to w come from one loop over tokens, without anything computed twice."""
    workload = WORKLOADS["cross_entropy"]
    _, [loop] = first_choice(workload.text(workload.small), 1 << 12)
    assert loop.subset.startswith("[i:+")
    assert "4x32xf32 by add" in loop.accumulators
    assert loop.again == ()


def test_the_bound_is_reached():
    """A search comes down to the bound by XLA's own figure; the loops and both figures are told; locations are kept."""
    tiled = hl.tile(ROWS, max_temp="4KiB", name="rows.mlir", verify="regions")
    assert tiled.before > 4096 >= tiled.after
    assert tiled.reached
    assert tiled.loops[0].where.startswith("rows.mlir:")
    assert "stablehlo.while" in tiled.text
    assert tiled.to_json()["loops"][0]["subset"].endswith("of 24x96")


def test_a_loop_within_a_loop_gets_smaller_tiles_before_another_plan():
    """A head for itself and its rows in tiles that fit: those of the first try need more than the bound."""
    tiled = hl.tile(WORKLOADS["attention"].text((4, 512, 16)), max_temp="256KiB")
    assert [loop.depth for loop in tiled.loops] == [0, 1]
    assert (tiled.after or 0) <= 256 << 10


@pytest.mark.usefixtures("estimated")
def test_what_fits_is_left_as_it_is():
    """Where the temporaries are within the bound nothing is touched."""
    tiled = hl.tile(ROWS, max_temp="1GiB")
    assert (tiled.loops, tiled.text) == ((), to_text(hl.read(ROWS)))


@pytest.mark.usefixtures("estimated")
def test_a_search_ends():
    """After so many seconds it ends with what it has, and says so; one byte is never reached."""
    tiled = tile(ROWS, max_temp=1, effort=SearchLimits(seconds=0))
    assert (tiled.ended, tiled.reached) == ("it took 0 s", False)
    assert tiled.lines()[-1] == "  search ended early: it took 0 s"


def test_plans_are_counted():
    """A search is over after so many plans, and not before."""
    found = Search("m", b"", SearchLimits(plans=2))
    found.plans = 1
    assert not found.is_over()
    found.plans = 2
    assert (found.is_over(), found.ended) == (True, "it tried 2 plans")


def test_a_small_bound_does_not_make_all_large():
    """What is large is so beside the seed, however small the bound: with one byte the core is that of 512 bytes."""
    program = prepared(ROWS.replace("96", "9600"))[1]
    assert {choice.plan.labels.core.least for choice in choices(program, 1)} == {24 * 9600 * 4 // SMALLEST}


GOLDEN = """\
%3 = stablehlo.multiply %iterArg, %c_5 : tensor<i32>
%4 = stablehlo.dynamic_slice %iterArg_4, %c_6, %3, sizes = [8, 32]
%5 = stablehlo.dot_general %iterArg_3, %4, contracting_dims = [1] x [0]
%6 = stablehlo.exponential %5 : tensor<24x32xf32>
%7 = stablehlo.reduce(%6 init: %cst_7) applies stablehlo.add across dimensions = [1]
%8 = stablehlo.add %iterArg_2, %7 : tensor<24xf32>
%9 = stablehlo.dot_general %iterArg_3, %6, contracting_dims = [0] x [0]
%10 = stablehlo.dynamic_update_slice %iterArg_1, %9, %c_6, %3"""


def by_hand(dim, size, fuse="all", **how):
    """The module with one op tiled by hand."""
    graph, program = prepared(ROWS)
    choice = choice_by_hand(program, hl.ByHand("<module>:3", dim, size, fuse, **how))
    emit(program, choice.plan, choice.sizes)
    return to_text(graph)


def test_a_program_before_and_after():
    """Columns of the logits: a slice of w, a tile of the logits, a sum that is accumulated, a tile of dw."""
    lines = [line.strip() for line in by_hand(1, 32).splitlines()]
    start = next(k for k, line in enumerate(lines) if line.startswith("%3 = stablehlo.multiply"))
    found = [line for line in lines[start:] if not line.startswith("%c")]
    for expected, line in zip(GOLDEN.splitlines(), found, strict=False):
        assert line.startswith(expected)


@pytest.mark.parametrize(
    ("dim", "size", "fuse", "how"),
    [(0, 5, "all", {}), (1, 40, "all", {}), (0, 7, "producers", {}), (1, 13, "none", {"is_unrolled": True})],
    ids=str,
)
def test_by_hand(dim, size, fuse, how):
    """Along rows and columns, sizes that do not divide, with and without what is around it: equal each time."""
    after = by_hand(dim, size, fuse, **how)
    assert ("stablehlo.while" in after) is not how.get("is_unrolled", False)
    assert hl.verify(ROWS, after, level="regions", float_mode="reassociate").ok


@pytest.mark.parametrize(
    ("hand", "what"),
    [
        (hl.ByHand("other.py:1", 0, 4), "no op of the entry point is there"),
        (hl.ByHand("<module>:3", 2, 4), "not cut along dim 2"),
        (hl.ByHand("<module>:3", 0, 99), "tiles of 99 do not fit dim 0 of 24"),
    ],
    ids=["place", "dim", "size"],
)
def test_what_is_asked_for_by_hand_must_fit(hand, what):
    """Another place, dim or size is an InputError that says which there are."""
    with pytest.raises(hl.InputError, match=what) as caught:
        choice_by_hand(prepared(ROWS)[1], hand)
    assert "next:" in str(caught.value)


def test_amounts_of_memory():
    """MiB are 2 to the 20th, MB a million; what is no amount is refused with the units."""
    assert [parsed_bytes("max_temp", v) for v in (1, "1.5 MiB", "1MB")] == [1, 3 << 19, 10**6]
    for wrong in ("", "MiB", "-3", "0", 0, True, "3XB"):
        with pytest.raises(hl.InputError, match="is not an amount of memory"):
            parsed_bytes("max_temp", wrong)


@pytest.mark.parametrize(
    ("keywords", "what"),
    [
        ({}, "either a bound or an op"),
        ({"max_temp": "1MiB", "by_hand": hl.ByHand("a:1", 0, 1)}, "either a bound or an op"),
        ({"max_temp": "much"}, "is not an amount of memory"),
        ({"max_temp": "1MiB", "verify": "some"}, "is not one of its values"),
    ],
    ids=str,
)
def test_wrong_arguments(keywords, what):
    """They are found before anything is compiled."""
    with pytest.raises(hl.InputError, match=what):
        hl.tile(ROWS, **keywords)


def test_symbolic_sizes_are_bound_first():
    """Tiles have sizes: a module without them is refused, with the way out."""
    text = "func.func public @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> { return %x : tensor<?x4xf32> }"
    with pytest.raises(hl.InputError, match="symbolic sizes"):
        hl.tile(text, max_temp="1MiB")


def test_sizes_of_tiles_divide_where_they_can():
    """A size near the wanted one that divides the steps, unless that is less than half of it."""
    assert [rounded(*pair) for pair in ((150, 2048), (120, 1000), (1, 7), (100, 1021))] == [128, 100, 1, 64]


def test_boundaries_are_named():
    """An op without a rule is computed as it stands, and says why."""
    text = """func.func public @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = stablehlo.custom_call @f(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = stablehlo.exponential %a : tensor<64x64xf32>
  return %b : tensor<64x64xf32>
}"""
    program = prepared(text)[1]
    found = {node.name: axes.reason for node in program.nodes if isinstance(axes := program.axes(node), Boundary)}
    assert found == {"stablehlo.custom_call": "stablehlo.custom_call has no subset rule"}


def test_edges_before_heads():
    """A loop whose least step is itself large comes behind one of small steps that computes more again: over the edges
    of a graph, and not over the four heads."""
    graph = hl.read(EXPORTS["graph attention"].text())
    prepare(graph)
    first, *others = choices(Dataflow(graph, default_subset_rules()), 64 << 20)
    assert first.plan.labels.steps == 196608
    assert any(choice.plan.labels.steps == 4 for choice in others)


def test_the_same_module_is_tiled_to_the_same_text():
    """What a loop leaves behind stands in the order in which the module computes it, not in that of a set."""
    text = WORKLOADS["prefill"].text(WORKLOADS["prefill"].small)
    bound = (tile(text, max_temp=1 << 60).before or 4) // 4
    assert len({tile(text, max_temp=bound).text for _ in range(2)}) == 1
