"""hl.tile and its parts: workloads, what is found large, tiles by hand, bounds, second dims, and what is not tiled."""

import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from small_tiles import LOGITS, are_verified, by_hand, live, module_of, prepared, with_loops
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.cli.tile import told_of_starts
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.loops import tile_size_near
from hlo_lower.ops.axes.cut import Boundary
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile import plan_search
from hlo_lower.tile.by_hand import choice_by_hand
from hlo_lower.tile.byte_sizes import parsed_bytes
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.entry import tile
from hlo_lower.tile.find.choose import CACHED, READ, SMALLEST, choices, read_whole, step_bytes
from hlo_lower.tile.plan_search import Beyond, Search, SearchLimits
from hlo_lower.tile.tiled_module import records
from hlo_lower.verify.pull import derive
from hlo_lower.verify.run import Executable

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_exports import EXPORTS
from benchmark.memory_workloads import WORKLOADS

LONG = (
    "cross_entropy",
    "attention_gradient",
    "experts",
    "prefill",
    "cached_attention",
    "int8_table",
    "pair_block",
    "unet_block",
    "through_scatter",
    "through_batched_scatter",
    "through_batched_gather",
    "through_scattered_points",
    "through_paired_scatter",
    "through_gather_points",
    "through_reshaped_points",
)
"""Workloads that are verified long."""

SMALL = set(WORKLOADS) - {
    *("cross_entropy_128k", "attention_16k", "experts_4k", "prefill", "pair_block", "train_step"),
    "through_partial_scatter",
}
"""Workloads that one plan is enough for and of which no other one is the same at these sizes."""


