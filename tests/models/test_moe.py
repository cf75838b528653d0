"""models/moe.py: routing and mixing against a token-by-token evaluation, and the scatters that its exports hold."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.ir.export.load import load_function

MODEL = Path(__file__).parents[2] / "models" / "moe.py"
moe = load_function(f"{MODEL}:capacity").module
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
SIZE = {"tokens": 12, "hidden": 8, "ffn": 6, "experts": 4, "top_k": 2}
FORMS = ("capacity", "sorted_tokens", "segments")


def _setup(config):
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


def _block(params, x, config, slots):
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


@pytest.mark.parametrize("form", FORMS)
def test_with_room_for_all_each_form_is_the_block_token_by_token(form):
    """Where no token is dropped the three forms mix each token's experts by its weights, and count the choices."""
    config = moe.Config(**SIZE, slots=12)
    params, x = _setup(config)
    expected, expected_counts, dropped = _block(params, x, config, slots=12)
    assert dropped == 0
    mixed, counts = jax.jit(partial(getattr(moe, form), config=config), compiler_options=QUICKLY)(params, x)
    np.testing.assert_allclose(mixed, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(counts, expected_counts)


def test_a_token_that_finds_no_slot_is_dropped():
    """With too few slots an expert takes the first tokens that chose it; the counts are of all that chose it."""
    config = moe.Config(**SIZE, slots=4)
    params, x = _setup(config)
    expected, expected_counts, dropped = _block(params, x, config, slots=4)
    assert dropped > 0
    mixed, counts = jax.jit(partial(moe.capacity, config=config), compiler_options=QUICKLY)(params, x)
    np.testing.assert_allclose(mixed, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(counts, expected_counts)


def test_the_weights_of_a_token_sum_to_one():
    """A token's weights are a softmax over the experts that it goes to, which are the top_k of its logits."""
    config = moe.Config(**SIZE)
    params, x = _setup(config)
    weights, experts = moe.route(params, jnp.asarray(x), config)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    assert np.all(np.diff(weights, axis=-1) <= 0)
    np.testing.assert_array_equal(experts[:, 0], np.argmax(x @ params["router"], axis=-1))


COMBINERS = {
    "capacity": ["add", "add", "assign"],  # into the slots, back to the tokens, the counts
    "sorted_tokens": ["add", "assign"],  # the counts, the way back
    "segments": ["add", "add"],
}


@pytest.mark.parametrize("form", [f if f == "segments" else pytest.param(f, marks=pytest.mark.sweep) for f in FORMS])
def test_the_scatters_of_the_dispatch_are_lowered(form, lowered_and_verified):
    """Each form holds the scatters that it is written with, and no other."""
    records = lowered_and_verified(f"moe.py:{form}", **SIZE, slots=4)
    assert sorted(r.combiner for r in records) == COMBINERS[form]


def test_the_slots_are_written_at_expert_and_slot():
    """The dispatch writes whole tokens into a buffer of [experts, slots, hidden] at two runtime indices."""
    settings = {name: str(value) for name, value in {**SIZE, "slots": 4}.items()}
    records = hl.classify(hl.read(load_function(f"{MODEL}:capacity", settings).export()))
    (dispatch,) = (r for r in records if r.combiner == "assign")
    assert (dispatch.operand_shape, dispatch.indices_shape) == ((4, 4, 8), (24, 2))
    assert dispatch.in_bounds == "unknown"  # a slot may be one too many: the update is dropped
