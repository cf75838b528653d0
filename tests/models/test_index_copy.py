"""models/index_copy.py: its cache writes, and the 64-bit indices that its exports hold."""

import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

index_copy = load_function(f"{Path(__file__).parents[2]}/models/index_copy.py:decode").module
llama = index_copy.llama
TINY = llama.Config(
    layers=1, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=16, vocab=32, max_length=7, batch=2, prompt=4
)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
SIZES = {"layers": 1, "hidden": 16, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 12, "prompt": 4}


def test_prefill_and_decode_are_those_of_llama():
    """With consecutive positions the steps predict and write what llama's do."""
    params = jax.jit(llama.init_params, static_argnums=0, compiler_options=QUICKLY)(TINY, jax.random.key(0))
    caches = llama.init_cache(TINY)
    tokens = np.random.default_rng(0).integers(0, TINY.vocab, (2, 5))

    def jitted(fn):
        return jax.jit(partial(fn, config=TINY), compiler_options=QUICKLY)

    expected, expected_caches = jitted(llama.prefill)(params, caches, jnp.asarray(tokens[:, :4]), jnp.int32(1))
    expected_next, expected_caches = jitted(llama.decode)(params, expected_caches, tokens[:, 4], jnp.int32(5))
    with jax.enable_x64(True):
        logits, caches = jitted(index_copy.prefill)(params, caches, tokens[:, :4], np.arange(1, 5))
        logits_next, caches = jitted(index_copy.decode)(params, caches, tokens[:, 4:], np.array([5]))

    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logits_next, expected_next, rtol=1e-4, atol=1e-4)
    for actual, wanted in zip(jax.tree.leaves(caches), jax.tree.leaves(expected_caches), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def test_a_position_means_what_it_says():
    """Rows go to any positions in any order; a negative one is not counted from the end but dropped, as one too far."""
    generator = np.random.default_rng(0)
    cache = generator.normal(size=(2, 2, 7, 3)).astype(np.float32)
    rows = generator.normal(size=(2, 2, 5, 3)).astype(np.float32)
    expected = cache.copy()
    expected[:, :, 4], expected[:, :, 0] = rows[:, :, 0], rows[:, :, 2]
    with jax.enable_x64(True):
        positions = jnp.array([4, -1, 0, 7, 2**32])
        actual = index_copy.index_copy(jnp.asarray(cache), positions, rows)
    np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize(("function", "count"), [("decode", 1), ("prefill", 4)])
def test_the_argument_itself_indexes_the_cache(function, count, exported_as_text):
    """A scatter's indices are the int64 argument in another shape: not converted, not shifted, not clamped."""
    text = exported_as_text(f"index_copy.py:{function}", **SIZES)
    (argument,) = re.findall(rf"(%arg\d+): tensor<{count}xi64> loc\(\"cache_position\"", text)
    indices = re.findall(r'"stablehlo.scatter"\(%\w+, (%\w+), ', text)
    assert len(indices) == 2
    for value in indices:
        assert re.search(
            rf"{value} = stablehlo.(broadcast_in_dim|reshape) {argument}[, ].*-> tensor<{count}x1xi64>", text
        )


@pytest.mark.parametrize("function", ["decode", "prefill"])
def test_64_bit_types_stay_with_the_positions(function, exported_as_text):
    """No float of the model becomes 64 bits wide, and exporting leaves JAX as it was."""
    assert "f64" not in re.sub(r" loc\(.*", "", exported_as_text(f"index_copy.py:{function}"))
    assert jnp.arange(1).dtype == jnp.int32


@pytest.mark.parametrize("function", ["decode", "prefill"])
def test_the_export_holds_two_scatters_that_are_lowered(function, lowered_and_verified):
    """Keys and values of a layer are written by one assigning scatter each."""
    records = lowered_and_verified(f"index_copy.py:{function}", **SIZES)
    assert [r.combiner for r in records] == ["assign", "assign"]
    assert all(r.operand_shape == (2, 2, 12, 4) for r in records)