def first_choice(text, budget):
    """The module with the loops of the most promising plan, and what is told of them."""
    graph, program = prepared(text)
    choice = choices(program, budget)[0]
    told = records(choice.program, choice.plan, choice.sizes)
    return with_loops(graph, choice), told


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.sweep] * (n in LONG)) for n in sorted(SMALL)])
def test_workloads_become_loops(name):
    """The plan that comes first leaves less than half live at the peak, and both versions are equal."""
    text = WORKLOADS[name].text(WORKLOADS[name].small)
    after, told = first_choice(text, live(text) // 4)
    assert told
    assert 2 * live(after) < live(text)
    assert are_verified(text, after)


def test_one_loop_for_loss_and_gradients():
    """The loss, its gradient to x and to w come from one loop over tokens, without anything computed twice."""
    workload = WORKLOADS["cross_entropy"]
    _, [loop] = first_choice(workload.text(workload.small), 1 << 12)
    assert loop.subset.startswith("[i:+")
    assert "4x32xf32 by add" in loop.accumulators
    assert loop.again == ()


def test_the_bound_is_reached():
    """A search comes down to the bound by XLA's own figure; the loops and both figures are told; locations are kept."""
    tiled = hl.tile(LOGITS, max_temp="4KiB", name="rows.mlir", verify="regions")
    assert tiled.before > 4096 >= tiled.after
    assert tiled.reached
    assert tiled.loops[0].where.startswith("rows.mlir:")
    assert "stablehlo.while" in tiled.text
    assert tiled.to_json()["loops"][0]["subset"].endswith("of 24x96")


def test_a_loop_within_a_loop_gets_smaller_tiles_before_another_plan(estimated):
    """A head for itself and its rows in tiles that fit: those of the first try need more than the bound."""
    tiled = hl.tile(WORKLOADS["attention"].text((4, 512, 16)), max_temp="256KiB")
    assert [loop.depth for loop in tiled.loops] == [0, 1]
    assert (tiled.after or 0) <= 256 << 10


def test_a_search_begins_with_what_comes_near_the_bound(monkeypatch):
    """Of a step of two layers: the first plan is within the bound. No loop gives the weights of attention, which the
    next ones compute again or add up. Where none comes near it, those that leave less come first."""
    sizes = list[int]()

    def measured(texts, seconds=0.0):
        for number, text in enumerate(texts):
            sizes.append(Beyond.of(hl.read(text), 1, default_subset_rules()).most)
            yield number, sizes[-1]

    monkeypatch.setattr(plan_search, "measure_temporaries", measured)
    text = WORKLOADS["train_step"].text((2, 64, 8, 2, 32))
    tiled = tile(text, max_temp="60KiB")
    assert (tiled.reached, len(sizes)) == (True, 3), sizes  # as it was given, with its picks pulled up, a plan
    assert not any("2x64x64xf32" in loop.tiles for loop in tiled.loops), tiled.loops
    sizes.clear()
    assert not tile(text, max_temp="20KiB", effort=SearchLimits(plans=4)).reached
    assert len(sizes) == 6
    assert sizes[2:] == sorted(sizes[2:]), sizes


@pytest.mark.parametrize(("needed", "is_larger"), [(1 << 16, True), ((1 << 16) + 1, False)], ids=str)
def test_tiles_are_as_large_as_the_bound_allows(needed, is_larger, monkeypatch):
    """Where a plan needs half of the bound larger tiles are tried, which go through weights less often; they are taken
    where they are within it."""
    tiles, sizes = list[int](), [1 << 20, 1 << 20, 1 << 15, needed]

    def measured(texts, seconds=0.0):
        for number, text in enumerate(texts):
            tiles.append(max(map(int, re.findall(r"dot_general .*-> tensor<(\d+)x320xf32>", text))))
            yield number, sizes[len(tiles) - 1]

    monkeypatch.setattr(plan_search, "measure_temporaries", measured)
    tiled = tile(WORKLOADS["cross_entropy"].text((256, 64, 320)), max_temp=1 << 16)
    assert tiles[2] < tiles[3] < tiles[0] == 256
    assert tiled.loops[0].subset.startswith(f"[i:+{tiles[3 if is_larger else 2]}")


@pytest.mark.usefixtures("in_full_time")
@pytest.mark.sweep
@pytest.mark.parametrize("layers", [1, 2])
def test_a_tiled_training_step_is_derived(layers, estimated):
    """Its loops write rows, add up gradients, and compute attention's weights again: no run is needed."""
    text = WORKLOADS["train_step"].text((layers, 64, 8, 2, 32))
    after = tile(text, max_temp="60KiB").text
    assert after.count("stablehlo.while") == (2, 5)[layers - 1]
    verdict = hl.verify(text, after, level="regions", float_mode="reassociate")
    assert {region.how for region in verdict.regions} == {"derived"}, verdict.lines()


END, SIZE = (rf"{word} {{\s*%\w+ = stablehlo.constant dense<(\d+)>" for word in ("cond", "do"))
WRONG_LOOPS = {
    "a tile is missed": (END, -1),
    "one more": (END, 1),
    "tiles overlap": (SIZE, -1),
    "it begins with the second tile": (r"START = stablehlo.constant dense<(0)>", 1),
    "each second tile": (r"constant dense<(1)> : tensor<i32>\s*%\w+ = stablehlo.add %iterArg\w*,", 1),
}
"""A number in the text of a loop, and what is added to it."""


def wrong_loop(text, name):
    """A text whose last loop is wrong in a way."""
    start = re.findall(r"stablehlo.while\(%iterArg\w* = (%\w+)", text)[-1]
    pattern, more = WRONG_LOOPS[name]
    *_, found = re.finditer(pattern.replace("START", start), text)
    return f"{text[: found.start(1)]}{int(found[1]) + more}{text[found.end(1) :]}"


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG_LOOPS)
def test_a_wrong_training_step_is_not_derived(name, estimated):
    """The last loop adds up gradients."""
    text = WORKLOADS["train_step"].text((1, 64, 8, 2, 32))
    after = tile(text, max_temp="60KiB").text
    assert not derive(text, wrong_loop(after, name), seconds=8, reassociated=True)


def in_pieces(most):
    """The gradient of a table of logits, by rows, and what a tile adds to it, in pieces of so many bytes."""
    text = module(
        "%x: 48x24xf32, %w: 24x20xf32",
        """%l = dot_general %x, %w, contracting_dims = [1] x [0]; %e = exponential %l
        %r = dot_general %x, %e, contracting_dims = [0] x [0]; %s = dot_general %e, %w, contracting_dims = [1] x [1]""",
        "%r, %s",
    )
    graph, program = prepared(text)
    [choice, *_] = (c for c in choices(program, 1 << 10) if any(loop.accumulators for loop in c.plan.loops))
    return text, with_loops(graph, replace(choice, sizes=Sizes(6, most)))


def test_what_a_tile_adds_is_computed_in_pieces():
    """In a loop of its own, where it is large: pieces that stand beside each other XLA keeps all at once. Their sizes
    are no larger than is fast, and what they add up to is derived."""
    text, whole = in_pieces(1 << 20)
    text, after = in_pieces(500)
    assert [version.count("stablehlo.while") for version in (whole, after)] == [1, 2]
    assert derive(text, after, seconds=8, reassociated=True)
    _, program = prepared(WORKLOADS["cross_entropy"].text(WORKLOADS["cross_entropy"].full))
    assert {choice.sizes.most for choice in choices(program, 96 << 20)} == {CACHED, 6 << 20}


