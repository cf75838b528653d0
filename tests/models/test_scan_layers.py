"""models/scan_layers.py: it is llama's decoder, and its scatters sit in a loop."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.ir.export.load import load_function

scan = load_function(f"{Path(__file__).parents[2]}/models/scan_layers.py:decode_carry").module
llama = scan.llama
TINY = llama.Config(
    layers=2, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn=16, vocab=32, max_length=7, batch=2, prompt=4
)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile time is all of these tests' time
FORMS = ("slices", "carry")


def _jitted(fn):
    return jax.jit(partial(fn, config=TINY), compiler_options=QUICKLY)


def _stacked(layers):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)


@pytest.fixture(scope="module")
def unrolled():
    """Weights and caches layer by layer, a prompt, and what llama makes of its four tokens and one more."""
    params = jax.jit(llama.init_params, static_argnums=0, compiler_options=QUICKLY)(TINY, jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (2, 5), 0, TINY.vocab)
    logits, caches = _jitted(llama.prefill)(params, llama.init_cache(TINY), tokens[:, :4], jnp.int32(1))
    logits_next, caches = _jitted(llama.decode)(params, caches, tokens[:, 4], jnp.int32(5))
    return params, tokens, logits, logits_next, caches


@pytest.mark.parametrize("form", FORMS)
def test_a_scan_over_layers_is_the_unrolled_decoder(form, unrolled):
    """Prefill and decode predict and write what llama's do, with weights and caches stacked."""
    params, tokens, expected, expected_next, expected_caches = unrolled
    params = {**params, "layers": _stacked(params["layers"])}
    caches = _stacked(llama.init_cache(TINY))
    logits, caches = _jitted(getattr(scan, f"prefill_{form}"))(params, caches, tokens[:, :4], jnp.int32(1))
    logits_next, caches = _jitted(getattr(scan, f"decode_{form}"))(params, caches, tokens[:, 4], jnp.int32(5))

    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logits_next, expected_next, rtol=1e-4, atol=1e-4)
    for name, wanted in _stacked(expected_caches).items():
        np.testing.assert_allclose(caches[name], wanted, rtol=1e-4, atol=1e-5)


def test_the_specs_are_those_of_stacked_arrays():
    """The example arguments have the shapes that stacking llama's arrays gives."""
    params = llama.param_specs(TINY)
    made = jax.eval_shape(_stacked, params["layers"])
    assert jax.tree.map(lambda s: (s.shape, s.dtype), scan.param_specs(TINY)["layers"]) == jax.tree.map(
        lambda s: (s.shape, s.dtype), made
    )
    assert scan.cache_specs(TINY)["k"].shape == (2, 2, 2, 7, 4)


@pytest.mark.parametrize(
    "function",
    [
        "decode_slices",
        *(pytest.param(n, marks=pytest.mark.sweep) for n in ("decode_carry", "prefill_slices", "prefill_carry")),
    ],
)
def test_two_scatters_for_all_layers_are_lowered(function, lowered_and_verified, exported_as_text):
    """However many layers there are, one loop holds one scatter for the keys and one for the values."""
    sizes = {"layers": 3, "hidden": 16, "head_dim": 4, "ffn": 16, "vocab": 32, "max_length": 12, "prompt": 4}
    text = exported_as_text(f"scan_layers.py:{function}", **sizes)
    assert text.count("stablehlo.while") == 1
    records = lowered_and_verified(f"scan_layers.py:{function}", **sizes)
    assert [r.combiner for r in records] == ["assign", "assign"]
    layers = (3,) if function.endswith("carry") else ()
    assert all(r.operand_shape == (*layers, 2, 2, 12, 4) for r in records)
