"""models/moe.py: routing and mixing against a token-by-token evaluation."""

import jax.numpy as jnp
import numpy as np
import pytest
from model_runs import assert_close, jitted, model, target_of

import hlo_lower as hl

moe = model("moe.py")
SIZE = {"tokens": 12, "hidden": 8, "ffn": 6, "experts": 4, "top_k": 2}


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
def test_each_form_is_the_block_token_by_token(form, slots):
    """With too few slots an expert takes the first tokens that chose it; the counts are of all that chose it."""
    config = moe.Config(**SIZE, slots=slots)
    params, x = set_up(config)
    expected, expected_counts, dropped = by_token(params, x, config, slots)
    assert (dropped > 0) is (slots == 4)
    mixed, counts = jitted(getattr(moe, form), config)(params, x)
    assert_close(mixed, expected, atol=1e-5)
    np.testing.assert_array_equal(counts, expected_counts)


def test_the_weights_of_a_token_sum_to_one():
    """A token's weights are a softmax over the experts that it goes to, which are the top_k of its logits."""
    config = moe.Config(**SIZE)
    params, x = set_up(config)
    weights, experts = moe.route(params, jnp.asarray(x), config)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    assert np.all(np.diff(weights, axis=-1) <= 0)
    np.testing.assert_array_equal(experts[:, 0], np.argmax(x @ params["router"], axis=-1))


def test_the_slots_are_written_at_expert_and_slot():
    """The dispatch writes whole tokens into a buffer of [experts, slots, hidden] at two runtime indices."""
    records = hl.classify(hl.read(target_of("moe.py:capacity", **SIZE, slots=4).export()))
    (dispatch,) = (r for r in records if r.combiner == "assign")
    assert (dispatch.operand_shape, dispatch.indices_shape) == ((4, 4, 8), (24, 2))
    assert dispatch.in_bounds == "unknown"  # a slot may be one too many: the update is dropped
