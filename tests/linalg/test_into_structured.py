"""Ops of linalg fused into loops of scf that stand in a module, and these loops read back."""

import re

import numpy as np
import pytest
from iree_runs import compiled, compiler
from leaving import left_as_linalg
from random_graphs import program, tiled
from small_tiles import by_hand
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile import into_structured
from hlo_lower.tile.into_structured import EMPTY, FILL, fuse_into_structured
from hlo_lower.tile.loop_form import parse_loops, print_loops
from hlo_lower.tile.read_loops import read_loops
from hlo_lower.verify.run import Executable

RULES = default_subset_rules()

SUMS = module(
    "%x: 80x60xf32",
    """%zero = constant 0.0 : f32; %e = multiply %x, %x; %n = exponential %e
    %r = reduce(%n init: %zero) applies stablehlo.add across dimensions = [1]""",
    "%r",
)


def structured(text):
    """A module in linalg, read."""
    return hl.read(text, is_structured=True)


def told(graph):
    """Its loops as text, which is read back as it is."""
    loops = read_loops(graph)
    text = print_loops(loops)
    assert parse_loops(text) == loops
    return text


def loops_of(graph):
    """The loops of a module."""
    return [node for node in graph.nodes() if node.name in into_structured.LOOPS]


FUSED = """\
parallel %i = 0 to 20 shared(%i0 = %0 : 80xf32) at "<module>:11" {
  %s0 = subset [tile(4*i, 4), full] of 80x60
  %1 = materialize %arg0[%s0]
  %2 = tensor.empty() : 4x60xf32
  %3 = linalg.map(%1, %1, %2) by arith.mulf : 4x60xf32
  %4 = tensor.empty() : 4x60xf32
  %5 = linalg.map(%3, %4) by math.exp : 4x60xf32
  %s1 = subset [tile(4*i, 4)] of 80
  %6 = materialize %i0[%s1]
  %7 = linalg.fill(0.000000e+00, %6) : 4xf32
  for %j = 0 to 15 carries(%j0 = %7 : 4xf32) at "<module>:15" {
    %s2 = subset [full, tile(4*j, 4)] of 4x60
    %8 = materialize %5[%s2]
    %9 = tensor.empty() : 4xf32
    %10 = linalg.fill(0.000000e+00, %9) : 4xf32
    %11 = linalg.reduce(%8, %10) {dimensions = array<i64: 1>} by arith.addf : 4xf32
    %12 = linalg.map(%j0, %11, %j0) by arith.addf : 4xf32
    yield %12 to %j0[full]
  } -> %13
  yield %13 to %i0[%s1]
} -> %14
"""


def test_producers_are_fused_into_a_loop_that_was_read_back():
    """One after the other, as the rows that an iteration reads; subsets, body and yields are read before and after."""
    graph = structured(left_as_linalg(by_hand(SUMS, 5, (0, 1), (4, 4), "none"), parallel=True)[0])
    assert "%4 = materialize %2[%s0]" in told(graph)
    for op in ("<module>:9", "<module>:8"):
        graph = hl.tile(graph, by_hand=hl.IntoLoop(op, into="<module>:11")).graph
    assert told(graph) == FUSED


PRODUCT = module(
    "%x: 24x8xi32, %w: 16x8xi32",
    """%t = transpose %w, dims = [1, 0]; %p = dot_general %x, %t, contracting_dims = [1] x [0] -> 24x16xi32
    %n = negate %p""",
    "%n",
)


def product_in_loop(parallel):
    """The product fused into the loop over rows of what reads it, as text."""
    graph = structured(left_as_linalg(by_hand(PRODUCT, 4, (0, 1), (7, 8), "none"), parallel=parallel)[0])
    product = next(n for n in graph.main.body.nodes if n.name == "linalg.matmul")
    outer = next(loop for loop in loops_of(graph) if loop.parent.name == "func.func")
    fuse_into_structured(graph, str(graph.location(product)), str(graph.location(outer)))
    return str(graph.module)


def is_right(text):
    """Whether a module gives the product's numbers on IREE."""
    rng, native = np.random.default_rng(3), Executable(PRODUCT, "quick")
    given = [rng.integers(-9, 9, a.shape).astype(np.int32) for a in native.arguments]
    return all(map(np.array_equal, compiled(text)(given), native.run(given)))


