"""Composites: kept whole, written out, or called, by name and attributes through the registry."""

import jax
import numpy as np
import pytest

from hlo_lower.base.change import Outcome
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.plain.composite import composite_facts
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.target import Target
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond

SHAPE = (3, 5, 7)
X = "tensor<3x5x7xf32>"
PLAIN = f"%e = stablehlo.exponential %x : {X}"
SHIFTED = f"""%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [AXIS]
      : ({X}, tensor<f32>) -> KEPT
    %n = stablehlo.broadcast_in_dim %m, dims = [DIMS] : (KEPT) -> {X}
    %d = stablehlo.subtract %x, %n : {X}
    %e = stablehlo.exponential %d : {X}"""


def softmax(axis=-1, name="odml.softmax", attributes=None, powers=SHIFTED, along=None):
    """A softmax as a composite; where the axis that it names is another one than its decomposition works along."""
    along = axis % 3 if along is None else along
    dims = [d for d in range(3) if d != along]
    given = f"composite_attributes = {{axis = {axis} : i64}}," if attributes is None else attributes
    total = f"stablehlo.add across dimensions = [{along}] : ({X}, tensor<f32>) -> KEPT"
    text = f"""module @attention {{
  func.func public @main(%x: {X}) -> {X} {{
    %0 = stablehlo.composite "{name}" %x {{{given} decomposition = @softmax.impl}} : ({X}) -> {X}
    return %0 : {X}
  }}
  func.func private @softmax.impl(%x: {X}) -> {X} {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    {powers.replace("AXIS", str(along))}
    %s = stablehlo.reduce(%e init: %zero) applies {total}
    %b = stablehlo.broadcast_in_dim %s, dims = [DIMS] : (KEPT) -> {X}
    %r = stablehlo.divide %e, %b : {X}
    return %r : {X}
  }}
}}
"""
    kept = "x".join(str(SHAPE[d]) for d in dims)
    return text.replace("KEPT", f"tensor<{kept}xf32>").replace("DIMS", ", ".join(map(str, dims)))


def changed(*pairs, **how):
    """A softmax with parts of its text replaced."""
    text = softmax(**how)
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


HOSTILE = np.stack(
    [
        np.full((5, 7), 200.0),
        np.where(np.arange(7) == 3, np.inf, -np.arange(35.0).reshape(5, 7)),
        np.where(np.arange(5)[:, None] == 1, -np.inf, np.where(np.arange(7) == 2, np.nan, 1e-30)),
    ]
).astype(np.float32)
"""Powers that overflow, an infinity, rows of minus infinities, NaN."""
ORDINARY = np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)
TAKING = Target("npu", composites={"odml.softmax"})


def assert_near(expected, actual, units):
    """Each element is within so many machine epsilons of what is expected."""
    bounds = [units * element_type_of(e.dtype).epsilon * np.abs(e) for e in expected]
    assert first_difference_beyond(expected, actual, bounds) is None


def test_it_is_kept_for_a_target_that_names_it(legalized):
    """A target with odml.softmax among its composites gets the module as it was, and that is told."""
    text = softmax()
    after, changes = legalized(text, Target("npu", legalize=True, composites={"odml.softmax"}))
    assert to_text(read(text, contained=False)) == after
    assert [change.outcome for change in changes] == [Outcome.KEPT]


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -3])
def test_it_is_written_out_in_the_stable_form(legalized, results, axis):
    """For other targets it becomes max, subtract, exp, sum and divide along its axis, and is right within the bound."""
    text = softmax(axis)
    after, _ = legalized(text)
    assert "composite" not in after
    assert "softmax.impl" not in after
    assert "stablehlo.maximum" in after
    assert_near(results(text, ORDINARY), results(after, ORDINARY), SHAPE[axis] + 8)


