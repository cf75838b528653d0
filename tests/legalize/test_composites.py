"""Composites: kept whole, written out, or called, by name and attributes through the registry."""

import jax
import numpy as np
import pytest
from jax import lax
from legalized import legalized, results

import hlo_lower as hl
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
ORDINARY = np.random.default_rng(4).standard_normal(SHAPE).astype(np.float32)
HOSTILE = np.stack(
    [
        np.full((5, 7), 200.0),
        np.where(np.arange(7) == 3, np.inf, -np.arange(35.0).reshape(5, 7)),
        np.where(np.arange(5)[:, None] == 1, -np.inf, np.where(np.arange(7) == 2, np.nan, 1e-30)),
    ]
).astype(np.float32)
"""Powers that overflow, an infinity, rows of minus infinities, NaN."""
TAKING = Target("npu", legalize=True, composites={"odml.softmax"})
LEAST, ZERO, ONE = np.float32(-np.inf), np.float32(0), np.float32(1)


def own(least=LEAST, zero=ZERO, add=lax.add, spread=lambda m: m, below=lax.sub, last=lambda d, e, total: e / total(e)):
    """A softmax step by step, each of which may be another one."""

    def steps(x, along):
        def as_wide(rows):
            return lax.broadcast_in_dim(rows, x.shape, [d for d in range(x.ndim) if d != along])

        d = below(x, as_wide(spread(lax.reduce(x, least, lax.max, (along,)))))
        return last(d, lax.exp(d), lambda values: as_wide(lax.reduce(values, zero, add, (along,))))

    return steps


def softmax(axis=-1, steps=None, along=None, name="odml.softmax", version=0, **attributes):
    """A softmax as a composite; where the axis that it names is another one than its decomposition works along."""
    along = np.arange(3)[axis] if along is None else along
    given = {} if axis is None else {"axis": np.int64(axis)}
    named = lax.composite(lambda x, **_: (steps or own())(x, int(along)), name, version=version)
    return hl.export(lambda x: named(x, **(given | attributes)), ORDINARY).mlir_module()


def assert_near(expected, actual, units):
    """Each element is within so many machine epsilons of what is expected."""
    bounds = [units * element_type_of(e.dtype).epsilon * np.abs(e) for e in expected]
    assert first_difference_beyond(expected, actual, bounds) is None


@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -3])
def test_it_is_written_out_in_the_stable_form(axis):
    """For other targets it becomes max, subtract, exp, sum and divide along its axis, and is right within the bound."""
    text = softmax(axis)
    after, _ = legalized(text)
    assert "stablehlo.composite" not in after
    assert "func private" not in after
    assert "stablehlo.maximum" in after
    assert_near(results(text, ORDINARY), results(after, ORDINARY), SHAPE[axis] + 8)


def test_hostile_rows():
    """Where an exponential of the argument itself overflows, the rule's form gives the softmax; a NaN, or a row of
    minus infinities, gives a row of NaN and no other."""
    after = legalized(softmax())[0]
    np.testing.assert_allclose(results(after, np.full(SHAPE, 200.0, np.float32))[0], np.full(SHAPE, 1 / 7), rtol=1e-6)
    x = np.zeros(SHAPE, np.float32)
    x[0, 0, 3], x[1, 1] = np.nan, -np.inf
    bad = np.isnan(results(after, x)[0])
    assert (bad[0, 0].all(), bad[1, 1].all(), bad.sum()) == (True, True, 14)


OTHERS = {
    "softmax plus one": {"steps": own(last=lambda d, e, total: e / (total(e) + 1))},
    "without the maximum": {"steps": own(below=lambda x, m: x)},
    "along another axis": {"along": 1},
    "of another start": {"steps": own(zero=ONE)},
    "with a maximum above 0": {"steps": own(least=ZERO)},
    "of the negated argument": {"steps": own(below=lambda x, m: m - x)},
    "a product": {"steps": own(add=lax.mul)},
    "upside down": {"steps": own(last=lambda d, e, total: total(e) / e)},
    "of the largest": {"steps": own(last=lambda d, e, total: d / total(e))},
    "of two sums": {"steps": own(last=lambda d, e, total: e / total(d))},
}
"""Decompositions under the name of a softmax that are none."""


