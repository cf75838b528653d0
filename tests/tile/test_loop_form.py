"""Loops as text and back; loops that are read from a module, and ops that are fused into them."""

import numpy as np
import pytest
from random_graphs import agree, program, tiled_by_hand
from small_tiles import are_verified, by_hand
from test_tiling import PRODUCT, SUMS
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile.entry import tile
from hlo_lower.tile.into_loop import fuse_into
from hlo_lower.tile.loop_form import parse_loops, print_loops
from hlo_lower.tile.read_loops import read_loops

RULES = default_subset_rules()


def text_of(module_text):
    """The loops of a module as text, which says all of them."""
    loops = read_loops(hl.read(module_text))
    text = print_loops(loops)
    assert parse_loops(text) == loops
    return text


FOUR_BY_FOUR = """\
parallel %i = 0 to 20 shared(%i0 = %0 : 80xi32) at "<module>:5" {
  %1 = stablehlo.broadcast_in_dim(0) {broadcast_dimensions = array<i64>} : 4xi32
  for %j = 0 to 15 carries(%j0 = %1 : 4xi32) at "<module>:16" {
    %s0 = subset [tile(4*i, 4), tile(4*j, 4)] of 80x60
    %2 = materialize %arg0[%s0]
    %3 = stablehlo.multiply(%2, %2) : 4x4xi32
    %4 = stablehlo.reduce(%3, 0) {dimensions = array<i64: 1>} by add : 4xi32
    %5 = stablehlo.add(%j0, %4) : 4xi32
    yield %5 to %j0[full]
  } -> %6
  %s1 = subset [tile(4*i, 4)] of 80
  yield %6 to %i0[%s1]
} -> %7
"""


def test_sums_in_tiles_of_4x4():
    """A parallel loop around one in order with an accumulator; each subset is a value, and stands once."""
    assert text_of(by_hand(SUMS, 4, (1, 0), (4, 4))) == FOUR_BY_FOUR


def test_a_last_tile_that_is_moved_back_comes_last():
    """It meets the tile before it, which may give something else for what they have in common: the loop is in order."""
    text = module(
        "%x: 10xi32",
        """%zero = constant 0 : i32
        %r:2 = while(%t = %zero, %o = %x) cond { %c = compare LT, %t, 3; return %c } do {
          %m = multiply %t, 4; %p = minimum %m, 6; %part = broadcast_in_dim %t, dims = [] -> 4xi32
          %new = dynamic_update_slice %o, %part, %p; %next = add %t, 1
          return %next, %new
        }""",
        "%r#1",
    )
    assert text_of(text).startswith("for %i = 0 to 3 ")
    assert text_of(text.replace("constant dense<3>", "constant dense<2>")).startswith("parallel %i = 0 to 2 ")


def picked(body, start):
    """The subset that a loop of four iterations takes of ten rows, from a start that is computed of the counter."""
    text = module(
        "%x: 10x6xi32, %n: i32, %ids: 4x1xi32",
        f"""%zero = constant 0 : i32; %none = constant 0 : 4x6xi32
        %r:2 = while(%t = %zero, %o = %none) cond {{ %c = compare LT, %t, 4; return %c }} do {{
          {start}
          {body}
          %next = add %t, 1
          %new = add %o, %part
          return %next, %new
        }}""",
        "%r#1",
    )
    return text_of(text).partition("subset [")[2].partition("]")[0]


ROWS = "%part = dynamic_slice %x, %p, %zero, sizes = [4, 6]"


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("%p = add %t, %t", "tile(%1, 4), full"),  # twice the counter is no multiplication
        ("%p = multiply %t, 2", "tile(2*i, 4), full"),
        ("%m = multiply 2, %t; %p = minimum %m, 6", "tile(2*i, 4), full"),  # which it reaches, and does not go beyond
        ("%m = multiply %t, 4; %p = minimum 5, %m", "tile(min(4*i, 5), 4), full"),
        ("%m = add %t, 3; %p = multiply %m, 1", "tile(i+3, 4), full"),
        ("%m = multiply %t, 4; %p = add %m, 1", "tile(min(4*i+1, 6), 4), full"),  # a slice clamps its start
        ("%m = multiply %t, -2; %p = add %m, 6", "tile(-2*i+6, 4), full"),
        ("%p = minimum %n, 3", "tile(%1, 4), full"),
    ],
)
def test_starts_are_followed(start, told):
    """Bounds that an iteration reaches are told, others are not; what is not followed is a name."""
    assert picked(ROWS, start) == told


def test_rows_that_an_index_tensor_names_are_a_filter():
    """A gather of whole rows materializes a filter."""
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    gather = f"gather(%x, %ids) <dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = array<i64: 1, 6>>"
    assert picked(f"%part = {gather} -> 4x6xi32", "") == "filter(%arg2, 4), full"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("of 80x60", "of 80", "2 dims of 80"),
        ("tile(4*i, 4), ", "tile(4*i), ", "is not point(start), tile(start, size) or filter(index, size)"),
        ("arg0[%s0]", "arg0[%s9]", "there is no subset %s9"),
        ("parallel %i", "perhaps %i", "is not a part of a loop"),
        ("} -> %7", "", "a loop has no end"),
    ],
)
def test_what_is_no_loop_is_an_input_error(old, new, what):
    """It names the line."""
    with pytest.raises(hl.InputError) as caught:
        parse_loops(FOUR_BY_FOUR.replace(old, new))
    assert what in str(caught.value)


