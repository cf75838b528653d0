"""The decoder of `llama` as one `lax.scan` over stacked layers: weights and caches have a leading axis of layers.

Compile time no longer grows with the layers, and the cache writes sit in the body of a while loop. The caches pass
through the scan in one of two ways: a layer's cache goes in as an xs and comes out as a ys (`_slices`), or the caches
of all layers are the carry and are written at [layer, ...] (`_carry`).

    hlo-lower export models/scan_layers.py:decode_slices -o slices.mlir
    hlo-lower export models/scan_layers.py:decode_carry -o carry.mlir --set preset=llama_1b
    hlo-lower export models/scan_layers.py:prefill_slices -o prefill.mlir --set layers=16
    hlo-lower export models/scan_layers.py:prefill_carry -o open.mlir --shapes ... "_, b, _, t, _" "b, s" ...

In the second a scatter has an index column that counts the trips of the loop.
"""

from typing import Any

import jax
import jax.numpy as jnp
import llama
from llama import PRESETS, Config, Layer, Params

Caches = dict[str, jax.Array]


def param_specs(config: Config) -> Params:
    """As `llama.param_specs`, with "layers" one dict whose leaves have a leading axis of layers."""
    params = llama.param_specs(config)
    return {**params, "layers": jax.tree.map(lambda *leaves: stacked(config.layers, leaves[0]), *params["layers"])}


def cache_specs(config: Config) -> Caches:
    """k and v, each [layers, batch, kv_heads, max_length, head_dim]."""
    return jax.tree.map(lambda leaf: stacked(config.layers, leaf), llama.cache_specs(config)[0])


