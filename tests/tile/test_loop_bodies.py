"""What stands in loops that tiling makes: loops of a scan, effects, dead ops, one position, windows that overhang."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tiles import LOGITS, are_verified, by_hand, live, module_of, prepared, with_loops
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import ENTERED, Dataflow
from hlo_lower.facts.memory.liveness import liveness, programs_at_peak
from hlo_lower.ir import mlir
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.cut import AxisLink, Boundary
from hlo_lower.ops.axes.op_axes import default_subset_rules, gather_piece
from hlo_lower.ops.purity import FUNCTIONS
from hlo_lower.testing import arguments_of, case_of_seed, module_text, reference
from hlo_lower.testing.fuzz.sensitivity import overhangs
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.emit.phases import Loop, LoopPlan, cut
from hlo_lower.tile.find.choose import choices
from hlo_lower.tile.find.labels import Core, Labels, core_of, label
from hlo_lower.tile.prepare.slice_hoisting import pull_up
from hlo_lower.verify.drive.indices import with_single_elements
from hlo_lower.verify.run import Executable


def test_a_loop_within_the_body_of_a_scan():
    """The scores of a layer are live in the scan's body; a loop over their rows is made there. For linalg it and the
    scan are `scf.for`. The scan itself is a boundary, which says that loops are made within it."""

    def layer(x, w):
        scores = jax.nn.softmax(jnp.einsum("td,sd->ts", x @ w, x), -1)
        return x + scores @ x, x

    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((48, 4), (3, 4, 4)))
    text = jax.jit(lambda x, weights: jax.lax.scan(layer, x, weights)).lower(*shapes).as_text()
    graph, program = prepared(text)
    [axes] = [program.axes(node) for node in program.nodes if node.name == "stablehlo.while"]
    assert isinstance(axes, Boundary)
    assert axes.reason == ENTERED
    outer, inner = programs_at_peak(program)
    assert (outer, liveness(outer).most >= 48 * 48 * 4) == (program, True)
    choice = next(c for c in choices(program, 4096) if c.program is inner)
    assert choice.plan.labels.core.seed.static_shape == (48, 48)
    after = with_loops(graph, choice)
    assert after.count("stablehlo.while") == text.count("stablehlo.while") + 1
    assert 2 * live(after) < live(text)
    assert are_verified(text, after)
    as_linalg = hl.lower(graph, target="linalg").text
    assert (as_linalg.count("scf.for"), "while" in as_linalg) == (2, False)


EFFECTS = {
    "custom_call": "stablehlo.custom_call @f(%0) {has_side_effect = true}",
    "all_reduce": """"stablehlo.all_reduce"(%0) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<0> : tensor<1x1xi64>}""",
    "collective_permute": '"stablehlo.collective_permute"(%0) {source_target_pairs = dense<0> : tensor<1x2xi64>}',
}


@pytest.mark.parametrize(("one", "other"), [("custom_call", "all_reduce"), ("collective_permute", "custom_call")])
def test_effects_keep_their_order(one, other):
    """What stands behind an op with effects and does not need it is not moved before it, though one loop would do."""
    text = module_of("effects.mlir")
    for word, op, operand in (("FIRST", one, "%sums"), ("SECOND", other, "%y")):
        text = text.replace(word, f"{EFFECTS[op].replace('%0', operand)} : (tensor<64xf32>) -> tensor<64xf32>")
    after = by_hand(text, 4, 0, 8)
    assert after.count("stablehlo.while") == 2
    assert after.index(f"stablehlo.{one}") < after.index(f"stablehlo.{other}")


DEAD = {
    "one": "%d = stablehlo.minimum %likely, %logits : tensor<24x96xf32>",
    "a chain": """%c = stablehlo.minimum %likely, %logits : tensor<24x96xf32>
  %d = stablehlo.transpose %c, dims = [1, 0] : (tensor<24x96xf32>) -> tensor<96x24xf32>
  %f = stablehlo.tanh %d : tensor<96x24xf32>""",
    "several results": "%d:2 = chlo.top_k(%likely, k = 3) : tensor<24x96xf32> -> (tensor<24x3xf32>, tensor<24x3xi32>)",
    "a reduction": """%d = stablehlo.reduce(%likely init: %zero) applies stablehlo.maximum across dimensions = [0]
    : (tensor<24x96xf32>, tensor<f32>) -> tensor<96xf32>""",
    "in a region": """%d = stablehlo.while(%i = %zero) : tensor<f32> cond {
      %p = stablehlo.compare LT, %i, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %m = stablehlo.minimum %likely, %logits : tensor<24x96xf32>
      stablehlo.return %i : tensor<f32>
    }""",
}
KEPT = "%d = stablehlo.custom_call @f(%likely) {has_side_effect = true} : (tensor<24x96xf32>) -> tensor<24x96xf32>"


def with_dead(ops):
    """The logits with ops that nothing uses."""
    return LOGITS.replace("  %sums =", f"  {ops}\n  %sums =")


def test_what_may_have_effects_has_no_rule_and_stays():
    """Every op that is computed piece by piece is a function; a sort whose comparison draws a number is none. A custom
    call with effects that nothing uses reads the whole of what a loop writes tile by tile."""
    assert set(default_subset_rules().by_axes) - FUNCTIONS == set()
    program = Dataflow(hl.read(module_of("random_order.mlir")), default_subset_rules())
    assert [program.axes(node) for node in program.nodes] == [Boundary("stablehlo.sort may have side effects")]
    after = by_hand(with_dead(KEPT), 5, 0, 8)
    assert "custom_call @f" in after
    assert "tensor<24x96xf32>" in after[after.index("stablehlo.while") :].splitlines()[0]


@pytest.mark.parametrize("what", DEAD)
@pytest.mark.parametrize("is_prepared", [True, False])
def test_what_nothing_uses_is_no_part_of_a_loop(what, is_prepared):
    """The loop stores no value for a dead op, and gives what the module without it gives."""
    after = by_hand(with_dead(DEAD[what]), 5, 0, 8, is_prepared=is_prepared)
    assert "UNKNOWN" not in after
    assert not is_prepared or "minimum" not in after
    assert after.count("stablehlo.while") == 1 + (what == "in a region" and not is_prepared)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s).astype("f4") for s in ((24, 8), (8, 96))]
    for one, other in zip(*(Executable(text, "exact").run(given) for text in (LOGITS, after)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


ROWS, SIZE, MODE = 4, 8, jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
CALLS = [(5, (0, 7, 3, 2)), (5, (-1, 8, -8, 20)), (-3, (9, -2, 0, 7)), (99, (8, 100, -100, 7))]
"""Where a slice begins, and the position in each row of it: within, at the edges and beyond."""


def picked_and_written(x, start, at, value):
    """Of some columns one element of each row is read, and one is added to."""
    part = jax.lax.dynamic_slice_p.bind(x, 0, start, slice_sizes=(ROWS, SIZE))
    read = jax.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    write = jax.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    added = jax.lax.scatter_add(part, at[:, None], value, write, mode=MODE)
    return added, jax.lax.gather(part, at[:, None], read, (1, 1), mode=MODE)


def expected(x, start, at, value):
    """The same in NumPy."""
    part = x[:, (first := np.clip(start, 0, x.shape[1] - SIZE)) : first + SIZE].copy()
    read = part[np.arange(ROWS), np.clip(at, 0, SIZE - 1)]
    for row in range(ROWS):
        if 0 <= at[row] < SIZE:
            part[row, at[row]] += value[row]
    return part, read


@pytest.mark.parametrize("is_clamped", [True, False])
def test_one_position_of_each_row_of_a_slice(is_clamped):
    """Row by row the slice, the gather and the scatter give what NumPy gives; without the clamp the gather does not."""
    rules = default_subset_rules().copy()
    if not is_clamped:
        assert rules.by_piece.pop("stablehlo.gather") is gather_piece
    x, value = np.arange(80, dtype="i4").reshape(ROWS, 20), np.array([100, 200, 300, 400], "i4")
    given = [(x, np.int32(start), np.array(at, "i4"), value) for start, at in CALLS]
    graph = hl.read(jax.jit(picked_and_written).lower(*given[0]).as_text())
    program = Dataflow(graph, rules)
    plan = cut(program, label(program, core_of(program, program.maker[program.terminator.operand(0)].result(), 1), 0))
    assert [len(loop.nodes) >= 3 for loop in plan.loops] == [True]
    emit(program, plan, Sizes(1, 1 << 20))
    run = Executable(to_text(graph), "default").run
    found = [[np.array_equal(*pair) for pair in zip(run(list(g)), expected(*g), strict=True)] for g in given]
    assert [right[0] for right in found] == [True] * len(CALLS)
    assert all(right[1] for right in found) is is_clamped


@pytest.mark.parametrize("is_unrolled", [True, False])
def test_one_position_after_the_other(is_unrolled):
    """Positions that go one by one into a slice of the module's own: what the first tile writes to is that slice."""

    def f(x, start, at, value):
        part = jax.lax.dynamic_slice_p.bind(x, start, slice_sizes=(16,))
        return jax.lax.scatter_add(part, at[:, None], value, jax.lax.ScatterDimensionNumbers((), (0,), (0,)), mode=MODE)

    x, value = np.arange(100, dtype="i4"), np.array([1000, 2000, 3000, 4000], "i4")
    calls = [(start, at) for start in (-5, 10, 99) for at in ((0, 15, 3, -1), (16, -20, 40, 5), (60, -1, 16, 99))]
    given = [(x, np.int32(start), np.array(at, "i4"), value) for start, at in calls]
    graph = hl.read(jax.jit(f).lower(*given[0]).as_text())
    program = Dataflow(graph, default_subset_rules())
    node = next(node for node in program.nodes if node.name == "stablehlo.scatter")
    labels = Labels(Core(node.result(), 1, frozenset(), frozenset()), steps=len(value))
    labels.axes[node] = next(axis for axis in program.axes(node).axes if axis.combine)
    emit(program, LoopPlan(labels, (Loop([node], [], [node]),)), Sizes(1, 1 << 20, is_unrolled))
    run = Executable(to_text(graph), "default").run
    for arguments, (start, at) in zip(given, calls, strict=True):
        part = x[(first := np.clip(start, 0, 84)) : first + 16].copy()
        for place, added in zip(at, value, strict=True):
            part[place : place + 1] += added * (0 <= place < 16)
        assert np.array_equal(part, run(list(arguments))[0])


