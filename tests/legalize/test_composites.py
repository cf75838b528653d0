"""Composites: kept whole, written out, or called, by name and attributes through the registry."""

import numpy as np
import pytest

from hlo_lower import mlir
from hlo_lower.graph import read, to_text
from hlo_lower.legalize import Outcome
from hlo_lower.lowerings.composite import COMPOSITE, composite_facts
from hlo_lower.targets import Target
from hlo_lower.verify.compare import epsilon, first_difference, first_difference_beyond

MODULE = """\
module @attention {
  func.func public @main(%x: tensor<3x5x7xf32>) -> tensor<3x5x7xf32> {
    %0 = stablehlo.composite "NAME" %x {ATTRIBUTES decomposition = @softmax.impl} : (tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
    return %0 : tensor<3x5x7xf32>
  }
  func.func private @softmax.impl(%x: tensor<3x5x7xf32>) -> tensor<3x5x7xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %e = stablehlo.exponential %x : tensor<3x5x7xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [AXIS] : (tensor<3x5x7xf32>, tensor<f32>) -> tensor<KEPTxf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [DIMS] : (tensor<KEPTxf32>) -> tensor<3x5x7xf32>
    %r = stablehlo.divide %e, %b : tensor<3x5x7xf32>
    return %r : tensor<3x5x7xf32>
  }
}
"""  # noqa: E501 (one op, one line)


def softmax(axis=-1, name="odml.softmax", attributes=None):
    """A softmax as a composite, its decomposition without the maximum."""
    dims = [d for d in range(3) if d != axis % 3]
    given = f"composite_attributes = {{axis = {axis} : i64}}," if attributes is None else attributes
    text = MODULE.replace("NAME", name).replace("ATTRIBUTES", given).replace("AXIS", str(axis % 3))
    return text.replace("KEPT", "x".join(str((3, 5, 7)[d]) for d in dims)).replace("DIMS", ", ".join(map(str, dims)))


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
    x = np.random.default_rng(1).standard_normal((3, 5, 7)).astype(np.float32)
    units = (3, 5, 7)[axis] + 8
    expected = results(text, x)
    bounds = [units * epsilon(e.dtype) * np.abs(e) for e in expected]
    assert first_difference_beyond(expected, results(after, x), bounds) is None


def test_the_stable_form_survives_large_values(legalized, results):
    """Where the decomposition without a maximum overflows to NaN, the rule's form gives the softmax."""
    x = np.full((3, 5, 7), 200.0, np.float32)
    assert bool(np.isnan(results(softmax(), x)[0]).all())
    np.testing.assert_allclose(results(legalized(softmax())[0], x)[0], np.full((3, 5, 7), 1 / 7), rtol=1e-6)


def test_a_nan_poisons_its_row_and_no_other(legalized, results):
    """A NaN, or a row of minus infinities, gives a row of NaN; other rows are finite."""
    x = np.zeros((3, 5, 7), np.float32)
    x[0, 0, 3], x[1, 1] = np.nan, -np.inf
    bad = np.isnan(results(legalized(softmax())[0], x)[0])
    assert bool(bad[0, 0].all())
    assert bool(bad[1, 1].all())
    assert int(bad.sum()) == 14


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
    x = np.random.default_rng(2).standard_normal((3, 5, 7)).astype(np.float32)
    assert first_difference(results(text, x), results(after, x)) is None


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
    facts = composite_facts(node, whole={"odml.softmax"})
    told = [facts[name].value for name in ("name", "taken", "elements", "axis")]
    assert told == ["softmax", "whole", "float", "inner"]
    assert facts.axis_number == 1
    with pytest.raises(KeyError):
        facts["subset"]
    rule = registry.select(COMPOSITE, composite_facts(node, whole=()), Target("t")).rule
    assert rule.name == "composite_to_softmax"