def stacked(layers: int, leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """A leaf of one layer with a leading axis of layers."""
    return jax.ShapeDtypeStruct((layers, *leaf.shape), leaf.dtype)


def rest_of_layer(
    layer: Layer, x: jax.Array, q: jax.Array, k: jax.Array, v: jax.Array, positions: jax.Array, config: Config
) -> jax.Array:
    """What follows the cache write: attention of q over the caches k and v, then the feed-forward block."""
    x = x + llama.attend(q, k, v, positions) @ layer["wo"]
    return x + llama.feed_forward(layer, x, config)


def scan_slices(
    params: Params, caches: Caches, x: jax.Array, at: jax.Array, config: Config
) -> tuple[jax.Array, Caches]:
    """Run x of [batch, S, hidden] through the layers, a scan whose trips see their own layer's cache.

    Args:
      params: weights, as `param_specs` lays them out.
      caches: KV caches, as `cache_specs` lays them out.
      x: [batch, S, hidden].
      at: int32, where x stands: a scalar for one token, [S] for S of them.
      config: the size.

    Returns:
      As x, and the caches.
    """
    positions = jnp.atleast_1d(at)
    cos, sin = llama.rotary(positions, config)

    def body(x: jax.Array, trip: tuple[Layer, Caches]) -> tuple[jax.Array, Caches]:
        layer, cache = trip
        q, k, v = llama.project(layer, x, cos, sin, config)
        k_cache = cache["k"].at[:, :, at].set(k if at.ndim else k[:, :, 0])
        v_cache = cache["v"].at[:, :, at].set(v if at.ndim else v[:, :, 0])
        x = rest_of_layer(layer, x, q, k_cache, v_cache, positions, config)
        return x, {"k": k_cache, "v": v_cache}

    return jax.lax.scan(body, x, (params["layers"], caches))


def scan_carry(params: Params, caches: Caches, x: jax.Array, at: jax.Array, config: Config) -> tuple[jax.Array, Caches]:
    """As `scan_slices`, with trips that write into the caches of all layers."""
    positions = jnp.atleast_1d(at)
    cos, sin = llama.rotary(positions, config)

    def body(carry: tuple[jax.Array, Caches], trip: tuple[jax.Array, Layer]) -> tuple[tuple[jax.Array, Caches], None]:
        (x, caches), (i, layer) = carry, trip
        q, k, v = llama.project(layer, x, cos, sin, config)
        # The layer and an array of positions are indices apart from each other: their axis, S, comes first.
        k_caches = caches["k"].at[i, :, :, at].set(jnp.moveaxis(k, 2, 0) if at.ndim else k[:, :, 0])
        v_caches = caches["v"].at[i, :, :, at].set(jnp.moveaxis(v, 2, 0) if at.ndim else v[:, :, 0])
        x = rest_of_layer(layer, x, q, k_caches[i], v_caches[i], positions, config)
        return (x, {"k": k_caches, "v": v_caches}), None

    layers = jnp.arange(caches["k"].shape[0])
    (x, caches), _ = jax.lax.scan(body, (x, caches), (layers, params["layers"]))
    return x, caches


def decode_slices(
    params: Params, caches: Caches, tokens: jax.Array, position: jax.Array, *, config: Config
) -> tuple[jax.Array, Caches]:
    """Take one token per sequence and predict the next. Batch and cache length may be symbolic.

    Args:
      params: weights, as `param_specs` lays them out.
      caches: KV caches, as `cache_specs` lays them out; donated.
      tokens: [batch] int32.
      position: int32 scalar, where the token stands.
      config: the size.

    Returns:
      Logits of [batch, vocab] in float32, and the caches.
    """
    x = params["embedding"][tokens][:, None]
    x, caches = scan_slices(params, caches, x, position, config)
    return llama.logits_of(params, x[:, 0], config), caches


def decode_carry(
    params: Params, caches: Caches, tokens: jax.Array, position: jax.Array, *, config: Config
) -> tuple[jax.Array, Caches]:
    """As `decode_slices`, with the caches as the carry. Batch and cache length may be symbolic."""
    x = params["embedding"][tokens][:, None]
    x, caches = scan_carry(params, caches, x, position, config)
    return llama.logits_of(params, x[:, 0], config), caches


def prefill_slices(
    params: Params, caches: Caches, tokens: jax.Array, start: jax.Array, *, config: Config
) -> tuple[jax.Array, Caches]:
    """Take S tokens per sequence and predict after each. Batch, cache length and S may be symbolic.

    Args:
      params: weights, as `param_specs` lays them out.
      caches: KV caches, as `cache_specs` lays them out; donated.
      tokens: [batch, S] int32.
      start: int32 scalar, where the first token stands.
      config: the size.

    Returns:
      Logits of [batch, S, vocab] in float32, and the caches.
    """
    positions = start + jnp.arange(tokens.shape[1])
    x, caches = scan_slices(params, caches, params["embedding"][tokens], positions, config)
    return llama.logits_of(params, x, config), caches


def prefill_carry(
    params: Params, caches: Caches, tokens: jax.Array, start: jax.Array, *, config: Config
) -> tuple[jax.Array, Caches]:
    """As `prefill_slices`, with the caches as the carry. Batch, cache length and S may be symbolic."""
    positions = start + jnp.arange(tokens.shape[1])
    x, caches = scan_carry(params, caches, params["embedding"][tokens], positions, config)
    return llama.logits_of(params, x, config), caches


# --- what `hlo-lower export` needs to know ------------------------------------------------------------------------


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of the two decode steps."""
    tokens = jax.ShapeDtypeStruct((config.batch,), jnp.int32)
    return param_specs(config), cache_specs(config), tokens, jax.ShapeDtypeStruct((), jnp.int32)


def prefill_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of the two prefill steps."""
    tokens = jax.ShapeDtypeStruct((config.batch, config.prompt), jnp.int32)
    return param_specs(config), cache_specs(config), tokens, jax.ShapeDtypeStruct((), jnp.int32)


EXPORTS = {
    name: {"args": args, "config": Config(), "presets": PRESETS, "donate": (1,)}
    for name, args in (
        ("decode_slices", decode_args),
        ("decode_carry", decode_args),
        ("prefill_slices", prefill_args),
        ("prefill_carry", prefill_args),
    )
}
