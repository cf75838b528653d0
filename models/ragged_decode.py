"""Ragged decode: one token for each of a batch of sequences, each of its own length, in the decoder of `llama`.

A server batches sequences that stand at different positions. The cache write then has one row per sequence, and people
write it in three ways, each an export of its own: a vmapped dynamic_update_slice, a vmapped `cache.at[:, position]`,
and `cache.at[arange(batch), :, positions]`.

    hlo-lower export models/ragged_decode.py:decode_vmap_slice -o slice.mlir
    hlo-lower export models/ragged_decode.py:decode_vmap_set -o set.mlir --set preset=llama_1b
    hlo-lower export models/ragged_decode.py:decode_rows -o rows.mlir --set batch=64
    hlo-lower export models/ragged_decode.py:decode_rows -o open.mlir --shapes ... "b, _, t, _" b b

The first two leave JAX as scatters with batching dims, the third with a column of indices that counts the sequences.
All count a negative position from the end. They differ where one is still out of bounds: `dynamic_update_slice` moves
it to the nearest row of the cache, the other two drop the row.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import llama
from llama import Cache, Config, Params

Write = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

SIZE = Config(batch=4)
PRESETS = {
    "tiny": SIZE,
    "llama_1b": replace(llama.PRESETS["llama_1b"], batch=32),
    "llama_8b": replace(llama.PRESETS["llama_8b"], batch=32),
}


# --- three ways to write row positions[i] of sequence i -----------------------------------------------------------


def write_vmap_slice(cache: jax.Array, rows: jax.Array, positions: jax.Array) -> jax.Array:
    """Write rows of [batch, heads, dim] into cache of [batch, heads, length, dim]; an outside one goes to its end."""

    def write(cache: jax.Array, row: jax.Array, position: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(cache, row[:, None], (0, position, 0))

    return jax.vmap(write)(cache, rows, positions)


def write_vmap_set(cache: jax.Array, rows: jax.Array, positions: jax.Array) -> jax.Array:
    """Write rows of [batch, heads, dim] into cache of [batch, heads, length, dim]; a row out of bounds is dropped."""
    return jax.vmap(lambda cache, row, position: cache.at[:, position].set(row))(cache, rows, positions)


def write_rows(cache: jax.Array, rows: jax.Array, positions: jax.Array) -> jax.Array:
    """Write rows of [batch, heads, dim] into cache of [batch, heads, length, dim]; a row out of bounds is dropped."""
    return cache.at[jnp.arange(cache.shape[0]), :, positions].set(rows)


# --- the decode step ----------------------------------------------------------------------------------------------


def step(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, config: Config, write: Write
) -> tuple[jax.Array, Cache]:
    """Take one token per sequence, write its key and value at the sequence's position, and predict the next token.

    Args:
      params: weights, as `llama.param_specs` lays them out.
      caches: KV caches, as `llama.cache_specs` lays them out; donated.
      tokens: [batch] int32.
      positions: [batch] int32, the length of each sequence so far; a query sees that many rows and its own.
      config: the size.
      write: how the cache is written.

    Returns:
      Logits of [batch, vocab] in float32, and the caches.
    """
    x = params["embedding"][tokens][:, None]
    own = positions[:, None, None]  # [batch, heads, S], the same for every head
    cos, sin = llama.rotary(own, config)
    written: Cache = []
    for i, (layer, cache) in enumerate(zip(params["layers"], caches, strict=True)):
        with jax.named_scope(f"layer_{i}"):
            q, k, v = llama.project(layer, x, cos, sin, config)
            k_cache = write(cache["k"], k[:, :, 0], positions)
            v_cache = write(cache["v"], v[:, :, 0], positions)
            x = x + llama.attend(q, k_cache, v_cache, own[..., None]) @ layer["wo"]
            x = x + llama.feed_forward(layer, x, config)
            written.append({"k": k_cache, "v": v_cache})
    return llama.logits_of(params, x[:, 0], config), written


def decode_vmap_slice(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`step` with a vmapped dynamic_update_slice. Batch and cache length may be symbolic."""
    return step(params, caches, tokens, positions, config, write_vmap_slice)


def decode_vmap_set(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`step` with a vmapped `.at[:, position].set`. Batch and cache length may be symbolic."""
    return step(params, caches, tokens, positions, config, write_vmap_set)


def decode_rows(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`step` with `.at[arange(batch), :, positions].set`. Batch and cache length may be symbolic."""
    return step(params, caches, tokens, positions, config, write_rows)


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of the three."""
    per_sequence = jax.ShapeDtypeStruct((config.batch,), jnp.int32)
    return llama.param_specs(config), llama.cache_specs(config), per_sequence, per_sequence


EXPORTS = {
    name: {"args": decode_args, "config": SIZE, "presets": PRESETS, "donate": (1,)}
    for name in ("decode_vmap_slice", "decode_vmap_set", "decode_rows")
}
