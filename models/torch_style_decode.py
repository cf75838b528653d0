"""A decode step as torch_xla exports it: the cache's indices are int64 arguments, and int64 all the way to the scatter.

    cache.index_put_((sequences, None, positions), rows)          # a sequence each, at its own position
    pool.view(-1, heads, dim).index_copy_(0, slot_mapping, rows)  # a paged cache, by slots

PyTorch counts a negative index of `index_put_` from the end (`select(i < 0, i + n, i)`, in int64); `index_copy_` takes
slots as they are, so that a slot of -1, which padding tokens have, is dropped. IREE 3.13 does not compile scatters with
such indices; converted, nothing but plain 64-bit arithmetic is left of them.

    hlo-lower export models/torch_style_decode.py:index_put -o index_put.mlir
    hlo-lower export models/torch_style_decode.py:paged -o paged.mlir --set block=8
    hlo-lower convert index_put.mlir -o plain.mlir --target iree
    hlo-lower verify --on iree index_put.mlir plain.mlir

The entries of `EXPORTS` say `"x64"`, so JAX keeps the 64 bits without a flag.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import llama
from llama import Cache, Config, Params

PUT = jax.lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(0, 2), scatter_dims_to_operand_dims=(0, 2)
)
COPY = jax.lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)


@dataclass(frozen=True)
class PagedConfig(Config):
    """The size of a decoder with a paged cache: `block` tokens in a block, max_length of them for a sequence."""

    block: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.block < 1 or self.max_length % self.block:
            raise ValueError(f"block={self.block} must be at least 1 and divide max_length={self.max_length}")

    @property
    def blocks(self) -> int:
        """Blocks of a sequence."""
        return self.max_length // self.block


SIZE = Config(batch=4)
PRESETS = {"tiny": SIZE, "llama_1b": replace(llama.PRESETS["llama_1b"], batch=8)}
PAGED_SIZE = PagedConfig(batch=4)
PAGED_PRESETS = {"tiny": PAGED_SIZE, "llama_1b": PagedConfig(**vars(PRESETS["llama_1b"]))}


# --- the two writes -----------------------------------------------------------------------------------------------


def write_index_put(cache: jax.Array, sequences: jax.Array, positions: jax.Array, rows: jax.Array) -> jax.Array:
    """`cache.index_put_((sequences, None, positions), rows)`, negative indices counted from the end.

    Args:
      cache: [batch, heads, length, dim].
      sequences: [N] int64.
      positions: [N] int64; a row that is still out of bounds is dropped.
      rows: [N, heads, dim].
    """
    pairs = [jnp.where(i < 0, i + n, i) for i, n in ((sequences, cache.shape[0]), (positions, cache.shape[2]))]
    return jax.lax.scatter(cache, jnp.stack(pairs, 1), rows, PUT, mode=jax.lax.GatherScatterMode.FILL_OR_DROP)


def write_slots(pool: jax.Array, slots: jax.Array, rows: jax.Array) -> jax.Array:
    """`pool.view(-1, heads, dim).index_copy_(0, slots, rows)`; a slot out of bounds, such as -1, is dropped.

    Args:
      pool: [blocks, block, heads, dim].
      slots: [N] int64: block * its size + place in it.
      rows: [N, heads, dim].
    """
    flat = pool.reshape(-1, *pool.shape[2:])
    written = jax.lax.scatter(flat, slots[:, None], rows, COPY, mode=jax.lax.GatherScatterMode.FILL_OR_DROP)
    return written.reshape(pool.shape)


# --- the decode steps ---------------------------------------------------------------------------------------------


def step(
    params: Params, caches: Cache, tokens: jax.Array, positions: jax.Array, config: Config, put: Callable[..., Any]
) -> tuple[jax.Array, Cache]:
    """Take one token per sequence, write its key and value, and predict the next one.

    Args:
      params: weights, as `llama.param_specs` lays them out.
      caches: per layer k and v; donated.
      tokens: [batch] int64.
      positions: [batch] int64; a query sees that many rows and its own.
      config: the size.
      put: writes rows of [batch, heads, dim] into a cache, and gives it and what is attended to of it.

    Returns:
      Logits of [batch, vocab] in float32, and the caches.
    """
    x = params["embedding"][tokens][:, None]
    own = positions[:, None, None]
    cos, sin = llama.rotary(own, config)
    written: Cache = []
    for i, (layer, cache) in enumerate(zip(params["layers"], caches, strict=True)):
        with jax.named_scope(f"layer_{i}"):
            q, k, v = llama.project(layer, x, cos, sin, config)
            k_cache, keys = put(cache["k"], k[:, :, 0])
            v_cache, values = put(cache["v"], v[:, :, 0])
            x = x + llama.attend(q, keys, values, own[..., None]) @ layer["wo"]
            x = x + llama.feed_forward(layer, x, config)
            written.append({"k": k_cache, "v": v_cache})
    return llama.logits_of(params, x[:, 0], config), written


def index_put(
    params: Params, caches: Cache, tokens: jax.Array, sequences: jax.Array, positions: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """`step` over a static cache, as `llama.cache_specs` lays it out: sequences and positions of [batch] int64."""

    def put(cache: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        cache = write_index_put(cache, sequences, positions, rows)
        return cache, cache

    return step(params, caches, tokens, positions, config, put)


def paged(
    params: Params,
    pools: Cache,
    tokens: jax.Array,
    slot_mapping: jax.Array,
    block_table: jax.Array,
    positions: jax.Array,
    *,
    config: PagedConfig,
) -> tuple[jax.Array, Cache]:
    """`step` over a paged cache.

    Args:
      params: weights.
      pools: per layer k and v of [batch * blocks, block, kv_heads, head_dim]; donated.
      tokens: [batch] int64.
      slot_mapping: [batch] int64, where each token goes; -1 for a token that is padding.
      block_table: [batch, blocks] int64, the blocks of each sequence.
      positions: [batch] int64.
      config: the size.
    """

    def put(pool: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        pool = write_slots(pool, slot_mapping, rows)
        own = pool[block_table]  # [batch, blocks, block, heads, dim]
        return pool, own.reshape(own.shape[0], -1, *own.shape[3:]).swapaxes(1, 2)

    return step(params, pools, tokens, positions, config, put)


def index_put_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `index_put`."""
    per_sequence = jax.ShapeDtypeStruct((config.batch,), jnp.dtype("int64"))
    return llama.param_specs(config), llama.cache_specs(config), per_sequence, per_sequence, per_sequence


def paged_args(config: PagedConfig) -> tuple[Any, ...]:
    """Example arguments of `paged`."""
    shape = (config.batch * config.blocks, config.block, config.kv_heads, config.head_dim)
    pool = jax.ShapeDtypeStruct(shape, jnp.dtype(config.dtype))
    pools = [{"k": pool, "v": pool} for _ in range(config.layers)]
    per_sequence = jax.ShapeDtypeStruct((config.batch,), jnp.dtype("int64"))
    table = jax.ShapeDtypeStruct((config.batch, config.blocks), jnp.dtype("int64"))
    return llama.param_specs(config), pools, per_sequence, per_sequence, table, per_sequence


EXPORTS = {
    "index_put": {"args": index_put_args, "config": SIZE, "presets": PRESETS, "donate": (1,), "x64": True},
    "paged": {"args": paged_args, "config": PAGED_SIZE, "presets": PAGED_PRESETS, "donate": (1,), "x64": True},
}
