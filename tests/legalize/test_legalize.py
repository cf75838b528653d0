"""chlo operations and custom calls are made plain, and nothing else is touched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from legalized import legalized, results
from untyped_mlir import module

from hlo_lower.base.causes import Code
from hlo_lower.base.change import Outcome
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.targets.target import Target
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond

ERF_UNITS = 4
"""XLA evaluates its own erf in f32 by another polynomial: 3.5 machine epsilons at most on 4,096 points of [-6, 6]."""

VERSION = "mhlo.attributes = {}, mhlo.version = 1 : i64"
CUSTOM = module(
    "%x: 4x8xf32",
    f"""%e = custom_call @mhlo.erf(%x) {{{VERSION}}} -> 4x8xf32
  %t:2 = custom_call @mhlo.topk(%x) {{
    mhlo.attributes = {{k = 3 : i64, largest = true}}, mhlo.version = 1 : i64}} -> (4x3xf32, 4x3xi32)""",
    "%e, %t#0, %t#1",
)
X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32) * 3


def call(name, attributes=VERSION):
    """A module with one custom call of one operand."""
    return module("%x: 4xf32", f"%r = custom_call @{name}(%x) {{{attributes}}} -> 4xf32")


SAYING_NOTHING = f'{VERSION}, has_side_effect = false, backend_config = "", called_computations = []'
KNOWN = [CUSTOM, *map(call, ("mhlo.tan", "mhlo.asin", "mhlo.sinh")), call("mhlo.erf", SAYING_NOTHING)]


@pytest.mark.parametrize("text", [*KNOWN, module("%x: ?x8xf32", "%r = chlo.erf %x : ?x8xf32 -> ?x8xf32")])
def test_known_custom_calls_become_stablehlo(text):
    """Neither the custom call nor an operation of chlo or of shapes is left, and each is told as legalized; an empty
    configuration, no side effect and the default accuracy say nothing."""
    after, changes = legalized(text)
    assert not any(word in after for word in ("custom_call", "chlo.", "shape."))
    assert {Outcome.LEGALIZED} == {change.outcome for change in changes}


def test_custom_calls_compute_the_same():
    """top_k is the same bit for bit, with equal values and NaN in it; erf within the stated bound."""
    x = X.copy()
    x[0, 1] = x[0, 5] = 9.0
    x[1, 2], x[2, 3] = np.nan, -np.inf
    before, after = results(CUSTOM, x), results(legalized(CUSTOM)[0], x)
    assert first_difference(before[1:], after[1:]) is None
    bounds = [ERF_UNITS * element_type_of(before[0].dtype).epsilon * np.abs(before[0])]
    assert first_difference_beyond(before[:1], after[:1], bounds) is None
    assert first_difference_beyond(before[:1], [after[0] * np.float32(1 + 2e-6)], bounds) is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (call("mhlo.erf", f"{VERSION}, has_side_effect = true"), "has_side_effect"),
        (call("mhlo.erf", f'{VERSION}, backend_config = "fast"'), "backend_config"),
        (call("mhlo.erf", VERSION.replace("{}", "{inverse = true}")), "inverse"),
        (call("mhlo.erf", VERSION.replace("1", "2")), "version 2; only 1 is known"),
        (call("my.op"), "no op of StableHLO or CHLO is known for it"),
        (CUSTOM.replace("largest = true", "largest = false"), "it looks for the smallest values"),
    ],
)
def test_trap_52_a_custom_call_that_says_more_than_its_name_is_left(text, told):
    """A name is all that says what a custom call computes, so one that says more, or other things, is left and told."""
    after, changes = legalized(text)
    [left] = [change for change in changes if change.outcome is Outcome.LEFT]
    assert "custom_call" in after
    assert "module.mlir" in left.where
    assert told in str(left)


def test_what_a_target_takes_whole_is_kept():
    """Of several chlo operations those that the target names stay, under their types and places; the rest is plain."""
    text = CUSTOM.replace("return %e", "%2 = chlo.tan %x : tensor<4x8xf32> -> tensor<4x8xf32>\n    return %2")
    after, changes = legalized(text, Target("t", legalize=True, composites={"chlo.top_k"}))
    assert after.count("chlo.") == after.count("chlo.top_k") == 1
    assert "custom_call" not in after
    names = ("stablehlo.custom_call @mhlo.erf", "stablehlo.custom_call @mhlo.topk", "chlo.tan")
    assert {change.op: change.outcome for change in changes} == dict.fromkeys(names, Outcome.LEGALIZED)
    if jax.__version_info__ < (0, 10):
        return  # it does not run chlo operations
    assert first_difference(results(text, X)[1:], results(after, X)[1:]) is None


ERF = module("%x: 4xf32", "%r = chlo.erf %x : 4xf32 -> 4xf32")
SCATTER = jax.jit(lambda cache, row, at: cache.at[at].set(row, mode="drop", wrap_negative_indices=False)).lower(
    *(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (((8, 4), "float32"), ((4,), "float32"), ((), "int32")))
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ERF, [(Outcome.KEPT, Code.TAKEN_WHOLE("npu"))]),
        (call("Sharding", 'mhlo.sharding = "{replicated}"'), []),
        (SCATTER.as_text(), []),
    ],
    ids=["taken whole", "a note on placement", "a scatter"],
)
def test_what_is_no_obstacle_stays(text, told):
    """What is kept says who takes it; of scatters and of custom calls that say where a tensor lives nothing is said."""
    after, changes = legalized(text, Target("npu", legalize=True, composites={"chlo.erf"}))
    assert to_text(read(text, contained=False)) == after
    assert [(change.outcome, change.why) for change in changes] == told


def test_a_sharding_goes_over():
    """The sharding of an operation stands on the one that gives its result afterwards, and no mark is left."""
    after, _ = legalized(call("mhlo.erf", 'mhlo.attributes = {}, mhlo.sharding = "{replicated}"'))
    [sharded] = [line for line in after.splitlines() if "mhlo.sharding" in line]
    assert "stablehlo.clamp" in sharded
    assert "hlo_lower.sharded" not in after


def test_scatters_and_other_functions_keep_their_text():
    """Around a top_k a scatter keeps its location and place, and functions without chlo keep their text."""

    def step(cache, x, position):
        values, _ = lax.top_k(x, 4)
        return jax.jit(lambda c, v: c.at[position].set(v))(cache, values) + jnp.square(cache)

    shapes = [jax.ShapeDtypeStruct(s, d) for s, d in (((8, 4), "float32"), ((9,), "float32"), ((), "int32"))]
    graph = read(jax.jit(step).lower(*shapes))
    places, names = [str(graph.location(node)) for node in graph.scatters], list(graph.functions)
    after, changes = legalized(graph)
    assert changes
    assert "chlo." not in after
    assert places == [str(graph.location(node)) for node in graph.scatters] != []
    assert names == list(graph.functions)
