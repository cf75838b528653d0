"""models/sampling.py: its penalties, masks and draws against NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import model

sampling = model("sampling.py")
TINY = sampling.Config(batch=3, vocab=10, top_k=3, top_p=0.7)
PAD = TINY.vocab
LOGITS = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32) * 2
HISTORY = np.array([[1, 4, 4, 4, PAD], [0, 9, 0, 2, 7], [3, PAD, PAD, PAD, PAD]])
BANNED, SUPPRESSED = np.array([[5, 6], [0, PAD], [PAD, PAD]]), np.array([2, 8])
COUNTS = np.stack([np.bincount(row[row != PAD], minlength=10) for row in HISTORY])


def test_repeated_and_frequent_tokens_are_penalized():
    """A repeated token's logit is changed once, a frequent one's by its count; padding touches nothing."""
    expected = np.where(COUNTS > 0, np.where(LOGITS < 0, LOGITS * 1.2, LOGITS / 1.2), LOGITS)
    actual = sampling.penalize_repetition(jnp.asarray(LOGITS), HISTORY, TINY)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert (expected[actual != LOGITS] < 0).any()
    assert COUNTS.max() == 3
    actual = sampling.penalize_frequency(jnp.asarray(LOGITS), HISTORY, TINY)
    np.testing.assert_allclose(actual, LOGITS - 0.1 * COUNTS, rtol=1e-5)


def test_banned_and_suppressed_tokens_never_come():
    """A ban lowers a logit of its own row and raises none; a suppressed token is out in every row."""
    logits = jnp.asarray(LOGITS).at[0, 5].set(-jnp.inf)
    expected = np.array(logits)
    expected[0, 6] = expected[1, 0] = -1e4
    np.testing.assert_array_equal(sampling.ban(logits, BANNED), expected)
    expected[:, SUPPRESSED] = -np.inf
    np.testing.assert_array_equal(sampling.suppress(sampling.ban(logits, BANNED), SUPPRESSED), expected)


def test_top_k_keeps_the_highest():
    third = np.sort(LOGITS, axis=-1)[:, [-3]]
    actual = sampling.keep_top_k(jnp.asarray(LOGITS), TINY)
    np.testing.assert_array_equal(actual, np.where(third <= LOGITS, LOGITS, -np.inf))


@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.7, 0.95, 1.0])
def test_top_p_keeps_the_shortest_head(top_p):
    """Kept are the likeliest tokens, as few as reach top_p together; always one, and all of them at 1."""
    kept = np.zeros(LOGITS.shape, bool)
    for row, p in enumerate(np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)):
        total = 0.0
        for token in np.argsort(-p):
            if total < top_p:
                kept[row, token] = True
            total += p[token]
    actual = sampling.keep_top_p(jnp.asarray(LOGITS), dataclasses.replace(TINY, top_p=top_p))
    np.testing.assert_array_equal(actual, np.where(kept, LOGITS, -np.inf))


def test_a_draw_follows_the_probabilities():
    """Drawn tokens have the softmax's frequencies; one that is out never comes, whatever the noise."""
    row = jnp.where(jnp.arange(10) == 4, -jnp.inf, LOGITS[0])
    noise = np.random.default_rng(1).uniform(size=(20000, 10)).astype(np.float32)
    tokens = sampling.draw(jnp.broadcast_to(row, noise.shape), noise)
    np.testing.assert_allclose(np.bincount(tokens, minlength=10) / 20000, jax.nn.softmax(row), atol=0.015)
    assert not np.any(tokens == 4)
    for end in (0, 1 - 2**-24):
        assert int(sampling.draw(jnp.array([[0.0, -jnp.inf, 1.0]]), jnp.full((1, 3), np.float32(end)))[0]) == 2


def test_the_samplers_draw_from_the_changed_logits():
    """Each sampler gives the logits after its own changes, and the token that the noise draws from them."""
    noise = np.random.default_rng(2).uniform(size=LOGITS.shape).astype(np.float32)
    logits = jnp.asarray(LOGITS)
    probabilities = np.array(jax.nn.softmax(logits / 0.8, axis=-1)) * 0.5**COUNTS
    penalized = sampling.penalize_frequency(sampling.penalize_repetition(logits, HISTORY, TINY), HISTORY, TINY)
    expected = {
        "greedy": (sampling.suppress(sampling.ban(penalized, BANNED), SUPPRESSED), HISTORY, BANNED, SUPPRESSED),
        "sample_top_k": (sampling.keep_top_k(logits, TINY) / 0.8, noise),
        "sample_top_p": (sampling.keep_top_p(logits / 0.8, TINY), noise),
        "sample_fresh": (np.log(probabilities), HISTORY, noise),
    }
    for name, (changed, *arguments) in expected.items():
        tokens, actual = getattr(sampling, name)(logits, *arguments, config=TINY)
        np.testing.assert_allclose(actual, changed, rtol=1e-5)
        chosen = changed if name == "greedy" else changed - np.log(-np.log(noise))
        np.testing.assert_array_equal(tokens, np.argmax(chosen, axis=-1))