@pytest.mark.parametrize("name", WRONG_LOOPS)
def test_wrong_pieces_are_not_derived(name):
    """The loop over pieces is the last one of the text."""
    text, after = in_pieces(500)
    assert not derive(text, wrong_loop(after, name), seconds=2, reassociated=True)


def test_what_is_cheap_is_made_again():
    """No loop hands a broadcast number on to a later one, small as it is."""
    _, program = prepared(WORKLOADS["train_step"].text((2, 64, 8, 2, 32)))
    loops = [loop for choice in choices(program, 60 << 10, 32) for loop in choice.plan.loops]
    assert any(loop.again for loop in loops)
    assert not [value for loop in loops for value in loop.tiles if value in program.cheap]


def test_a_search_ends(estimated):
    """Where the bound holds nothing is touched; a search ends after so many seconds or plans, and says so."""
    fits, late = hl.tile(LOGITS, max_temp="1GiB"), tile(LOGITS, max_temp=1, effort=SearchLimits(seconds=0))
    assert (fits.loops, fits.text) == ((), to_text(hl.read(LOGITS)))
    assert (late.ended, late.reached) == ("it took 0 s", False)
    assert late.lines()[-1] == "  search ended early: it took 0 s"
    said = list[str]()
    tile(LOGITS, max_temp=1, effort=SearchLimits(plans=1), say=said.append)
    assert [line.split(",")[0] for line in said] == ["plan 1 of 1"]
    assert said[0].endswith("so far, 1 B asked for)"), said
    search = Search("m", b"", SearchLimits(plans=2))
    search.plans = 1
    assert not search.is_over()
    search.plans = 2
    assert (search.is_over(), search.ended) == (True, "it tried 2 plans")


@pytest.mark.parametrize(
    ("dim", "size", "fuse", "how"),
    [
        *((0, 5, "all", {}), (1, 40, "all", {}), (0, 7, "producers", {}), (1, 13, "none", {"is_unrolled": True})),
        pytest.param((2, 1, 0), (3, 40, 7), "none", {}, marks=pytest.mark.sweep),
    ],
    ids=str,
)
def test_by_hand(dim, size, fuse, how, check):
    """Along rows and columns and what is summed, sizes that do not divide, with and without what is around it: equal
    each time."""
    check("logits.mlir", by_hand(LOGITS, 3, 1, 32))
    after = by_hand(LOGITS, 3, dim, size, fuse, **how)
    assert ("stablehlo.while" in after) is not how.get("is_unrolled", False)
    assert are_verified(LOGITS, after)


SUMS = module(
    "%x: 80x60xi32",
    """%e = multiply %x, %x; %z = constant 0 : i32
    %r = reduce(%e init: %z) applies stablehlo.add across dimensions = [1] -> 80xi32""",
)


def test_a_sum_in_tiles_of_4x4():
    """A loop over rows, which writes four sums, around one over columns, which adds to four and squares a tile."""
    text = SUMS.replace("80x", "16x").replace("x60x", "x12x")
    after = by_hand(text, 4, (1, 0), (4, 4))
    outer, inner = re.findall(r"stablehlo.while.*\) : (.*)", after)
    assert outer == "tensor<i32>, tensor<16xi32>, tensor<16x12xi32>"
    assert inner == "tensor<i32>, tensor<4xi32>, tensor<16x12xi32>, tensor<i32>"
    assert re.findall(r"dynamic_slice .*sizes = (\[.*?\])", after) == ["[4, 4]"]
    assert re.findall(r"multiply (%\w+), \1 : (.*)", after)[0][1] == "tensor<4x4xi32>"
    assert are_verified(text, after, "exact")


PRODUCT = module(
    "%x: 24x16xi32, %w: 16x20xi32",
    """%e = multiply %x, %x; %v = negate %w; %f = add %v, %w
    %r = dot_general %e, %f, contracting_dims = [1] x [0] -> 24x20xi32""",
)


@pytest.mark.parametrize(
    ("sizes", "operands", "squares", "sums"),
    [
        ({0: 4}, [0], "4x16", "16x20"),
        ({0: 4}, [1], "24x16", "16x20"),  # read whole, and made whole by each tile
        ({0: 4, 1: 6}, [1, 0], "4x16", "16x6"),  # the squares once for all columns
        pytest.param({0: 4, 1: 5, 2: 8}, [0, 1], "4x16", "8x5", marks=pytest.mark.sweep),
    ],
    ids=str,
)
def test_operands_are_fused(sizes, operands, squares, sums):
    """The op that makes an operand goes into the loop, as far in as loops cut it, and nothing that it is made of."""
    after = by_hand(PRODUCT, 5, tuple(sizes), tuple(sizes.values()), operands=operands)
    around = after.partition("stablehlo.while")[0]
    assert re.findall(r"multiply (%\w+), \1 : tensor<(.*)xi32>", after)[0][1] == squares
    assert re.findall(r"stablehlo.add %\w+, %\w+ : tensor<(\d+x\d+)xi32>", after)[0] == sums
    found = [f"stablehlo.{op} " in around for op in ("multiply", "add", "negate")]
    assert found == [0 not in operands, 1 not in operands, True]
    assert are_verified(PRODUCT, after, "exact")