@pytest.mark.parametrize("name", OTHERS)
def test_trap_52_a_composites_decomposition_decides(name):
    """Anything else under the name of a softmax is called, whether the target takes that name or not."""
    text = softmax(**OTHERS[name])
    for target in (TAKING, Target("plain", legalize=True)):
        after, [change] = legalized(text, target)
        assert "call @odml.softmax" in after
        assert "stablehlo.composite" not in after
        assert change.outcome is Outcome.LEGALIZED
        assert str(change).endswith("its decomposition is not recognised as a softmax along its axis")
    for x in (HOSTILE, ORDINARY):
        assert first_difference(results(text, x), results(after, x)) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"version": 2}, "its version is 2"), ({"beta": np.float32(2)}, "unknown attributes: beta")],
)
def test_trap_52_a_version_and_attributes_are_claims_too(given, reason):
    """A target is not given a composite of another version, or with attributes that say more; it is a softmax still."""
    after, [change] = legalized(softmax(**given), TAKING)
    assert "stablehlo.composite" not in after
    assert "composite_to_softmax" in str(change)
    assert reason in str(change)


WRITTEN = {
    "as it is": None,
    "kept dims, as PyTorch": own(spread=lambda m: m.reshape(3, 5, 1).reshape(3, 5)),
    "a maximum with -inf, as JAX": own(spread=lambda m: lax.max(LEAST, m)),
    "from the least number": own(least=np.finfo(np.float32).min),
    "behind a barrier": own(last=lambda d, e, total: e / lax.optimization_barrier(total(e))),
    "powers made twice": own(last=lambda d, e, total: lax.exp(d) / total(e)),
    "behind a call": jax.jit(own(), static_argnums=1),
}
"""Decompositions that are a softmax, as exporters write them."""


@pytest.mark.parametrize("name", WRITTEN)
def test_the_forms_of_exporters_are_recognised(name):
    """Each is written out by the rule, and kept as it was for a target that takes it; the results are near."""
    text = softmax(steps=WRITTEN[name])
    after, [change] = legalized(text)
    assert "composite_to_softmax" in str(change)
    same, [kept] = legalized(text, TAKING)
    assert (same, kept.outcome) == (to_text(read(text, contained=False)), Outcome.KEPT)
    for x in (HOSTILE, ORDINARY):
        assert_near(results(text, x), results(after, x), 15)


CALLED = {
    "of another name": {"name": "my.softmax"},
    "of no axis": {"axis": None, "along": 2},
    "of an axis out of range": {"axis": 7, "along": 1},
    "of an axis of another type": {"axis": None, "along": 2, "axis_": "last"},
}


@pytest.mark.parametrize("how", CALLED)
def test_others_become_a_call(how):
    """Another name, or no axis that there is: the decomposition is called, as by jaxlib's own pass."""
    text = softmax(**CALLED[how]).replace("axis_", "axis")
    after, _ = legalized(text)
    graph = read(text, contained=False)
    mlir.run_pass(graph.main.node.raw, "func.func(stablehlo-legalize-composite-to-call)")
    assert (to_text(graph), "call @" in after) == (after, True)
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
def test_jaxs_own_softmax_is_recognised(dtype, through, is_one):
    """What JAX exports of `jax.nn.softmax` is one, in the argument's type or in a wider one."""

    def jaxs(x, axis):
        return jax.nn.softmax(x.astype(through), axis=int(axis)).astype(x.dtype)

    with jax.enable_x64(True):
        named = lax.composite(jaxs, "odml.softmax")
        exported = hl.export(lambda x: named(x, axis=np.int64(0)), jax.ShapeDtypeStruct((4, 1, 8), dtype))
    after, [change] = legalized(exported.mlir_module())
    assert ("composite_to_softmax" in str(change), "call @odml.softmax" in after) == (is_one, not is_one)


def test_a_target_without_exponentials_gets_the_call():
    """A rule whose ops the target refuses is no candidate; the general one is left."""
    after, _ = legalized(softmax(), Target("t", legalize=True, refused={"stablehlo.exponential": ""}))
    assert "call @odml.softmax" in after


def test_the_facts():
    """Name, axis and element type are read from the composite; whether it is taken whole, from the target."""
    graph = read(softmax(1), contained=False)
    node = next(n for n in graph.main.body.nodes if n.name == COMPOSITE)
    facts = composite_facts(graph, node, whole={"odml.softmax"})
    told = [facts[name].value for name in ("name", "taken", "elements", "axis")]
    assert told == ["softmax", "whole", "float", "inner"]
    assert facts.axis_number == 1
    with pytest.raises(KeyError):
        facts["subset"]
