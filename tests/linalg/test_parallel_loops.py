"""Which loops leave as `scf.forall`, that their order is free then, and that a wrong one is seen."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from iree_runs import compiled, compiler, printed, run_on_iree
from leaving import left_as_linalg
from random_graphs import program, tiled
from rewrites import results as run_on_xla
from small_tiles import by_hand
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.lowering.linalg import loops
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.verify.run import Executable


def reverse(graph):
    """Let the counter of each `scf.forall` stand for its counterpart from the other end."""
    found = [node for node in graph.nodes() if node.name == "scf.forall"]
    with mlir.active(graph.context):
        for loop in found:
            counted, block = loops.range_of(loop), loop.blocks[0]
            counter = block.argument(0)
            build = Builder(mlir.insert_at_begin(block.raw), loop.raw.location)
            both = loops.index_constant(build, counted[0] + counted[-1])
            other = build.op("arith.subi", [both, both], [counter.raw.type])
            counter.raw.replace_all_uses_with(other.result().raw)
            other.raw.operands[1] = counter.raw
    assert mlir.verify_module(graph.module) is None


in_parallel = partial(left_as_linalg, parallel=True)
reversed_ = partial(left_as_linalg, parallel=True, then=reverse)


def loop(
    *, size=2, last=4, trips=3, source="%x", place="%i", write="%i", sum_="%s", limit="", tile="add %part, %k", more=""
):
    """A loop that writes a tile of two columns in each iteration, from what it reads of another."""
    body = f"""%zero = constant 0 : i32; %none = constant 7 : 4x6xi32
  %r:3 = while(%t = %zero, %o = %none, %s = %n) cond {{ %c = compare LT, %t, {limit or trips}; return %c }} do {{
    %m = multiply %t, {size}; %i = minimum %m, {last}
    %part = dynamic_slice {source}, %zero, {place}, sizes = [4, 2]
    %k = broadcast_in_dim %t, dims = [] -> 4x2xi32
    %tile = {tile}
    %new = dynamic_update_slice %o, %tile, %zero, {write}
    %more = add %s, %t; %next = add %t, 1
    return %next, %new, {sum_}
  }}"""
    return module("%x: 4x6xi32, %n: i32", body, "%r#1, %r#2", more)


GIVEN = np.arange(24, dtype=np.int32).reshape(4, 6), np.int32(4)


def called(op):
    """A loop that calls a function of an op."""
    return loop(tile="call @f(%part) -> 4x2xi32", more=function("private @f", "%a: 4x2xi32", f"%r = {op}"))


IN_ANY_ORDER = {
    "tiles": loop(),
    "its own tile is read": loop(source="%o"),
    "another place of an argument is read": loop(place="%n"),
    "tiles with rows between them": loop(size=3, trips=2),
    "a function that computes": called("negate %a"),
}


@pytest.mark.parametrize("name", IN_ANY_ORDER)
def test_iterations_that_do_not_meet_are_parallel(name):
    """A loop that writes tiles side by side, and reads of them its own one at most, is one `scf.forall`. It begins with
    an empty tensor unless something is left of the first one, or read of it."""
    text, report = in_parallel(IN_ANY_ORDER[name])
    [first] = re.findall(r"shared_outs\(%\w+ = (%\w+)\)", text)
    assert (f"{first} = tensor.empty()" in text) is (
        name not in ("its own tile is read", "tiles with rows between them")
    )
    assert (report.parallel_loops, report.counted_loops, report.in_order) == (1, 0, ())
    assert text.count("scf.forall (") == text.count("tensor.parallel_insert_slice") == 1
    assert "scf.for " not in text
    assert "step (2)" in text or "step (3)" in text or "arith.muli" in text  # a tile computes with the counter, too


CARRIES = "carries tensor<{}> from one iteration to the next"
IN_ORDER = {
    "a sum is carried": (loop(sum_="%more"), CARRIES.format("i32")),
    "another tile is read": (loop(source="%o", place="%zero"), CARRIES.format("4x6xi32")),
    "tiles meet": (loop(size=1, trips=5), "writes slices that meet"),
    "two last tiles meet": (loop(size=3, trips=4), "writes slices that meet"),
    "one place": (loop(write="%zero"), "writes slices that meet"),
    "a place that data give": (loop(write="%n"), "writes slices that meet"),
    "trips that data give": (loop(limit="%s"), "does not count between constants"),
    "a call that may do anything": (called("custom_call @out(%a) -> 4x2xi32"), "holds stablehlo.custom_call"),
}


@pytest.mark.parametrize(("text", "why"), IN_ORDER.values(), ids=IN_ORDER)
def test_near_misses_stay_in_order(text, why):
    """Where an iteration may see or write what another one does the loop stays `scf.for`, and it is told why."""
    text, report = in_parallel(text)
    assert (report.parallel_loops, report.counted_loops) == (0, 1)
    [told] = report.in_order
    assert told.startswith("scf.for at <module>:")
    assert told.endswith(f" {why}")
    assert "scf.forall" not in text


def on_iree(leave, text):
    """What a module gives on IREE, left in one way."""
    return [a.tolist() for a in run_on_iree(leave(text)[0], GIVEN)]


def test_a_tile_that_is_moved_back_is_computed_behind_the_loop():
    """Two tiles side by side are parallel; the third begins one step earlier and is written over the second."""
    text, report = in_parallel(loop(last=3))
    assert report.parallel_loops == 1
    assert "[0, 3] [4, 2] [1, 1]" in text.split("in_parallel")[1]
    assert [a.tolist() for a in run_on_xla(loop(last=3), *GIVEN)] == on_iree(reversed_, loop(last=3))


WRONG = {
    "slices that meet are taken for such ones that do not": (loops, "_are_apart", lambda *_: True, {"last": 3}),
    "any place may be read": (loops, "_places", lambda *_: True, {"source": "%o", "place": "%n"}),
    "the tile that is moved back is not computed": (loops, "_split", lambda *_: None, {"last": 3}),
    "places are the counter itself": (loops._Places, "_op", lambda places, name, value, number: value, {}),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_loop_is_seen(name, monkeypatch):
    """Each way to get it wrong gives other results on IREE, from the first to the last iteration or back."""
    owner, step, wrong, changes = WRONG[name]
    expected = [a.tolist() for a in run_on_xla(loop(**changes), *GIVEN)]
    monkeypatch.setattr(owner, step, wrong)
    assert any(on_iree(leave, loop(**changes)) != expected for leave in (in_parallel, reversed_))


def test_what_is_mapped_is_parallel():
    """`lax.map` is a scan that carries nothing: its rows are computed in parallel; a scan with a sum is not."""

    def rows(x):
        return jax.lax.map(lambda row: jnp.sort(row * 2), x)

    def sums(x):
        return jax.lax.scan(lambda s, row: (s + row.sum(), s), jnp.int32(0), x)

    x = np.arange(20, dtype=np.int32).reshape(5, 4)[:, ::-1] % 7
    text, report = in_parallel(hl.export(rows, x))
    assert report.parallel_loops >= 1, report.lines()
    assert np.array_equal(run_on_iree(text, [x])[0], rows(x))
    assert in_parallel(hl.export(sums, x))[1].parallel_loops == 0


PRODUCT = module(
    "%x: 24x8xf32, %w: 8x96xf32",
    "%r = dot_general %x, %w, contracting_dims = [1] x [0] -> 24x96xf32; %y = abs %r",
    "%y",
)
SUMS = module(
    "%x: 80x60xf32",
    "%z = constant 0.0 : f32; %r = reduce(%x init: %z) applies stablehlo.add across dimensions = [1] -> 80xf32",
)


@pytest.mark.parametrize(
    ("text", "line", "sizes", "left"),
    [(PRODUCT, 2, {0: 7}, 0), (PRODUCT, 2, {0: 8, 1: 32}, 0), (SUMS, 3, {0: 4, 1: 4}, 1)],
    ids=["rows, the last ones moved back", "rows and columns", "sums that are accumulated"],
)
def test_bufferization_allocates_nothing_for_a_tile(text, line, sizes, left):
    """Of what the loops write; each partial sum is a buffer of its own. Nothing is copied, nor filled beforehand."""
    found = by_hand(text, line, tuple(sizes), tuple(sizes.values()))
    passes = "--one-shot-bufferize=bufferize-function-boundaries", "--canonicalize", "--cse", "--canonicalize"
    buffers = printed(in_parallel(found)[0], *passes)
    around, _, inside = buffers.partition("scf.forall")
    assert (around.count("memref.alloc"), inside.count("memref.alloc"), "memref.copy" in buffers) == (1, left, False)


def differs(seed):
    """Which forms of a random program with random loops over tiles give something else on IREE than XLA makes of it
    without them, and how many loops are parallel: those run from either end; a program without any as `scf.for`, and
    one that IREE's compiler refuses not at all."""
    before = after = program(seed)
    for number in range(2):
        after, _ = tiled(after, seed + number, default_subset_rules())
    rng, native = np.random.default_rng([seed, 2]), Executable(before, "quick")
    arguments = [rng.integers(-3, 9, a.shape).astype(np.int32) for a in native.arguments]
    expected = [np.asarray(value) for value in native.run(arguments)]
    text, report = in_parallel(after)
    forms = {"forall": text, "reversed": reversed_(after)[0]}
    if not report.parallel_loops:
        forms = {"for": left_as_linalg(after)[0]}
    try:
        found = {name: compiled(text)(arguments) for name, text in forms.items()}
    except compiler.tools.CompilerToolError:  # refused shapes, a circular dependency in its own schedule
        return [], 0
    wrong = [name for name, given in found.items() if not all(map(np.array_equal, expected, given))]
    return wrong, report.parallel_loops


def test_random_loops_compute_the_same_on_iree():
    """As `scf.forall`, and that from its end: the numbers are XLA's for the program without loops."""
    wrong, parallel = differs(4)
    assert (wrong, parallel > 0) == ([], True)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_many_random_loops_compute_the_same_on_iree(block):
    """The same for twenty programs; those that have no parallel loop as `scf.for`."""
    assert [seed for seed in range(20 * block, 20 * (block + 1)) if differs(seed)[0]] == []
