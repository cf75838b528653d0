"""What is written for Core ML: named ops in the place of forms that its passes do not find, of the same meaning."""

import sys
from dataclasses import replace
from math import erf, pi, sqrt
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_spelled import composites, text_of

import hlo_lower as hl
from hlo_lower.targets import target_of
from hlo_lower.targets.named_op import SpelledAttribute
from hlo_lower.verify.run import Executable

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from recall.meaning import composites_of, drawn, entered

X, W = (2, 3, 8), (8,)


def centred(x, axes=-1):
    """Without its mean, and the mean of what is left, squared."""
    left = x - x.mean(axes, keepdims=True)
    return left, (left * left).mean(axes, keepdims=True)


def by_root(x, w, b):
    """A layer norm that divides."""
    left, variance = centred(x)
    return left / jnp.sqrt(variance + 1e-3) * w + b


def of_two_axes(x, w):
    """A layer norm of two axes with a weight."""
    left, variance = centred(x, (1, 2))
    return left * jax.lax.rsqrt(variance + 1e-5) * w


def fast_variance(x, w, b):
    """A layer norm whose variance is a difference of means."""
    mean = x.mean(-1, keepdims=True)
    variance = jnp.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0.0)
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * w) + b


WRITTEN = {
    "layer norm by a root": ("layer_norm", by_root, (X, W, W)),
    "layer norm of two axes": ("layer_norm", of_two_axes, (X, X[1:])),
    "layer norm, fast": ("layer_norm", fast_variance, (X, W, W)),
    "layer norm without weights": ("layer_norm", lambda x: centred(x)[0] * jax.lax.rsqrt(centred(x)[1] + 1e-5), (X,)),
    "gelu": ("gelu", lambda x: jax.nn.gelu(x, approximate=False), (X,)),
    "gelu by tanh": ("gelu", jax.nn.gelu, (X,)),
    "gelu by a sigmoid": ("gelu", lambda x: x * jax.nn.sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x**3)), (X,)),
    "silu": ("silu", jax.nn.silu, (X,)),
}


def layer_norm_there(x, *weights, normalized_shape, epsilon, weight):
    """MIL's `layer_norm` over the last axes, and what is done with weights that it does not take."""
    left, variance = centred(x, tuple(range(-len(normalized_shape), 0)))
    result, given = left / np.sqrt(variance + epsilon), list(weights)
    result = result * given.pop(0) if weight != "none" else result
    return result + given.pop() if given else result


def gelu_there(x, *, mode):
    """MIL's `gelu`."""
    if mode == "EXACT":
        return x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2
    assert mode == "TANH_APPROXIMATION"
    return x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2


def silu_there(x):
    """MIL's `silu`."""
    return x / (1 + np.exp(-x))


THERE = {"layer_norm": layer_norm_there, "gelu": gelu_there, "silu": silu_there}


def found_and_wanted(raised):
    """What the decomposition of the one composite of a module gives, and what the op there gives."""
    [composite] = composites_of(raised)
    alone = Executable(entered(raised, composite.function), "exact")
    given = [drawn(spec, n) for n, spec in enumerate(alone.arguments)]
    [found] = alone.run(given)
    there = THERE[composite.op.removeprefix("coreml.")]
    return np.asarray(found), there(*(np.asarray(x, np.float64) for x in given), **composite.attributes)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_the_op_of_core_ml(name):
    """Operands stand in their places and attributes mean there what the module computes."""
    op, function, shapes = WRITTEN[name]
    raised = hl.raise_named(text_of(function, *shapes), target="coreml").text
    assert composites(raised) == [f"coreml.{op}"]
    np.testing.assert_allclose(*found_and_wanted(raised), rtol=1e-4, atol=1e-5)


WRONG = {
    "layer norm by a root": {"epsilon": SpelledAttribute(value=0.5, type="f32")},
    "layer norm, fast": {"operands": ("x", "[bias]", "[weight]")},
    "gelu": {"mode": SpelledAttribute(value="TANH_APPROXIMATION")},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry_is_found(name):
    """The comparison can fail: another epsilon, operands in another order, or another form of gelu."""
    op, function, shapes = WRITTEN[name]
    coreml = target_of("coreml")
    [right] = [one for one in coreml.named if one.op == op]
    changed = dict(WRONG[name])
    operands = changed.pop("operands", right.operands)
    wrong = replace(right, operands=operands, attributes={**right.attributes, **changed})
    raised = hl.raise_named(text_of(function, *shapes), target=replace(coreml, named=(wrong,))).text
    found, wanted = found_and_wanted(raised)
    assert not np.allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_nothing_else_is_computed():
    """The module with the composite is the one without, bit for bit."""
    before = text_of(by_root, X, W, W)
    assert hl.verify(before, hl.raise_named(before, target="coreml").text, level="regions").ok


def test_a_norm_of_other_axes_is_plain_ops():
    """MIL's norm is of the last axes: one of the first is written out, and a reason is told."""
    raised = hl.raise_named(text_of(lambda x: centred(x, 0)[0] / jnp.sqrt(centred(x, 0)[1] + 1e-5), X), target="coreml")
    assert composites(raised.text) == []
    assert any("the last axes" in str(one.why) for one in raised.spelled)


def test_what_is_written_is_kept_by_a_conversion():
    """A conversion for Core ML leaves the composites as they are; each has its handler."""
    from hlo_lower.consumers.coreml_named import HANDLERS

    raised = hl.raise_named(text_of(by_root, X, W, W), target="coreml")
    assert composites(hl.lower(raised.text, target="coreml").text) == ["coreml.layer_norm"]
    coreml = target_of("coreml")
    assert {one.composite for one in coreml.named} == set(HANDLERS) <= set(coreml.composites)