def test_hostile_rows(legalized, results):
    """Where an exponential of the argument itself overflows, the rule's form gives the softmax; a NaN, or a row of
    minus infinities, gives a row of NaN and no other."""
    after = legalized(softmax())[0]
    large = results(after, np.full(SHAPE, 200.0, np.float32))[0]
    np.testing.assert_allclose(large, np.full(SHAPE, 1 / 7), rtol=1e-6)
    x = np.zeros(SHAPE, np.float32)
    x[0, 0, 3], x[1, 1] = np.nan, -np.inf
    bad = np.isnan(results(after, x)[0])
    assert bad[0, 0].all()
    assert bad[1, 1].all()
    assert bad.sum() == 14


QUOTIENT = "%r = stablehlo.divide %e, %b"
ONE_MORE = f"%one = stablehlo.constant dense<1.0> : {X} %c = stablehlo.add %b, %one : {X} %r = stablehlo.divide %e, %c"
OTHERS = {
    "softmax plus one": changed((QUOTIENT, ONE_MORE)),
    "without the maximum": softmax(powers=PLAIN),
    "along another axis": softmax(-1, along=1),
    "of another start": changed(("dense<0.0>", "dense<1.0>")),
    "with a maximum above 0": changed(("0xFF800000", "0.0")),
    "of the negated argument": changed(("stablehlo.subtract %x, %n", "stablehlo.subtract %n, %x")),
    "a product": changed(("applies stablehlo.add", "applies stablehlo.multiply"), ("<0.0>", "<1.0>")),
    "upside down": changed(("divide %e, %b", "divide %b, %e")),
    "of the largest": changed(("divide %e, %b", "divide %d, %b")),
    "of two sums": changed(("reduce(%e init", "reduce(%d init")),
}
"""Decompositions under the name of a softmax that are none."""


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("target", [Target("plain", legalize=True), TAKING])
def test_trap_52_a_composites_decomposition_decides(legalized, results, name, target):
    """Anything else under the name of a softmax is called, whether the target takes that name or not."""
    after, [change] = legalized(OTHERS[name], target)
    assert "call @softmax.impl" in after
    assert "stablehlo.composite" not in after
    assert change.outcome is Outcome.LEGALIZED
    assert str(change).endswith("its decomposition is not seen to be a softmax along its axis")
    for x in (HOSTILE, ORDINARY):
        assert first_difference(results(OTHERS[name], x), results(after, x)) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("composite_attributes = {axis = -1 : i64}, version = 2 : i32,", "its version is 2"),
        ("composite_attributes = {axis = -1 : i64, beta = 2.0 : f32},", "attributes that are not known: beta"),
    ],
)
def test_trap_52_a_version_and_attributes_are_claims_too(legalized, given, reason):
    """A target is not given a composite of another version, or with attributes that say more; it is a softmax still."""
    after, [change] = legalized(softmax(attributes=given), TAKING)
    assert "stablehlo.composite" not in after
    assert "composite_to_softmax" in str(change)
    assert reason in str(change)


K = "tensor<3x5x1xf32>"
KEEPDIMS = f"""%m1 = stablehlo.reshape %m : (tensor<3x5xf32>) -> {K}
    %n0 = stablehlo.broadcast_in_dim %m1, dims = [0, 1, 2] : ({K}) -> {K}
    %n1 = stablehlo.reshape %n0 : ({K}) -> tensor<3x5xf32>
    %n = stablehlo.broadcast_in_dim %n1, dims = [0, 1]"""
FLOORED = """%lows = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<3x5xf32>
    %mm = stablehlo.maximum %lows, %m : tensor<3x5xf32>
    %n = stablehlo.broadcast_in_dim %mm, dims = [0, 1]"""
SPREAD, IMPL = "%n = stablehlo.broadcast_in_dim %m, dims = [0, 1]", "  func.func private @softmax.impl"
OUTER = f"""  func.func private @outer(%y: {X}) -> {X} {{
    %z = func.call @softmax.impl(%y) : ({X}) -> {X}
    return %z : {X}
  }}
"""
WRITTEN = {
    "as it is": softmax(),
    "kept dims, as PyTorch": changed((SPREAD, KEEPDIMS)),
    "a maximum with -inf, as JAX": changed((SPREAD, FLOORED)),
    "from the least number": changed(("0xFF800000", "0xFF7FFFFF")),
    "behind a barrier": changed(
        (QUOTIENT, f"%k = stablehlo.optimization_barrier %b : {X} %r = stablehlo.divide %e, %k")
    ),
    "powers made twice": changed((QUOTIENT, f"%f = stablehlo.exponential %d : {X} %r = stablehlo.divide %f, %b")),
    "behind a call": changed(("@softmax.impl}", "@outer}"), (IMPL, OUTER + IMPL)),
}
"""Decompositions that are a softmax, as exporters write them."""


