"""models/llama.py: its numbers, its masks, and the scatters that its exports hold."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import exported_text

MODEL = Path(__file__).parents[2] / "models" / "llama.py"
llama = load_function(f"{MODEL}:decode").module
TINY = llama.Config(layers=2, batch=2, max_length=12)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
prefill = jax.jit(llama.prefill, static_argnames="config", compiler_options=QUICKLY)
decode = jax.jit(llama.decode, static_argnames="config", compiler_options=QUICKLY)
init_params = jax.jit(llama.init_params, static_argnums=0, compiler_options=QUICKLY)
attend = jax.jit(llama.attend, compiler_options=QUICKLY)


def _setup(config):
    params = init_params(config, jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (config.batch, 9), 0, config.vocab)
    return params, llama.init_cache(config), tokens


@pytest.mark.sweep
def test_prefill_then_decode_is_a_longer_prefill():
    """A prompt of five tokens and four decode steps predict what one prompt of nine tokens predicts."""
    params, caches, tokens = _setup(TINY)
    expected, expected_caches = prefill(params, caches, tokens, jnp.int32(0), config=TINY)

    logits, caches = prefill(params, caches, tokens[:, :5], jnp.int32(0), config=TINY)
    steps = [logits]
    for position in range(5, 9):
        logits, caches = decode(params, caches, tokens[:, position], jnp.int32(position), config=TINY)
        steps.append(logits[:, None])

    np.testing.assert_allclose(jnp.concatenate(steps, axis=1), expected, rtol=1e-4, atol=1e-4)
    for actual, wanted in zip(jax.tree.leaves(caches), jax.tree.leaves(expected_caches), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-4)


def test_prefill_in_two_pieces_is_one_prefill():
    """Prompt tokens may come in pieces: a second piece continues at its start position."""
    params, caches, tokens = _setup(TINY)
    expected, _ = prefill(params, caches, tokens, jnp.int32(0), config=TINY)
    _, caches = prefill(params, caches, tokens[:, :5], jnp.int32(0), config=TINY)
    actual, _ = prefill(params, caches, tokens[:, 5:], jnp.int32(5), config=TINY)
    np.testing.assert_allclose(actual, expected[:, 5:], rtol=1e-4, atol=1e-4)


def test_a_prediction_does_not_see_later_tokens():
    """Changing the last token of a prompt changes the last prediction and no earlier one."""
    params, caches, tokens = _setup(TINY)
    other = tokens.at[:, -1].set((tokens[:, -1] + 1) % TINY.vocab)
    before, _ = prefill(params, caches, tokens, jnp.int32(0), config=TINY)
    after, _ = prefill(params, caches, other, jnp.int32(0), config=TINY)
    np.testing.assert_array_equal(before[:, :-1], after[:, :-1])
    assert not np.allclose(before[:, -1], after[:, -1])


def test_a_decode_step_sees_only_the_written_part_of_the_cache():
    """What stands in the cache behind the position has no influence, and what stands before it has."""
    params, caches, tokens = _setup(TINY)
    _, caches = prefill(params, caches, tokens[:, :5], jnp.int32(0), config=TINY)
    later = jax.tree.map(lambda c: c.at[:, :, 6:].set(1e3), caches)
    earlier = jax.tree.map(lambda c: c.at[:, :, 3].add(1.0), caches)
    step = [decode(params, c, tokens[:, 5], jnp.int32(5), config=TINY)[0] for c in (caches, later, earlier)]
    np.testing.assert_array_equal(step[0], step[1])
    assert not np.allclose(step[0], step[2])


def test_a_tied_head_is_the_transposed_embedding():
    """With a tied head there is no head weight, and the logits are those of a head that equals the embedding."""
    tied = dataclasses.replace(TINY, tied_head=True)
    params, _, _ = _setup(TINY)
    x = params["embedding"][:3]
    expected = llama.logits_of({**params, "head": params["embedding"].T}, x, TINY)
    np.testing.assert_allclose(llama.logits_of(params, x, tied), expected, rtol=1e-5, atol=1e-5)
    assert "head" not in llama.param_specs(tied)


def test_grouped_heads_share_a_key_head():
    """Attention over kv_heads is attention over heads whose keys and values are repeated within each group."""
    generator = np.random.default_rng(0)
    q, k, v = (generator.normal(size=s).astype(np.float32) for s in ((2, 4, 3, 8), (2, 2, 6, 8), (2, 2, 6, 8)))
    positions = jnp.array([1, 2, 3])
    repeated = attend(q, np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1), positions)
    np.testing.assert_allclose(attend(q, k, v, positions), repeated, rtol=1e-5, atol=1e-6)


def test_rotary_scores_depend_on_the_distance_alone():
    """Rotated queries and keys have equal products at equal distances, whatever the position."""
    q, k = (jax.random.normal(jax.random.key(i), (1, 1, 1, TINY.head_dim)) for i in (0, 1))

    def score(query_at, key_at):
        rotated = [llama.rotate(x, *llama.rotary(jnp.array([at]), TINY)) for x, at in ((q, query_at), (k, key_at))]
        return jnp.vdot(*rotated)

    np.testing.assert_allclose(score(3, 1), score(9, 7), rtol=1e-4)
    assert not np.allclose(score(3, 1), score(9, 6))


@pytest.mark.parametrize("function", ["decode", "prefill"])
def test_an_export_holds_two_scatters_per_layer(function):
    """Each layer writes its keys and its values, and the location of each write names its layer and line."""
    target = load_function(f"{MODEL}:{function}", {"layers": "3"})
    text = exported_text(target.export())
    assert text.count('"stablehlo.scatter"(') == 2 * 3
    assert all(f"jit({function})/layer_{i}" in text for i in range(3))
    assert "select" in text.split('"stablehlo.scatter"(')[0]  # the negative-index normalisation


@pytest.mark.parametrize("function", ["decode", "prefill"])
def test_an_export_gives_the_caches_away_and_nothing_else(function):
    """The two caches of each layer are aliased to results, the weights are not."""
    text = exported_text(load_function(f"{MODEL}:{function}", {"layers": "3"}).export())
    assert text.count("tf.aliasing_output") == 2 * 3


def test_a_preset_of_a_real_model_exports_without_its_weights():
    """The sizes of a real model export from shapes alone, so a decode step of it needs no memory for weights."""
    exported = load_function(f"{MODEL}:decode", {"preset": "llama_1b", "layers": "1"}).export()
    assert ((128256, 2048), "bfloat16") in {(aval.shape, str(aval.dtype)) for aval in exported.in_avals}


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("layers", 0, "layers=0 must be at least 1"),
        ("kv_heads", 3, "heads=4 must be a multiple of kv_heads=3"),
        ("head_dim", 7, "head_dim=7 must be even"),
        ("prompt", 99, "prompt=99 must not exceed max_length=64"),
        ("dtype", "int32", "dtype=int32 must be a floating-point dtype"),
    ],
)
def test_a_size_that_makes_no_decoder_is_refused(field, value, says):
    """A config says which of its fields does not fit."""
    with pytest.raises(ValueError, match=says):
        llama.Config(**{field: value})
