"""Which loops leave as `scf.forall`, that their order is free then, and that a wrong one is seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from iree_runs import compiled, compiler, run_on_iree
from leaving import left_as_linalg
from orders import parallel
from random_graphs import program, tiled
from rewrites import main

import hlo_lower as hl
from hlo_lower.lowering.linalg import loops
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.verify.run import Executable

M, T, N = "tensor<4x6xi32>", "tensor<4x2xi32>", "tensor<i32>"


def loop(size="2", last="4", trips="3", source="%x", place="%i", write="%i", sum_="%s", limit="%trips"):
    """A loop that writes a tile of two columns in each iteration, from what it reads of another."""
    constants = {"zero": "0", "one": "1", "size": size, "last": last, "trips": trips}
    body = "".join(f"%{name} = stablehlo.constant dense<{n}> : {N}\n  " for name, n in constants.items())
    return main(
        f"%x: {M}, %n: {N}",
        f"""{body}%none = stablehlo.constant dense<7> : {M}
  %r:3 = stablehlo.while(%t = %zero, %o = %none, %s = %n) : {N}, {M}, {N} cond {{
    %c = stablehlo.compare LT, %t, {limit} : ({N}, {N}) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %m = stablehlo.multiply %t, %size : {N}
    %i = stablehlo.minimum %m, %last : {N}
    %part = stablehlo.dynamic_slice {source}, %zero, {place}, sizes = [4, 2] : ({M}, {N}, {N}) -> {T}
    %k = stablehlo.broadcast_in_dim %t, dims = [] : ({N}) -> {T}
    %tile = stablehlo.add %part, %k : {T}
    %new = stablehlo.dynamic_update_slice %o, %tile, %zero, {write} : ({M}, {T}, {N}, {N}) -> {M}
    %more = stablehlo.add %s, %t : {N}
    %next = stablehlo.add %t, %one : {N}
    stablehlo.return %next, %new, {sum_} : {N}, {M}, {N}
  }}""",
        f"%r#1, %r#2 : {M}, {N}",
    )


LAST_TILE = np.int32(4)

IN_ANY_ORDER = {
    "tiles": {},
    "its own tile is read": {"source": "%o"},
    "another place of an argument is read": {"place": "%n"},
    "tiles with rows between them": {"size": "3", "trips": "2"},
}


@pytest.mark.parametrize("changes", IN_ANY_ORDER.values(), ids=IN_ANY_ORDER)
def test_iterations_that_do_not_meet_are_parallel(changes):
    """A loop that writes tiles side by side, and reads of them its own one at most, is one `scf.forall`."""
    text, report = parallel(loop(**changes))
    assert (report.parallel_loops, report.counted_loops, report.in_order) == (1, 0, ())
    assert text.count("scf.forall (") == text.count("tensor.parallel_insert_slice") == 1
    assert "scf.for " not in text
    assert f"step ({changes.get('size', '2')})" in text or "arith.muli" in text  # a tile computes with the counter, too


CARRIES = "carries tensor<{}> from one iteration to the next"

IN_ORDER = {
    "a sum is carried": ({"sum_": "%more"}, CARRIES.format("i32")),
    "another tile is read": ({"source": "%o", "place": "%zero"}, CARRIES.format("4x6xi32")),
    "tiles meet": ({"size": "1", "trips": "5"}, "writes slices that meet"),
    "two last tiles meet": ({"size": "3", "trips": "4"}, "writes slices that meet"),
    "one place": ({"write": "%zero"}, "writes slices that meet"),
    "a place that data give": ({"write": "%n"}, "writes slices that meet"),
    "trips that data give": ({"limit": "%s"}, "does not count between constants"),
}


@pytest.mark.parametrize(("changes", "why"), IN_ORDER.values(), ids=IN_ORDER)
def test_near_misses_stay_in_order(changes, why):
    """Where an iteration may see or write what another one does the loop stays `scf.for`, and it is told why."""
    text, report = parallel(loop(**changes))
    assert (report.parallel_loops, report.counted_loops) == (0, 1)
    assert report.in_order == (f"scf.for at <module>:9 {why}",)
    assert "scf.forall" not in text


def test_a_tile_that_is_moved_back_is_computed_behind_the_loop():
    """Two tiles side by side are parallel; the third begins one step earlier and is written over the second."""
    source = loop(last="3")
    text, report = parallel(source)
    assert report.parallel_loops == 1
    assert "[0, 3] [4, 2] [1, 1]" in text.split("in_parallel")[1]
    arguments = [np.arange(24, dtype=np.int32).reshape(4, 6), LAST_TILE]
    expected = [np.asarray(a).tolist() for a in Executable(source, "exact").run(arguments)]
    assert expected == results(source, is_reversed=True)


def results(source, *, is_reversed=False):
    """What the module with `scf.forall` gives on IREE."""
    arguments = [np.arange(24, dtype=np.int32).reshape(4, 6), LAST_TILE]
    return [a.tolist() for a in run_on_iree(parallel(source, is_reversed=is_reversed)[0], arguments)]


WRONG = {
    "slices that meet are taken for such ones that do not": (loops, "_are_apart", lambda *_: True, {"last": "3"}),
    "any place may be read": (loops, "_places", lambda *_: True, {"source": "%o", "place": "%n"}),
    "the tile that is moved back is not computed": (loops, "_split", lambda *_: None, {"last": "3"}),
    "places are the counter itself": (loops._Places, "_op", lambda places, name, value, number: value, {}),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_loop_is_seen(name, monkeypatch):
    """Each way to get it wrong gives other results on IREE, from the first to the last iteration or back."""
    owner, step, wrong, changes = WRONG[name]
    arguments = [np.arange(24, dtype=np.int32).reshape(4, 6), LAST_TILE]
    expected = [np.asarray(a).tolist() for a in Executable(loop(**changes), "exact").run(arguments)]
    monkeypatch.setattr(owner, step, wrong)
    assert any(results(loop(**changes), is_reversed=back) != expected for back in (False, True))


def test_what_is_mapped_is_parallel():
    """`lax.map` is a scan that carries nothing: its rows are computed in parallel; a scan with a sum is not."""

    def rows(x):
        return jax.lax.map(lambda row: jnp.sort(row * 2), x)

    def sums(x):
        return jax.lax.scan(lambda s, row: (s + row.sum(), s), jnp.int32(0), x)

    x = np.arange(20, dtype=np.int32).reshape(5, 4)[:, ::-1] % 7
    text, report = parallel(hl.export(rows, x))
    assert report.parallel_loops >= 1, report.lines()
    assert np.array_equal(run_on_iree(text, [x])[0], rows(x))
    assert parallel(hl.export(sums, x))[1].parallel_loops == 0


def test_a_call_that_may_do_anything_stays_in_order():
    """What is called is looked at: a function that calls out keeps the loop in order, one that computes does not."""
    called = "func.call @f(%part) : (tensor<4x2xi32>) -> tensor<4x2xi32>"
    call = loop().replace("stablehlo.add %part, %k : tensor<4x2xi32>", called)
    function = "func.func private @f(%a: tensor<4x2xi32>) -> tensor<4x2xi32> { OP\n return %b : tensor<4x2xi32> }\n"
    plain = function.replace("OP", "%b = stablehlo.negate %a : tensor<4x2xi32>")
    out = function.replace("OP", "%b = stablehlo.custom_call @out(%a) : (tensor<4x2xi32>) -> tensor<4x2xi32>")
    assert parallel(call + plain)[1].parallel_loops == 1
    assert parallel(call + out)[1].in_order == ("scf.for at <module>:9 holds stablehlo.custom_call",)


def tiled_twice(seed):
    """A random program, and the same with random loops over tiles in it."""
    text = program(seed)
    after = text
    for number in range(2):
        after, _ = tiled(after, seed + number, default_subset_rules())
    return text, after


def arguments_of(text, seed):
    """Small random arguments."""
    rng = np.random.default_rng([seed, 2])
    return [rng.integers(-3, 9, a.shape).astype(np.int32) for a in Executable(text, "quick").arguments]


def differs(seed):
    """Which forms of a random program with loops give something else on IREE than XLA makes of it without them.

    Returns:
      Their names, and how many loops are parallel: those run from either end; a program without any as `scf.for`, and
      one that IREE's compiler refuses not at all.
    """
    before, after = tiled_twice(seed)
    arguments = arguments_of(before, seed)
    expected = [np.asarray(value) for value in Executable(before, "quick").run(arguments)]
    in_parallel, report = parallel(after)
    forms = {"forall": in_parallel, "reversed": parallel(after, is_reversed=True)[0]}
    if not report.parallel_loops:
        forms = {"for": left_as_linalg(after, named=True)[0]}
    try:
        found = {name: compiled(text)(arguments) for name, text in forms.items()}
    except compiler.tools.CompilerToolError:  # refused shapes, a circular dependency in its own schedule
        return [], 0
    wrong = [name for name, given in found.items() if not all(map(np.array_equal, expected, given))]
    return wrong, report.parallel_loops


def test_random_loops_compute_the_same_on_iree():
    """As `scf.forall`, and that from its end: the numbers are XLA's for the program without loops."""
    wrong, loops = differs(4)
    assert (wrong, loops > 0) == ([], True)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(20))
def test_many_random_loops_compute_the_same_on_iree(block):
    """The same for twenty programs; those that have no parallel loop as `scf.for`."""
    assert [seed for seed in range(20 * block, 20 * (block + 1)) if differs(seed)[0]] == []
