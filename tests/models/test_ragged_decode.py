"""models/ragged_decode.py: its cache writes, its masks, and the scatters that its exports hold."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

ragged = load_function(f"{Path(__file__).parents[2]}/models/ragged_decode.py:decode_rows").module
llama = ragged.llama
TINY = ragged.Config(
    layers=1, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=16, vocab=32, max_length=7, batch=3, prompt=4
)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
FORMS = ("decode_vmap_slice", "decode_vmap_set", "decode_rows")
STEPS = {form: jax.jit(partial(getattr(ragged, form), config=TINY), compiler_options=QUICKLY) for form in FORMS}
decode_one = jax.jit(partial(llama.decode, config=TINY), compiler_options=QUICKLY)


def _setup():
    """Weights, caches full of numbers, tokens and a position for each sequence."""
    params = jax.jit(llama.init_params, static_argnums=0, compiler_options=QUICKLY)(TINY, jax.random.key(0))
    generator = np.random.default_rng(1)
    caches = jax.tree.map(lambda s: jnp.asarray(generator.normal(size=s.shape), s.dtype), llama.cache_specs(TINY))
    return params, caches, jnp.array([5, 9, 31]), jnp.array([0, 3, 6])


@pytest.mark.parametrize("form", FORMS)
def test_a_ragged_step_is_a_step_of_each_sequence_alone(form):
    """Logits and caches are those of llama.decode, called for one sequence at its own position."""
    params, caches, tokens, positions = _setup()
    logits, written = STEPS[form](params, caches, tokens, positions)
    for i in range(TINY.batch):
        alone = jax.tree.map(lambda cache, i=i: cache[i : i + 1], caches)
        expected, expected_caches = decode_one(params, alone, tokens[i : i + 1], positions[i])
        np.testing.assert_allclose(logits[i], expected[0], rtol=1e-4, atol=1e-4)
        for actual, wanted in zip(jax.tree.leaves(written), jax.tree.leaves(expected_caches), strict=True):
            np.testing.assert_allclose(actual[i], wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_a_sequence_sees_only_its_own_length(form):
    """What stands behind a sequence's position has no influence on it, and what stands before it has."""
    params, caches, tokens, positions = _setup()
    step = STEPS[form]
    before, _ = step(params, caches, tokens, positions)
    later, _ = step(params, jax.tree.map(lambda c: c.at[1, :, 4:].set(1e3), caches), tokens, positions)
    earlier, _ = step(params, jax.tree.map(lambda c: c.at[1, :, 2].add(1.0), caches), tokens, positions)
    np.testing.assert_array_equal(before, later)
    np.testing.assert_array_equal(before[::2], earlier[::2])
    assert not np.allclose(before[1], earlier[1])


@pytest.mark.parametrize(
    ("write", "landing"),
    [
        ("write_vmap_slice", [2, 6, 6, 0, 6]),
        ("write_vmap_set", [2, 6, None, None, 6]),
        ("write_rows", [2, 6, None, None, 6]),
    ],
)
def test_where_a_row_lands(write, landing):
    """A negative position counts from the end; one still outside goes to the nearest row or is dropped, by form."""
    generator = np.random.default_rng(0)
    cache = generator.normal(size=(5, 2, 7, 3)).astype(np.float32)
    rows = generator.normal(size=(5, 2, 3)).astype(np.float32)
    expected = cache.copy()
    for i, row in enumerate(landing):
        if row is not None:
            expected[i, :, row] = rows[i]
    actual = getattr(ragged, write)(jnp.asarray(cache), rows, jnp.array([2, 6, 7, -8, -1]))
    np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize("form", [*FORMS[:1], *(pytest.param(form, marks=pytest.mark.sweep) for form in FORMS[1:])])
def test_the_export_holds_two_scatters_that_are_lowered(form, lowered_and_verified):
    """Keys and values of a layer are written by one assigning scatter each."""
    sizes = {"layers": 1, "hidden": 16, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 12, "prompt": 4}
    records = lowered_and_verified(f"ragged_decode.py:{form}", **sizes)
    assert [r.combiner for r in records] == ["assign", "assign"]
    assert all(r.operand_shape == (4, 2, 12, 4) for r in records)


def test_a_vmapped_write_has_batching_dims(exported_as_text):
    """Both vmapped forms export batching dims; the form with arange exports an index column in their place."""
    batched = {form: "input_batching_dims" in exported_as_text(f"ragged_decode.py:{form}") for form in FORMS}
    assert batched == {"decode_vmap_slice": True, "decode_vmap_set": True, "decode_rows": False}