def test_one_position_of_a_slice_pulled_up():
    """A gather of one position that comes to read a slice is clamped before it is pulled there."""

    def f(x, start, at):
        large = jax.lax.dynamic_slice_p.bind(x, start, slice_sizes=(64,)) * 3 + 1
        return jax.lax.gather(large, at[None], jax.lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode=MODE)

    x = np.arange(100, dtype="i4")
    graph = hl.read(jax.jit(f).lower(x, np.int32(0), np.int32(0)).as_text())
    assert pull_up(graph, least=1)
    run = Executable(to_text(graph), "default").run
    for at in (-5, 0, 63, 64, 90):
        assert run([x, np.int32(10), np.int32(at)])[0] == (10 + np.clip(at, 0, 63)) * 3 + 1


WINDOWS = {  # types of updates and indices, dimension numbers
    "runs of rows": ("6x3x4xf32", "6x1xi32", "window=[1, 2], to=[0], ivd=1"),
    "parts of rows": ("6x3xf32", "6x2xi32", "window=[1], inserted=[0], to=[0, 1], ivd=1"),
    "single rows": ("6x1x4xf32", "6x1xi32", "window=[1, 2], to=[0], ivd=1"),
}
"""Three rows from a row on; three of the four positions of a row from a position on; and one row."""