@pytest.mark.parametrize("name", WRITTEN)
def test_the_forms_of_exporters_are_recognised(legalized, results, name):
    """Each is written out by the rule, and kept for a target that takes it; the results agree within the bound."""
    text = WRITTEN[name]
    after, [change] = legalized(text)
    assert "composite_to_softmax" in str(change)
    _, [kept] = legalized(text, TAKING)
    assert kept.outcome is Outcome.KEPT
    for x in (HOSTILE, ORDINARY):
        assert_near(results(text, x), results(after, x), 15)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("my.softmax", None),
        ("odml.softmax", ""),
        ("odml.softmax", "composite_attributes = {axis = 7 : i64},"),
        ("odml.softmax", 'composite_attributes = {axis = "last"},'),
    ],
)
def test_others_become_a_call(legalized, results, name, attributes):
    """Another name, no axis, one out of range or of another type: the decomposition is called, with the same result."""
    text = softmax(name=name, attributes=attributes)
    after, _ = legalized(text)
    assert "call @softmax.impl" in after
    assert first_difference(results(text, ORDINARY), results(after, ORDINARY)) is None


@pytest.mark.parametrize(
    ("dtype", "through", "is_one"),
    [
        ("bfloat16", "bfloat16", True),
        ("float16", "float32", True),
        ("float64", "float64", True),
        ("float64", "float32", False),  # rounded on the way it is another function
    ],
)
def test_jaxs_own_softmax_is_recognised(legalized, dtype, through, is_one):
    """What JAX exports of `jax.nn.softmax` is one, in the argument's type or in a wider one."""

    def own(x, axis):
        return jax.nn.softmax(x.astype(through), axis=int(axis)).astype(x.dtype)

    with jax.enable_x64(True):
        named = jax.lax.composite(own, "odml.softmax")
        given = jax.ShapeDtypeStruct((4, 1, 8), dtype)
        exported = jax.export.export(jax.jit(lambda x: named(x, axis=np.int64(0))))(given)
    after, [change] = legalized(exported.mlir_module())
    assert ("composite_to_softmax" in str(change)) is is_one
    assert ("call @odml.softmax" in after) is not is_one


def test_a_target_without_exponentials_gets_the_call(legalized):
    """A rule whose ops the target refuses is no candidate; the general one is left."""
    after, _ = legalized(softmax(), Target("t", legalize=True, refused={"stablehlo.exponential": ""}))
    assert "call @softmax.impl" in after


def test_the_call_is_what_jaxlib_makes(legalized):
    """The general rule gives what jaxlib's own pass gives."""
    text = softmax(name="my.softmax")
    graph = read(text, contained=False)
    mlir.run_pass(graph.main.node.raw, "func.func(stablehlo-legalize-composite-to-call)")
    assert to_text(graph) == legalized(text)[0]


def test_the_facts(registry):
    """Name, axis and element type are read from the composite; whether it is taken whole, from the target."""
    graph = read(softmax(1), contained=False)
    node = next(n for n in graph.main.body.nodes if n.name == COMPOSITE)
    facts = composite_facts(graph, node, whole={"odml.softmax"})
    told = [facts[name].value for name in ("name", "taken", "elements", "axis")]
    assert told == ["softmax", "whole", "float", "inner"]
    assert facts.axis_number == 1
    with pytest.raises(KeyError):
        facts["subset"]
    rule = registry.select(COMPOSITE, composite_facts(graph, node, whole=())).rule
    assert rule.name == "composite_to_softmax"