@pytest.mark.parametrize("sizes", [{0: 4}, {1: 4}, pytest.param({0: 7, 1: 11}, marks=pytest.mark.sweep)], ids=str)
def test_a_start_that_is_no_identity_is_taken_in_once(sizes):
    """Not by each tile: verification has XLA take it in once, too, where its tree does three times, and says so."""
    text = SUMS.replace("dense<0>", "dense<5>")
    after = by_hand(text, 4, tuple(sizes), tuple(sizes.values()))
    given = np.arange(80 * 60, dtype=np.int32).reshape(80, 60)
    for version in (text, after):
        assert np.array_equal(Executable(version, "default").run([given])[0], 5 + (given * given).sum(1))
    verdict = hl.verify(text, after)
    assert (verdict.ok, "added once" in verdict.module.how) == (True, True)
    assert told_of_starts(verdict) == [f"  module: {verdict.module.how}"]
    assert told_of_starts(None) == []


OPEN = module("%x: ?x4xf32", "return %x")
WRONG = [
    ("no op of the entry point is there", lambda: choice_by_hand(prepared(LOGITS)[1], hl.ByHand("other.py:1", {0: 4}))),
    ("not cut along dim 3", lambda: by_hand(LOGITS, 3, 3, 4)),
    ("tiles of 99 do not fit dim 0 of 24", lambda: by_hand(LOGITS, 3, 0, 99)),
    ("operand 2 does not exist: stablehlo.dot_general has 2", lambda: by_hand(LOGITS, 3, 0, 4, operands=[2])),
    ("operand 1 is an argument of the function", lambda: by_hand(LOGITS, 3, 0, 4, operands=[1])),
    ("names no dim", lambda: hl.ByHand("a:1", {})),
    ("either a bound or an op", lambda: hl.tile(LOGITS)),
    ("either a bound or an op", lambda: hl.tile(LOGITS, max_temp="1MiB", by_hand=hl.ByHand("a:1", {0: 1}))),
    ("is not an amount of memory", lambda: hl.tile(LOGITS, max_temp="much")),
    ("is not one of its values", lambda: hl.tile(LOGITS, max_temp="1MiB", verify="some")),
    ("symbolic sizes", lambda: hl.tile(OPEN, max_temp="1MiB")),
    *(("is not an amount of memory", partial(parsed_bytes, "m", v)) for v in ("", "MiB", "-3", "0", 0, True, "3XB")),
]


@pytest.mark.parametrize(("what", "asks"), WRONG)
def test_what_does_not_fit_is_an_input_error(what, asks):
    """It says what would fit, before anything is compiled."""
    with pytest.raises(hl.InputError, match=what) as caught:
        asks()
    assert "next:" in str(caught.value)


def test_sizes():
    """MiB are 2 to the 20th, MB a million. A tile divides the steps, if that takes half of the wanted size or more."""
    assert [parsed_bytes("max_temp", v) for v in (1, "1.5 MiB", "1MB")] == [1, 3 << 19, 10**6]
    assert [tile_size_near(*pair) for pair in ((150, 2048), (120, 1000), (1, 7), (100, 1021))] == [128, 100, 1, 64]


def test_an_op_without_a_rule_is_a_boundary_and_says_why():
    text = module("%x: 64x64xf32", "%a = custom_call @f(%x) -> 64x64xf32; %r = exponential %a")
    program = prepared(text)[1]
    found = {node.name: axes.reason for node in program.nodes if isinstance(axes := program.axes(node), Boundary)}
    assert found == {"stablehlo.custom_call": "stablehlo.custom_call has no subset rule"}


