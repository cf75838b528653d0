"""models/train_step.py: its gradients against a loss without any indexing."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import assert_close, jitted, model

train = model("train_step.py")
TINY = train.Config(hidden=8, ffn=8, vocab=11, length=6, batch=3, learning_rate=0.1)


def loss_without_indexing(params, tokens, config):
    """The cross-entropy with products of one-hot rows in place of every lookup: its gradient has no scatter."""
    inputs, labels = (jax.nn.one_hot(t, config.vocab) for t in (tokens[:, :-1], tokens[:, 1:]))
    x = inputs @ params["embedding"] + params["positions"]
    for layer in params["layers"]:
        x = x + train.attention(layer, x, config)
        x = x + jax.nn.gelu(train.norm(x, layer["ffn_norm"]) @ layer["w_up"]) @ layer["w_down"]
    head = params["embedding"].T if config.tied_head else params["head"]
    log_probs = jax.nn.log_softmax(train.norm(x, params["norm"]) @ head)
    return -jnp.mean(jnp.sum(labels * log_probs, axis=-1))


def graded(params, tokens, config):
    """That loss and its gradient."""
    return jax.value_and_grad(loss_without_indexing)(params, tokens, config=config)


@cache
def reference(config):
    """Weights, tokens of which some occur several times, and the loss and its gradient without indexing."""
    generator = np.random.default_rng(0)
    params = jax.tree.map(
        lambda s: jnp.asarray(generator.normal(size=s.shape) * 0.5, s.dtype), train.param_specs(config)
    )
    tokens = generator.integers(0, config.vocab, (config.batch, config.length + 1))
    assert len(np.unique(tokens)) < tokens.size
    return params, tokens, *jitted(graded, config)(params, tokens)


@pytest.mark.parametrize("tied_head", [False, True])
def test_a_step_of_sgd_follows_the_gradient(tied_head):
    """Weights move by the learning rate times the gradient, summed over equal tokens, from which all scatters come."""
    config = dataclasses.replace(TINY, tied_head=tied_head)
    params, tokens, expected_loss, gradients = reference(config)
    loss, updated = jitted(train.sgd, config)(params, tokens)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    moved = jax.tree.map(lambda before, after: (before - after) / config.learning_rate, params, updated)
    assert_close(moved, gradients, 1e-3, 1e-5)
    assert np.abs(gradients["embedding"]).max() > 1e-2
    assert "scatter" not in jitted(train.loss_of, config).lower(params, tokens).as_text()


def test_a_step_of_adam_is_adam():
    """From a state that is not zero, weights and state follow the formulas of the paper, bias correction included."""
    params, tokens, _, gradients = reference(TINY)
    generator = np.random.default_rng(1)

    def some(leaf):
        return np.abs(generator.normal(size=leaf.shape)).astype(np.float32) * 0.1

    state = {"count": jnp.int32(3), "mean": jax.tree.map(some, params), "square": jax.tree.map(some, params)}
    _, updated, new_state = jitted(train.adam, TINY)(params, state, tokens)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], gradients)
    expected = jax.tree.map(
        lambda w, m, s: w - 0.1 * (m / (1 - 0.9**4)) / (np.sqrt(s / (1 - 0.999**4)) + 1e-8), params, mean, square
    )
    assert new_state["count"] == 4
    assert_close((updated, new_state["mean"], new_state["square"]), (expected, mean, square), 1e-3, 1e-5)


def test_steps_lower_the_loss():
    """Twenty steps on the same tokens learn some of them."""
    params, tokens, *_ = reference(TINY)
    losses = []
    for _ in range(20):
        loss, params = jitted(train.sgd, TINY)(params, tokens)
        losses.append(float(loss))
    assert losses[-1] < 0.8 * losses[0]