def fused(text, op, into):
    """The module with an op fused into a loop."""
    graph = hl.read(text)
    fuse_into(graph, RULES, hl.IntoLoop(op, into))
    return to_text(graph)


def test_ops_are_fused_into_a_loop_of_the_module():
    """The squares as the rows that an iteration reads; what it reads whole, whole; and then what that is made of."""
    loop = by_hand(PRODUCT, 5, 0, 7, "none")
    squares = fused(loop, "<module>:3", "<module>:8")
    told = text_of(squares)
    assert "%3 = materialize %arg0[%s0]\n  %4 = stablehlo.multiply(%3, %3) : 7x16xi32\n" in told
    both = squares
    for _ in range(2):
        both = fused(both, "*", "*")
    [body] = read_loops(hl.read(both))
    assert [item.text.partition("(")[0] for item in body.body if hasattr(item, "text")] == [
        *("stablehlo.negate", "stablehlo.add", "stablehlo.multiply", "stablehlo.dot_general"),
    ]
    assert are_verified(PRODUCT, both, "exact")


def test_what_a_loop_begins_with_and_yields_may_be_a_number_or_a_place():
    """Negative constants, and places of several parts, are read back; an inner loop begins with an outer place."""
    text = module(
        "%x: 10xi32",
        """%zero = constant 0 : i32; %least = constant -7 : i32
        %r:2 = while(%t = %zero, %o = %least) cond { %c = compare LT, %t, 4; return %c } do {
          %m = multiply %t, 3; %p = minimum %m, 5; %none = constant 0 : i32
          %s:3 = while(%k = %none, %q = %p, %v = %o) cond { %d = compare LT, %k, 2; return %d } do {
            %a = dynamic_slice %x, %q, sizes = [1]; %b = reshape %a -> i32; %n = add %k, 1
            return %n, %b, %p
          }
          %next = add %t, 1
          return %next, %s#2
        }""",
        "%r#1",
    )
    told = text_of(text)
    assert "carries(%i0 = -7 : i32)" in told
    assert "carries(%j0 = min(3*i, 5) : i32, %j1 = %i0 : i32)" in told
    assert "yield min(3*i, 5) to %j1[full]" in told


STARTS = module(
    "%x: 10x6xi32, %n: i32",
    """%zero = constant 0 : i32; %none = constant 0 : 4x6xi32; %p = add %n, %n
    %r:4 = while(%t = %zero, %o = %none, %y = %x, %s = %p) cond { %c = compare LT, %t, 4; return %c } do {
      %part = dynamic_slice %y, %s, %s, sizes = [4, 6]; %new = add %o, %part; %next = add %t, 1
      return %next, %new, %y, %s
    }""",
    "%r#1",
)


def test_a_start_is_fused_as_a_whole():
    """What a slice reads as its start is not a tensor of which it reads a part."""
    after = fused(STARTS, "<module>:4", "*")
    assert "add" not in after.partition("stablehlo.while")[0]
    assert are_verified(STARTS, after, "exact")


WRONG = [
    ("<module>:3", "<module>:7", "no loop is there", "loops are at <module>:8"),
    ("<module>:9", "<module>:8", "no op is there", "comes from <module>:3, <module>:5"),
    ("<module>:4", "<module>:8", "the loop does not read the result of that op", "comes from <module>:3, <module>:5"),
]


@pytest.mark.parametrize(("op", "into", "what", "facts"), WRONG)
def test_what_cannot_be_fused_is_told(op, into, what, facts):
    """A loop or an op that is not there, and one that the loop does not read."""
    loop = by_hand(PRODUCT, 5, 0, 7, "none")
    with pytest.raises(hl.InputError) as caught:
        tile(loop, by_hand=hl.IntoLoop(op, into))
    assert what in str(caught.value)
    assert facts in str(caught.value)


def mismatch(seed):
    """Whether ops that are fused into random loops by hand change what a random program gives, and how many were."""
    text, rng = program(seed), np.random.default_rng([seed, 5])
    after, count = tiled_by_hand(text, seed, RULES)[0], 0
    text_of(after)
    for _ in range(4):
        graph = hl.read(after)
        loops = [node for node in graph.nodes() if node.name == "stablehlo.while"]
        read = [(w, v.node) for w in loops for v in w.operands if v.node is not None and v.node.operands]
        if not read:
            break
        loop, node = read[rng.integers(len(read))]
        try:
            fuse_into(graph, RULES, hl.IntoLoop(str(graph.location(node)), str(graph.location(loop))))
        except hl.InputError:
            continue
        after, count = to_text(graph), count + 1
        text_of(after)
    return not agree(text, after, seed), count


@pytest.mark.parametrize("seeds", [(2, 9, 11), pytest.param(range(300), marks=pytest.mark.sweep)], ids=str)
def test_what_is_fused_into_random_loops_changes_nothing(seeds):
    """No result differs, and loops are read back from their text, before and after."""
    found = {seed: mismatch(seed) for seed in seeds}
    assert [seed for seed, (wrong, _) in found.items() if wrong] == []
    assert sum(count for _, count in found.values()) >= len(found) / 2