@pytest.mark.parametrize("parallel", [True, False])
def test_a_product_is_cut_by_its_maps(parallel):
    """The rows that an iteration reads, and the dims that it sums as a whole; a last tile that is moved back, too."""
    text = product_in_loop(parallel)
    assert "linalg.matmul" in told(structured(text))
    assert re.search(r"linalg.matmul .*ins\(.* : tensor<7x8xi32>, tensor<16x8xi32>\)", text)
    assert is_right(text)


def drawn(seed):
    """A random program, what it is in linalg, the same with random producers fused into its loops, and how many."""
    before = after = program(seed)
    for number in range(2):
        after, _ = tiled(after, seed + number, RULES)
    parallel = bool(seed % 2)
    rng, count = np.random.default_rng([seed, 7]), 0
    try:
        apart = left_as_linalg(after, parallel=parallel)[0]
    except hl.NotLoweredError:  # jaxlib's own passes refuse it
        return before, "", "", 0
    graph = structured(apart)
    for _ in range(6):
        graph = structured(str(graph.module))
        told(graph)
        loops = loops_of(graph)
        if not loops:
            break
        loop = loops[rng.integers(len(loops))]
        inside = into_structured._inside(loop.blocks[0])
        made = dict.fromkeys(v.node for n in inside for v in n.operands if v.node and v.node not in inside)
        ops = [node for node in made if node.name.startswith("linalg.") and node.name not in (EMPTY, FILL)]
        if not ops:
            continue
        try:
            place = str(graph.location(ops[rng.integers(len(ops))]))
            fuse_into_structured(graph, place, str(graph.location(loop)))
        except hl.InputError:
            continue
        count += 1
    return before, apart, str(graph.module), count


def differs(seed):
    """Whether a random program gives something else on IREE with producers fused into its loops than XLA makes of it
    without any loop; and how many were fused."""
    before, _, after, count = drawn(seed)
    if not count:
        return False, 0
    rng, native = np.random.default_rng([seed, 2]), Executable(before, "quick")
    arguments = [rng.integers(-3, 9, a.shape).astype(np.int32) for a in native.arguments]
    expected = [np.asarray(value) for value in native.run(arguments)]
    try:
        found = compiled(after)(arguments)
    except compiler.tools.CompilerToolError:  # refused shapes, a circular dependency in its own schedule
        return False, 0
    return not all(map(np.array_equal, expected, found)), count


SEEN = 1
"""A program with three producers that are fused."""


def test_what_is_fused_into_random_loops_computes_the_same():
    """The numbers are XLA's for the program without loops."""
    wrong, count = differs(SEEN)
    assert (wrong, count > 0) == (False, True)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_what_is_fused_into_many_random_loops_computes_the_same(block):
    """The same for twenty programs."""
    found = {seed: differs(seed) for seed in range(20 * block, 20 * (block + 1))}
    assert [seed for seed, (wrong, _) in found.items() if wrong] == []


def test_a_wrong_part_is_seen(monkeypatch):
    """An operand that is read from its first element on gives other numbers."""
    right = into_structured._of_operand

    def wrong(value, one, cut, part):
        found = right(value, one, cut, part)
        return found and into_structured._Part((0,) * len(found.starts), found.sizes, found.strides)

    monkeypatch.setattr(into_structured, "_of_operand", wrong)
    assert not is_right(product_in_loop(parallel=True))


@pytest.mark.parametrize(
    ("op", "into", "what"),
    [
        ("<module>:9", "<module>:2", "no loop is there"),
        ("<module>:8", "<module>:11", "no op makes what the loop reads"),
        ("<module>:11", "<module>:15", "no op makes what the loop reads"),
    ],
)
def test_what_cannot_be_fused_is_told(op, into, what):
    """A loop or an op that is not there, and one that the loop does not read."""
    text = left_as_linalg(by_hand(SUMS, 5, (0, 1), (4, 4), "none"), parallel=True)[0]
    with pytest.raises(hl.InputError) as caught:
        hl.tile(text, by_hand=hl.IntoLoop(op, into))
    assert what in str(caught.value)


def test_a_module_in_linalg_is_read_for_its_loops_alone():
    """Only a consumer can verify such a module; nothing else reads it."""
    text = left_as_linalg(by_hand(SUMS, 5, (0, 1), (4, 4), "none"), parallel=True)[0]
    with pytest.raises(hl.InputError, match="which hlo_lower writes and does not read"):
        hl.tile(text, max_temp="1MiB")
    with pytest.raises(hl.InputError, match="only a consumer can verify a module in linalg"):
        hl.tile(text, by_hand=hl.IntoLoop("<module>:9", "<module>:11"), verify="regions")
