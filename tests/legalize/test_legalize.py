"""chlo operations and custom calls are made plain, and nothing else is touched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rewrites import main

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Outcome
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.targets.target import Target
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond

ERF_UNITS = 4
"""XLA evaluates its own erf in f32 by another polynomial: 3.5 machine epsilons at most on 4,096 points of [-6, 6]."""

M, V, K = "tensor<4x8xf32>", "tensor<4xf32>", "tensor<4x3xf32>, tensor<4x3xi32>"
CUSTOM = main(
    f"%x: {M}",
    f"""%0 = stablehlo.custom_call @mhlo.erf(%x) {{mhlo.attributes = {{}}, mhlo.version = 1 : i64}} : ({M}) -> {M}
  %1:2 = stablehlo.custom_call @mhlo.topk(%x) {{
    mhlo.attributes = {{k = 3 : i64, largest = true}}, mhlo.version = 1 : i64}} : ({M}) -> ({K})""",
    f"%0, %1#0, %1#1 : {M}, {K}",
)
SAYING_NOTHING = 'has_side_effect = false, backend_config = "", called_computations = []'


def call(name, attributes="mhlo.attributes = {}, mhlo.version = 1 : i64"):
    """A module with one custom call of one operand."""
    return main(f"%x: {V}", f"%0 = stablehlo.custom_call @{name}(%x) {{{attributes}}} : ({V}) -> {V}", f"%0 : {V}")


@pytest.mark.parametrize(
    "text",
    [
        *(CUSTOM, call("mhlo.tan"), call("mhlo.asin"), call("mhlo.sinh")),
        call("mhlo.erf", f"mhlo.attributes = {{}}, mhlo.version = 1 : i64, {SAYING_NOTHING}"),
    ],
)
def test_known_custom_calls_become_stablehlo(legalized, text):
    """Neither the custom call nor a chlo operation is left, and each is told as legalized; an empty configuration, no
    side effect and the default accuracy say nothing."""
    after, changes = legalized(text)
    assert "custom_call" not in after
    assert "chlo." not in after
    assert {Outcome.LEGALIZED} == {change.outcome for change in changes}


def test_custom_calls_compute_the_same(legalized, results):
    """top_k is the same bit for bit, with equal values and NaN in it; erf within the stated bound."""
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32) * 3
    x[0, 1] = x[0, 5] = 9.0
    x[1, 2], x[2, 3] = np.nan, -np.inf
    before, after = results(CUSTOM, x), results(legalized(CUSTOM)[0], x)
    assert first_difference(before[1:], after[1:]) is None
    bounds = [ERF_UNITS * element_type_of(before[0].dtype).epsilon * np.abs(before[0])]
    assert first_difference_beyond(before[:1], after[:1], bounds) is None
    assert first_difference_beyond(before[:1], [after[0] * np.float32(1 + 2e-6)], bounds) is not None


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ("mhlo.attributes = {}, mhlo.version = 1 : i64, has_side_effect = true", "has_side_effect"),
        ('mhlo.attributes = {}, mhlo.version = 1 : i64, backend_config = "fast"', "backend_config"),
        ("mhlo.attributes = {inverse = true}, mhlo.version = 1 : i64", "inverse"),
        ("mhlo.attributes = {}, mhlo.version = 2 : i64", "version 2, known is 1"),
    ],
)
def test_trap_52_a_custom_call_that_says_more_than_its_name_is_left(legalized, attributes, told):
    """A name is all that says what a custom call computes, so one that says more is left, and told why."""
    after, [change] = legalized(call("mhlo.erf", attributes))
    assert "custom_call @mhlo.erf" in after
    assert change.outcome is Outcome.LEFT
    assert told in str(change)


def test_what_a_target_takes_whole_is_kept(legalized, results):
    """Of several chlo operations those that the target names stay, under their types and places; the rest is plain."""
    text = CUSTOM.replace("return %0", f"%2 = chlo.tan %x : {M} -> {M}\n    return %2")
    after, changes = legalized(text, Target("t", legalize=True, composites={"chlo.top_k"}))
    assert after.count("chlo.") == after.count("chlo.top_k") == 1
    assert "custom_call" not in after
    names = ("stablehlo.custom_call @mhlo.erf", "stablehlo.custom_call @mhlo.topk", "chlo.tan")
    assert {change.op: change.outcome for change in changes} == dict.fromkeys(names, Outcome.LEGALIZED)
    if jax.__version_info__ < (0, 10):
        return  # it does not run chlo operations
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    before, now = results(text, x), results(after, x)
    assert first_difference(before[1:], now[1:]) is None
    assert first_difference([now[1] + 1], now[1:2]) is not None


def test_a_kept_operation_is_told_with_its_target(legalized):
    """What is kept says who takes it, and a module of nothing else is not touched."""
    text = main(f"%x: {V}", f"%0 = chlo.erf %x : {V} -> {V}", f"%0 : {V}")
    after, changes = legalized(text, Target("npu", legalize=True, composites={"chlo.erf"}))
    assert after == to_text(read(text, contained=False))
    assert [(change.outcome, change.why) for change in changes] == [(Outcome.KEPT, Code.TAKEN_WHOLE("npu"))]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (call("my.op"), Code.CALLS_UNKNOWN()),
        (call("mhlo.erf", "mhlo.version = 2 : i64"), Code.ENCODED_OTHERWISE(2)),
        (CUSTOM.replace("largest = true", "largest = false"), Code.TOP_K_OF_SMALLEST()),
    ],
)
def test_what_is_not_known_is_left_and_told(legalized, text, told):
    """An unknown custom call, another version of the encoding and a search for the smallest values stay as they are."""
    after, changes = legalized(text)
    [left] = [change for change in changes if change.outcome is Outcome.LEFT]
    assert "custom_call" in after
    assert told == left.why
    assert "module.mlir" in left.where


SCATTER = jax.jit(lambda cache, row, at: cache.at[at].set(row, mode="drop", wrap_negative_indices=False)).lower(
    *(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (((8, 4), "float32"), ((4,), "float32"), ((), "int32")))
)


@pytest.mark.parametrize("text", [call("Sharding", 'mhlo.sharding = "{replicated}"'), SCATTER.as_text()])
def test_what_is_plain_or_a_note_on_placement_stays(legalized, text):
    """Neither a scatter nor a custom call that only says where a tensor lives is an obstacle, and nothing is said."""
    after, changes = legalized(text)
    assert changes == ()
    assert to_text(read(text, contained=False)) == after


def test_a_sharding_goes_over(legalized):
    """The sharding of an operation stands on the one that gives its result afterwards, and no mark is left."""
    after, _ = legalized(call("mhlo.erf", 'mhlo.attributes = {}, mhlo.sharding = "{replicated}"'))
    [sharded] = [line for line in after.splitlines() if "mhlo.sharding" in line]
    assert "stablehlo.clamp" in sharded
    assert "hlo_lower.sharded" not in after


def test_scatters_and_other_functions_keep_their_text(legalize):
    """Around a top_k a scatter keeps its location and place, and functions without chlo keep their text."""

    def step(cache, x, position):
        values, _ = lax.top_k(x, 4)
        return jax.jit(lambda c, v: c.at[position].set(v))(cache, values) + jnp.square(cache)

    shapes = [jax.ShapeDtypeStruct(s, d) for s, d in (((8, 4), "float32"), ((9,), "float32"), ((), "int32"))]
    graph = read(jax.jit(step).lower(*shapes))
    places = [str(graph.location(node)) for node in graph.scatters]
    names = list(graph.functions)
    assert legalize(graph, Target("t", legalize=True))
    assert "chlo." not in to_text(graph)
    assert places == [str(graph.location(node)) for node in graph.scatters]
    assert places
    assert names == list(graph.functions)


def test_dynamic_shapes_leave_no_shape_operation(legalized):
    """The sizes that the pass computes in the shape dialect are made StableHLO, too."""
    x = "tensor<?x8xf32>"
    after, _ = legalized(main(f"%x: {x}", f"%0 = chlo.erf %x : {x} -> {x}", f"%0 : {x}"))
    assert "chlo." not in after
    assert "shape." not in after