def test_which_plan_comes_first():
    """A loop whose least step is itself large, over the four heads, comes behind one of small steps, over the edges.
    What is large is so beside the seed, however small the bound: with one byte the core is that of 512 bytes."""
    first, *others = choices(prepared(EXPORTS["graph attention"].text())[1], 64 << 20)
    assert first.plan.labels.steps == 196608
    assert any(choice.plan.labels.steps == 4 for choice in others)
    program = prepared(LOGITS.replace("96", "9600"))[1]
    assert {choice.plan.labels.core.least for choice in choices(program, 1)} == {24 * 9600 * 4 // SMALLEST}


def test_the_same_module_is_tiled_to_the_same_text(estimated):
    """What a loop leaves behind stands in the order in which the module computes it, not in that of a set."""
    text = WORKLOADS["prefill"].text(WORKLOADS["prefill"].small)
    texts = {tile(text, max_temp=live(text) // 4, effort=SearchLimits(plans=2)).text for _ in range(2)}
    assert len(texts) == 1
    assert "stablehlo.while" in texts.pop()


HEADS = WORKLOADS["attention"].text((4, 64, 8))


@pytest.mark.sweep
def test_a_step_that_is_too_large_is_cut_again(estimated):
    """A head whose scores fit is a tile; else its rows are cut within it at once, which is one plan and not two.

    The mask costs nothing and is made in the inner loop, rows of it as that loop needs them, and not around the loops.
    """
    large, small = (tile(HEADS, max_temp=bound) for bound in ("96KiB", "16KiB"))
    assert (large.reached, small.reached) == (True, True)
    assert [loop.subset for loop in large.loops] == ["[i, :, :] of 4x64x64"]
    assert [loop.subset for loop in small.loops] == ["[i, :, :] of 4x64x64", "[:, i:+16, :] of 1x64x8"]
    assert not re.search(r"while.*xi1>", small.text)
    assert set(re.findall(r"(\d+)x64xi1>", small.text)) == {"16"}
    assert all(are_verified(HEADS, tiled.text) for tiled in (large, small))


TOKENS = module_of("tokens.mlir")


@pytest.mark.parametrize("most", [4096, 512], ids=["rows of it", "less than a row"])
def test_an_accumulator_is_cut_where_little_is_copied(most):
    """Pieces of a large accumulator take columns of x, which is small, and the tile of exponentials whole; unless a row
    of it is too large for a piece."""
    graph, program = prepared(TOKENS)
    choice = next(c for c in choices(program, 1 << 14) if c.plan.loops[0].accumulators)
    emit(program, choice.plan, Sizes(16, most))
    text = to_text(graph)
    parts = set(re.findall(r"slice %\S+ \[.*: \(tensor<(16x\w+)xf32>\)|slice.*: \(tensor<(16x\d+)xf32>", text))
    assert {one or other for one, other in parts} == {"16x8" if most == 4096 else "16x256"}
    assert are_verified(TOKENS, text)


def test_tiles_are_as_large_as_is_fast():
    """With all the memory in the world a tile of gathered weights stays in a cache; one of attention is larger, for
    each reads all keys and values."""
    for name in ("experts", "attention"):
        program = prepared(WORKLOADS[name].text(WORKLOADS[name].full))[1]
        plan = next(c for c in choices(program, 1 << 40) if c.plan.labels.steps > 4)
        [loop] = plan.plan.loops
        taken = plan.sizes.steps * step_bytes(program, plan.plan, loop)
        whole = read_whole(program, plan.plan, loop)
        assert (whole > 0) is (name == "attention")
        assert max(CACHED, READ * whole) // 2 <= taken <= max(CACHED, READ * whole)


LAYERS = "".join(
    f"""%s{k} = dot_general {x}, {x}, contracting_dims = [1] x [1] -> 64x64xf32; %e{k} = exponential %s{k}
    %y{k} = dot_general %e{k}, {x}, contracting_dims = [1] x [0] -> 64x2xf32; %x{k + 1} = tanh %y{k}\n"""
    for k, x in enumerate(("%x", "%x1", "%x2"))
)
"""Layers that need as much each, so that a loop in one of them alone leaves the peak where it is."""


def test_layers_that_are_alike_are_all_tiled(estimated, monkeypatch):
    """Each gets its loop, though the first two gain nothing by themselves; where one cannot be tiled, or the search
    takes only what gains at once, none does."""
    whole, part = (
        module("%x: 64x2xf32", LAYERS.replace("exponential %s1", op) + "return %x3")
        for op in ("exponential %s1", "custom_call @f(%s1) -> 64x64xf32")
    )
    found, stopped = (tile(text, max_temp=8 << 10) for text in (whole, part))
    assert found.reached, found.summary()
    assert len(found.loops) == 3
    assert are_verified(whole, found.text)
    assert (stopped.reached, stopped.loops) == (False, ())
    monkeypatch.setattr(Beyond, "is_level", lambda one, other: False)
    assert tile(whole, max_temp=8 << 10).loops == ()
