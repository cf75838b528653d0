"""models/moe.py, sampling.py and train_step.py against NumPy, token by token, and against a loss without indexing."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import assert_close, jitted, model, target_of

import hlo_lower as hl

moe, sampling, train = (model(f"{name}.py") for name in ("moe", "sampling", "train_step"))
EXPERTS = {"tokens": 12, "hidden": 8, "ffn": 6, "experts": 4, "top_k": 2}


def set_up(config):
    """Weights and tokens, the router so biased that one expert is chosen by most tokens."""
    generator = np.random.default_rng(0)
    params = {
        name: generator.normal(size=s.shape).astype(np.float32) / s.shape[-2] ** 0.5
        for name, s in moe.param_specs(config).items()
    }
    x = generator.normal(size=(config.tokens, config.hidden)).astype(np.float32)
    x[:, 0] = 2.0
    params["router"][0, 1] += 2.0
    return params, x


def by_token(params, x, config, slots):
    """The block evaluated token by token: (the mixed tokens, the counts, how many choices found no slot)."""
    logits = x.astype(np.float64) @ params["router"]
    mixed, counts, dropped = np.zeros(x.shape), np.zeros(config.experts, int), 0
    for t in range(len(x)):
        best = np.argsort(-logits[t], kind="stable")[: config.top_k]
        weights = np.exp(logits[t, best] - logits[t, best].max())
        for expert, weight in zip(best, weights / weights.sum(), strict=True):
            if counts[expert] < slots:
                gate = x[t] @ params["w_gate"][expert].astype(np.float64)
                up = x[t] @ params["w_up"][expert].astype(np.float64)
                mixed[t] += weight * ((gate / (1 + np.exp(-gate)) * up) @ params["w_down"][expert])
            else:
                dropped += 1
            counts[expert] += 1
    return mixed, counts, dropped


@pytest.mark.parametrize(
    ("form", "slots"), [("capacity", 12), ("sorted_tokens", 12), ("segments", 12), ("capacity", 4)]
)
def test_each_form_of_experts_is_the_block_token_by_token(form, slots):
    """With too few slots an expert takes the first tokens that chose it; the counts are of all that chose it."""
    config = moe.Config(**EXPERTS, slots=slots)
    params, x = set_up(config)
    expected, expected_counts, dropped = by_token(params, x, config, slots)
    assert (dropped > 0) is (slots == 4)
    mixed, counts = jitted(getattr(moe, form), config)(params, x)
    assert_close(mixed, expected, atol=1e-5)
    np.testing.assert_array_equal(counts, expected_counts)


def test_the_slots_are_written_at_expert_and_slot():
    """The dispatch writes whole tokens into a buffer of [experts, slots, hidden] at two runtime indices."""
    records = hl.classify(hl.read(target_of("moe.py:capacity", **EXPERTS, slots=4).export()))
    (dispatch,) = (r for r in records if r.combiner == "assign")
    assert (dispatch.operand_shape, dispatch.indices_shape) == ((4, 4, 8), (24, 2))
    assert dispatch.in_bounds == "unknown"  # a slot may be one too many: the update is dropped


SAMPLER = sampling.Config(batch=3, vocab=10, top_k=3, top_p=0.7)
PAD = SAMPLER.vocab
LOGITS = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32) * 2
LOGITS[0, 5] = -np.inf  # which a ban does not raise
HISTORY = np.array([[1, 4, 4, 4, PAD], [0, 9, 0, 2, 7], [3, PAD, PAD, PAD, PAD]])
BANNED, SUPPRESSED = np.array([[5, 6], [0, PAD], [PAD, PAD]]), np.array([2, 8])
COUNTS = np.stack([np.bincount(row[row != PAD], minlength=10) for row in HISTORY])


def log_softmax(logits):
    """Logarithms of the probabilities of rows."""
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def greedy():
    """A repeated token is penalized once, a frequent one by its count; a ban lowers, what is suppressed is out."""
    logits = np.where(COUNTS > 0, np.where(LOGITS < 0, LOGITS * 1.2, LOGITS / 1.2), LOGITS) - 0.1 * COUNTS
    logits[0, 6] = logits[1, 0] = -1e4
    logits[:, SUPPRESSED] = -np.inf
    return logits


def likeliest(top_p):
    """The likeliest tokens, as few as reach top_p together; always one, and all of them at 1."""
    kept = np.zeros(LOGITS.shape, bool)
    for row, p in enumerate(np.exp(log_softmax(LOGITS / 0.8))):
        order = np.argsort(-p)
        kept[row, order[np.cumsum(p[order]) - p[order] < top_p]] = True
    return np.where(kept, LOGITS / 0.8, -np.inf)


SAMPLERS = [  # a sampler, fields of its config, its arguments besides the noise, and the logits that it draws from
    ("greedy", {}, (HISTORY, BANNED, SUPPRESSED), greedy()),
    ("sample_top_k", {}, (), np.where(np.sort(LOGITS)[:, [-3]] <= LOGITS, LOGITS, -np.inf) / 0.8),
    *(("sample_top_p", {"top_p": p}, (), likeliest(p)) for p in (1e-6, 0.3, 0.7, 0.95, 1.0)),
    ("sample_fresh", {}, (HISTORY,), log_softmax(LOGITS / 0.8) + COUNTS * np.log(0.5)),
]


@pytest.mark.parametrize(("name", "fields", "given", "expected"), SAMPLERS)
def test_a_sampler_draws_from_the_logits_that_it_changes(name, fields, given, expected):
    """Each gives the logits after its own changes, and the token that the noise draws from them."""
    noise = np.random.default_rng(2).uniform(size=LOGITS.shape).astype(np.float32)
    given = given if name == "greedy" else (*given, noise)
    config = dataclasses.replace(SAMPLER, **fields)
    tokens, actual = getattr(sampling, name)(jnp.asarray(LOGITS), *given, config=config)
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    chosen = expected if name == "greedy" else expected - np.log(-np.log(noise))
    np.testing.assert_array_equal(tokens, np.argmax(chosen, axis=-1))


def test_a_draw_follows_the_probabilities():
    """Drawn tokens have the softmax's frequencies; one that is out never comes, whatever the noise."""
    noise = np.random.default_rng(1).uniform(size=(20000, 10)).astype(np.float32)
    tokens = sampling.draw(jnp.broadcast_to(LOGITS[0], noise.shape), noise)
    np.testing.assert_allclose(np.bincount(tokens, minlength=10) / 20000, jax.nn.softmax(LOGITS[0]), atol=0.015)
    assert not np.any(tokens == 5)
    for end in (0, 1 - 2**-24):
        assert int(sampling.draw(jnp.array([[0.0, -jnp.inf, 1.0]]), jnp.full((1, 3), np.float32(end)))[0]) == 2


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
    generator, specs = np.random.default_rng(0), train.param_specs(config)
    params = jax.tree.map(lambda s: jnp.asarray(generator.normal(size=s.shape) * 0.5, s.dtype), specs)
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
