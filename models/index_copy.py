"""A decoder whose positions are int64 arguments that index the cache as they are, as PyTorch's exports have them.

A static KV cache in PyTorch takes a `cache_position` tensor of int64, and `cache.index_copy_(2, cache_position, k)`
becomes a scatter over that argument itself: no negative index is counted from the end, nothing is clamped, no
arithmetic says that the rows are consecutive, and the indices stay 64 bits wide.

    hlo-lower export models/index_copy.py:decode -o decode.mlir
    hlo-lower export models/index_copy.py:prefill -o prefill.mlir --set prompt=32
    hlo-lower export models/index_copy.py:prefill -o open.mlir --shapes ... "b, _, t, _" "b, s" s

The entries of `EXPORTS` say `"x64"`, so JAX keeps the 64 bits without a flag.
"""

from typing import Any

import jax
import jax.numpy as jnp
import llama
from llama import PRESETS, Cache, Config, Params

INDEX_COPY = jax.lax.ScatterDimensionNumbers(
    update_window_dims=(0, 1, 3), inserted_window_dims=(2,), scatter_dims_to_operand_dims=(2,)
)


def index_copy(cache: jax.Array, positions: jax.Array, rows: jax.Array) -> jax.Array:
    """`cache.index_copy_(2, positions, rows)`: row s goes to positions[s]; one that is out of bounds is dropped.

    Args:
      cache: [batch, heads, length, dim].
      positions: [S] int64, from 0 on.
      rows: [batch, heads, S, dim].
    """
    return jax.lax.scatter(cache, positions[:, None], rows, INDEX_COPY, mode=jax.lax.GatherScatterMode.FILL_OR_DROP)


def forward(
    params: Params, caches: Cache, tokens: jax.Array, cache_position: jax.Array, config: Config
) -> tuple[jax.Array, Cache]:
    """Take S tokens per sequence, write their keys and values at cache_position, and give the last layer's output.

    Args:
      params: weights, as `llama.param_specs` lays them out.
      caches: KV caches, as `llama.cache_specs` lays them out; donated.
      tokens: [batch, S] int64.
      cache_position: [S] int64, where each token stands.
      config: the size.

    Returns:
      [batch, S, hidden], and the caches.
    """
    x = params["embedding"][tokens]
    cos, sin = llama.rotary(cache_position, config)
    written: Cache = []
    for i, (layer, cache) in enumerate(zip(params["layers"], caches, strict=True)):
        with jax.named_scope(f"layer_{i}"):
            q, k, v = llama.project(layer, x, cos, sin, config)
            k_cache = index_copy(cache["k"], cache_position, k)
            v_cache = index_copy(cache["v"], cache_position, v)
            x = x + llama.attend(q, k_cache, v_cache, cache_position) @ layer["wo"]
            x = x + llama.feed_forward(layer, x, config)
            written.append({"k": k_cache, "v": v_cache})
    return x, written


def decode(
    params: Params, caches: Cache, tokens: jax.Array, cache_position: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """One token per sequence: tokens of [batch, 1], cache_position of [1]. Batch and cache length may be symbolic.

    Returns:
      Logits of [batch, vocab] in float32, and the caches.
    """
    x, written = forward(params, caches, tokens, cache_position, config)
    return llama.logits_of(params, x[:, 0], config), written


def prefill(
    params: Params, caches: Cache, tokens: jax.Array, cache_position: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """S tokens per sequence: cache_position of [S]. Batch, cache length and S may be symbolic.

    Returns:
      Logits of [batch, S, vocab] in float32, and the caches.
    """
    x, written = forward(params, caches, tokens, cache_position, config)
    return llama.logits_of(params, x, config), written


def arguments(config: Config, count: int) -> tuple[Any, ...]:
    """Example arguments of a step over count tokens."""
    tokens = jax.ShapeDtypeStruct((config.batch, count), jnp.dtype("int64"))
    position = jax.ShapeDtypeStruct((count,), jnp.dtype("int64"))
    return llama.param_specs(config), llama.cache_specs(config), tokens, position


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode`."""
    return arguments(config, 1)


def prefill_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `prefill`."""
    return arguments(config, config.prompt)


EXPORTS = {
    "decode": {"args": decode_args, "config": Config(), "presets": PRESETS, "donate": (1,), "x64": True},
    "prefill": {"args": prefill_args, "config": Config(), "presets": PRESETS, "donate": (1,), "x64": True},
}