BOTH_POLICIES = pytest.mark.parametrize("oob", [pytest.param("xla", marks=pytest.mark.sweep), "spec"])


def overhanging(what):
    """A module of a scatter whose windows overhang, on lines 3 to 6; before it updates are computed, behind it rows."""
    updates, indices, numbers = WINDOWS[what]
    lines = f"%u = negate %x\n%s = scatter(%t, %i, %u) <{numbers}> {{assign}}\n%r = abs %s"
    return module(f"%t: 8x4xf32, %i: {indices}, %x: {updates}", lines)


@BOTH_POLICIES
@pytest.mark.parametrize(
    ("what", "line", "dim"),
    [
        pytest.param("runs of rows", 2, 0, id="updates in order", marks=pytest.mark.sweep),
        pytest.param("runs of rows", 2, 2, id="columns", marks=pytest.mark.sweep),
        pytest.param("parts of rows", 7, 0, id="rows that are indexed"),
    ],
)
def test_windows_that_overhang(what, line, dim, oob):
    """Cut along positions, a covered dim or an indexed one, a scatter drops what it dropped, under both policies."""
    after = by_hand(overhanging(what), line, dim, 2)
    assert "stablehlo.while" in after
    verdict = hl.verify(overhanging(what), after, oob=oob)
    assert verdict.ok, verdict.lines()
    assert verdict.module.status == "equal"


@pytest.mark.usefixtures("judged_by_runs")
@BOTH_POLICIES
def test_a_cut_of_what_overhangs_is_seen(oob):
    """A dim along which windows are placed is no axis: cut there, the judge sees it under both policies."""
    rules = default_subset_rules().copy()
    right = rules.by_axes["stablehlo.scatter"]
    rules.by_axes["stablehlo.scatter"] = lambda node: [*right(node), AxisLink((0, None, None), (0,))]
    text = overhanging("single rows")
    assert not hl.verify(text, by_hand(text, 7, 0, 2, rules=rules), level="regions", oob=oob).ok


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 400), marks=pytest.mark.sweep)], ids=str)
def test_single_elements_are_the_specification(seeds):
    """Scatters written out as single elements, run by XLA, give what the specification says where windows overhang."""
    count = 0
    for case in map(case_of_seed, seeds):
        given = arguments_of(case, 0)
        if case.region.captured_values or not overhangs(case, given):
            continue  # XLA takes no region that reads what stands around it
        text = with_single_elements(mlir.parse_module(module_text([case])))
        results = Executable(text, "quick").run(given.all)
        for result, wanted in zip(results, reference(case, given, "spec"), strict=True):
            np.testing.assert_array_equal(result, wanted)
        count += 1
    assert count


def test_slices_out_of_bounds_are_clamped():
    """A gather and a dynamic slice whose starts are out of bounds read the same when they are tiled."""
    text = module_of("out_of_bounds.mlir")
    for line, oob in ((5, "xla"), (8, "spec")):
        after = by_hand(text, line, 0, 2)
        assert "stablehlo.while" in after
        assert hl.verify(text, after, oob=oob, level="regions").ok
