"""models/sampling.py: its penalties, masks and draws against NumPy, and the scatters that its exports hold."""

import dataclasses
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

sampling = load_function(f"{Path(__file__).parents[2]}/models/sampling.py:greedy").module
TINY = sampling.Config(batch=3, vocab=10, top_k=3, top_p=0.7)
PAD = TINY.vocab
LOGITS = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32) * 2
HISTORY = np.array([[1, 4, 4, 4, PAD], [0, 9, 0, 2, 7], [3, PAD, PAD, PAD, PAD]])


def test_a_repeated_token_is_penalized_once():
    """A positive logit of a token in the history is divided, a negative one multiplied, padding touches nothing."""
    expected = LOGITS.copy()
    for row, tokens in enumerate(HISTORY):
        for token in set(tokens.tolist()) - {PAD}:
            expected[row, token] *= 1.2 if expected[row, token] < 0 else 1 / 1.2
    actual = sampling.penalize_repetition(jnp.asarray(LOGITS), HISTORY, TINY)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert (expected[actual != LOGITS] < 0).any()


def test_a_frequent_token_is_penalized_each_time():
    """A token that occurs three times loses three times the penalty."""
    counts = np.zeros(LOGITS.shape)
    for row, tokens in enumerate(HISTORY):
        for token in tokens[tokens != PAD]:
            counts[row, token] += 1
    assert counts.max() == 3
    actual = sampling.penalize_frequency(jnp.asarray(LOGITS), HISTORY, TINY)
    np.testing.assert_allclose(actual, LOGITS - 0.1 * counts, rtol=1e-5)


def test_banned_and_suppressed_tokens_never_come():
    """A ban lowers a logit of its own row and raises none; a suppressed token is out in every row."""
    logits = jnp.asarray(LOGITS).at[0, 5].set(-jnp.inf)
    banned = np.array([[5, 6], [0, PAD], [PAD, PAD]])
    expected = np.array(logits)
    expected[0, 6] = expected[1, 0] = -1e4
    np.testing.assert_array_equal(sampling.ban(logits, banned), expected)
    expected[:, [2, 8]] = -np.inf
    np.testing.assert_array_equal(sampling.suppress(sampling.ban(logits, banned), np.array([2, 8])), expected)


def test_top_k_keeps_the_highest():
    """The three highest logits of a row stay as they are, the others are out."""
    actual = sampling.keep_top_k(jnp.asarray(LOGITS), TINY)
    third = np.sort(LOGITS, axis=-1)[:, [-3]]
    np.testing.assert_array_equal(actual, np.where(third <= LOGITS, LOGITS, -np.inf))


@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.7, 0.95, 1.0])
def test_top_p_keeps_the_shortest_head(top_p):
    """Kept are the likeliest tokens, as few as reach top_p together; always one, and all of them at 1."""
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)
    kept = np.zeros(LOGITS.shape, bool)
    for row, p in enumerate(probabilities):
        total = 0.0
        for token in np.argsort(-p):
            if total < top_p:
                kept[row, token] = True
            total += p[token]
    actual = sampling.keep_top_p(jnp.asarray(LOGITS), dataclasses.replace(TINY, top_p=top_p))
    np.testing.assert_array_equal(actual, np.where(kept, LOGITS, -np.inf))


def test_a_draw_follows_the_probabilities():
    """Over many noises the drawn tokens have the frequencies of the softmax, and a token that is out never comes."""
    row = jnp.where(jnp.arange(10) == 4, -jnp.inf, LOGITS[0])
    noise = np.random.default_rng(1).uniform(size=(20000, 10)).astype(np.float32)
    tokens = sampling.draw(jnp.broadcast_to(row, noise.shape), noise)
    np.testing.assert_allclose(np.bincount(tokens, minlength=10) / 20000, jax.nn.softmax(row), atol=0.015)
    assert not np.any(tokens == 4)


def test_noise_at_its_ends_draws_a_token_that_is_allowed():
    """Noise of zero and of almost one gives finite numbers: a token that is out stays out."""
    row = jnp.array([[0.0, -jnp.inf, 1.0]])
    assert int(sampling.draw(row, jnp.zeros((1, 3)))[0]) == 2
    assert int(sampling.draw(row, jnp.full((1, 3), np.float32(1 - 2**-24)))[0]) == 2


def test_the_samplers_draw_from_the_changed_logits():
    """Each sampler gives the logits after its own changes, and the token that the noise draws from them."""
    noise = np.random.default_rng(2).uniform(size=LOGITS.shape).astype(np.float32)
    banned, suppressed = np.array([[5, 6], [0, PAD], [PAD, PAD]]), np.array([2, 8])
    logits = jnp.asarray(LOGITS)
    probabilities = np.array(jax.nn.softmax(logits / 0.8, axis=-1))
    for row, tokens in enumerate(HISTORY):
        for token in tokens[tokens != PAD]:
            probabilities[row, token] *= 0.5
    expected = {
        "greedy": sampling.suppress(
            sampling.ban(
                sampling.penalize_frequency(sampling.penalize_repetition(logits, HISTORY, TINY), HISTORY, TINY), banned
            ),
            suppressed,
        ),
        "sample_top_k": sampling.keep_top_k(logits, TINY) / 0.8,
        "sample_top_p": sampling.keep_top_p(logits / 0.8, TINY),
        "sample_fresh": np.log(probabilities),
    }
    arguments = {"greedy": (HISTORY, banned, suppressed), "sample_fresh": (HISTORY, noise)}
    for name, changed in expected.items():
        tokens, actual = partial(getattr(sampling, name), config=TINY)(logits, *arguments.get(name, (noise,)))
        np.testing.assert_allclose(actual, changed, rtol=1e-5)
        chosen = changed if name == "greedy" else changed - np.log(-np.log(noise))
        np.testing.assert_array_equal(tokens, np.argmax(chosen, axis=-1))


COMBINERS = {  # repetition, frequency, banned, suppressed
    "greedy": ["assign", "add", "min", "assign"],
    "sample_top_k": ["assign"],
    "sample_top_p": ["assign"],
    "sample_fresh": ["mul"],
}


@pytest.mark.parametrize(
    "function", [f if f == "sample_fresh" else pytest.param(f, marks=pytest.mark.sweep) for f in COMBINERS]
)
def test_the_scatters_of_a_sampler_are_lowered(function, lowered_and_verified):
    """Each change of a sampler is one scatter, with the combiner that it is written with."""
    sizes = {"vocab": 32, "history": 6}
    records = lowered_and_verified(f"sampling.py:{function}", **sizes)
    # what assigns a constant may be said more exactly
    assert [r.combiner.removesuffix("_constant") for r in records] == COMBINERS[function]
    assert all(r.operand_shape == (2, 32) for r in records)
