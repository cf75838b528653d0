"""models/train_step.py: its gradients against a loss without any indexing, and the scatters that its exports hold."""

import dataclasses
import functools
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

train = load_function(f"{Path(__file__).parents[2]}/models/train_step.py:sgd").module
TINY = train.Config(hidden=8, ffn=8, vocab=11, length=6, batch=3, learning_rate=0.1)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
sgd = jax.jit(train.sgd, static_argnames="config", compiler_options=QUICKLY)


def _setup(config):
    """Weights, and tokens of which some occur several times."""
    generator = np.random.default_rng(0)
    params = jax.tree.map(
        lambda s: jnp.asarray(generator.normal(size=s.shape) * 0.5, s.dtype), train.param_specs(config)
    )
    tokens = generator.integers(0, config.vocab, (config.batch, config.length + 1))
    assert len(np.unique(tokens)) < tokens.size
    return params, tokens


def _loss_without_indexing(params, tokens, config):
    """The cross-entropy with products of one-hot rows in place of every lookup: its gradient has no scatter."""
    inputs, labels = (jax.nn.one_hot(t, config.vocab) for t in (tokens[:, :-1], tokens[:, 1:]))
    x = inputs @ params["embedding"] + params["positions"]
    for layer in params["layers"]:
        x = x + train.attention(layer, x, config)
        x = x + jax.nn.gelu(train.norm(x, layer["ffn_norm"]) @ layer["w_up"]) @ layer["w_down"]
    head = params["embedding"].T if config.tied_head else params["head"]
    log_probs = jax.nn.log_softmax(train.norm(x, params["norm"]) @ head)
    return -jnp.mean(jnp.sum(labels * log_probs, axis=-1))


@functools.cache
def _reference(config):
    """Weights, tokens, and the loss and its gradient without indexing."""
    params, tokens = _setup(config)
    graded = jax.jit(jax.value_and_grad(partial(_loss_without_indexing, config=config)), compiler_options=QUICKLY)
    return params, tokens, *graded(params, tokens)


def _assert_close(actual, expected):
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("tied_head", [False, True])
def test_a_step_of_sgd_follows_the_gradient(tied_head):
    """The weights move by the learning rate times the gradient, the embedding's summed over equal tokens."""
    config = dataclasses.replace(TINY, tied_head=tied_head)
    params, tokens, expected_loss, gradients = _reference(config)
    loss, updated = sgd(params, tokens, config=config)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    moved = jax.tree.map(lambda before, after: (before - after) / config.learning_rate, params, updated)
    _assert_close(moved, gradients)
    assert np.abs(gradients["embedding"]).max() > 1e-2


def test_a_step_of_adam_is_adam():
    """From a state that is not zero, weights and state follow the formulas of the paper, bias correction included."""
    config = TINY
    params, tokens, _, gradients = _reference(config)
    generator = np.random.default_rng(1)

    def some(leaf):
        return np.abs(generator.normal(size=leaf.shape)).astype(np.float32) * 0.1

    state = {"count": jnp.int32(3), "mean": jax.tree.map(some, params), "square": jax.tree.map(some, params)}
    _, updated, new_state = jax.jit(partial(train.adam, config=config), compiler_options=QUICKLY)(params, state, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], gradients)
    expected = jax.tree.map(
        lambda w, m, s: w - 0.1 * (m / (1 - 0.9**4)) / (np.sqrt(s / (1 - 0.999**4)) + 1e-8), params, mean, square
    )
    assert new_state["count"] == 4
    _assert_close((updated, new_state["mean"], new_state["square"]), (expected, mean, square))


def test_steps_lower_the_loss():
    """Twenty steps on the same tokens learn some of them."""
    params, tokens = _setup(TINY)
    losses = []
    for _ in range(20):
        loss, params = sgd(params, tokens, config=TINY)
        losses.append(float(loss))
    assert losses[-1] < 0.8 * losses[0]


SMALL = {"hidden": 8, "ffn": 8, "vocab": 16, "length": 4}


@pytest.mark.parametrize("function", [pytest.param("sgd", marks=pytest.mark.sweep), "adam"])
def test_the_scatters_of_the_backward_pass_are_lowered(function, lowered_and_verified):
    """Three adding scatters: the gradients of the two tables, and that of take_along_axis."""
    records = lowered_and_verified(f"train_step.py:{function}", "regions", **SMALL)
    assert [r.kind for r in records] == ["reduction_add"] * 3
    assert sorted(r.operand_shape for r in records) == [(2, 4, 16), (4, 8), (16, 8)]


@pytest.mark.sweep
@pytest.mark.parametrize("function", ["sgd", "adam"])
def test_a_whole_step_computes_the_same(function, lowered_and_verified):
    """Loss, weights and optimizer state of the lowered step are those of the step, bit for bit."""
    lowered_and_verified(f"train_step.py:{function}", "full", **SMALL)


def test_the_forward_pass_has_no_scatter():
    """All scatters of a step come from its gradient."""
    params, tokens = _setup(TINY)
    text = jax.jit(partial(train.loss_of, config=TINY)).lower(params, tokens).as_text()
    assert "scatter" not in text
