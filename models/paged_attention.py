"""Paged attention: a KV cache in pages, written through slots and read through a block table.

A serving stack keeps keys and values of all sequences in one pool of blocks, and for each sequence a table of its
blocks. A step writes the new tokens' keys and values, then attends over all that the sequence has. `decode` takes a
token per sequence, `prefill` a chunk of tokens; queries are grouped, several heads to a key head. The attention is
online softmax over loads of one block, or of two where they lie next to each other in the pool (`paged/plan.py`).

    hlo-lower export models/paged_attention.py:decode -o decode.mlir
    hlo-lower export models/paged_attention.py:prefill -o prefill.mlir --set preset=llama_8b
    hlo-lower export models/paged_attention.py:decode_planned -o planned.mlir --set table=shuffled
    hlo-lower export models/paged_attention.py:decode_open -o open.mlir
    hlo-lower convert open.mlir -o lowered.mlir --bind batch=4,total_pool_blocks=64,block_size=16

The exports `decode_open` and `prefill_open` leave batch, blocks and the size of a block open. A pool of
"total_pool_blocks * block_size" rows shows neither factor, so two more arguments do: the number of sequences that hold
each block, and the places in a block. The writes alone are exports too, in four forms (`paged/writes.py`).
"""

from typing import Any

import jax
import jax.numpy as jnp
from paged import writes
from paged.config import PRESETS, Config, block_pool, constant_table, flat_pool, floats, integers
from paged.step import Step, chunk_positions, decode_step, step

# --- the steps ----------------------------------------------------------------------------------------------------


def places_in_block(config: Config) -> jax.Array:
    """The offsets of a block of config's size."""
    return jnp.arange(config.block_size, dtype=jnp.int32)


def decode(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: jax.Array,
    lengths: jax.Array,
    *,
    config: Config,
) -> Step:
    """Write one token per sequence and attend over all of them.

    Args:
      q: [batch, heads, head_dim].
      k: [batch, kv_heads, head_dim].
      v: as k.
      k_pool: [total_pool_blocks * block_size, kv_heads, head_dim]; donated.
      v_pool: as k_pool; donated.
      slots: [batch] int32.
      table: [batch, max_blocks] int32; entries behind a sequence's last block are not read.
      lengths: [batch] int32, tokens of each sequence with the new one; 0 is no sequence, and gives zeros.
      config: the size.

    Returns:
      [batch, heads, head_dim], and the two pools.
    """
    return decode_step(q, k, v, k_pool, v_pool, slots, table, lengths, places_in_block(config), config)


def decode_planned(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    lengths: jax.Array,
    *,
    config: Config,
) -> Step:
    """`decode` with a constant block table, config's, whose loads are planned while tracing."""
    offsets = places_in_block(config)
    return decode_step(q, k, v, k_pool, v_pool, slots, constant_table(config), lengths, offsets, config)


def decode_open(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: jax.Array,
    lengths: jax.Array,
    references: jax.Array,
    offsets: jax.Array,
    *,
    config: Config,
) -> Step:
    """`decode` for any batch, pool and block size: references is [total_pool_blocks], offsets [block_size], int32."""
    return decode_step(q, k, v, k_pool, v_pool, slots, table, lengths, offsets, config, references)


def prefill(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: jax.Array,
    starts: jax.Array,
    lengths: jax.Array,
    *,
    config: Config,
) -> Step:
    """Write a chunk of S tokens per sequence and attend, each token up to itself.

    Args:
      q: [batch, S, heads, head_dim].
      k: [batch, S, kv_heads, head_dim].
      v: as k.
      k_pool: [total_pool_blocks * block_size, kv_heads, head_dim]; donated.
      v_pool: as k_pool; donated.
      slots: [batch, S] int32, -1 for padding behind a sequence's last token.
      table: [batch, max_blocks] int32.
      starts: [batch] int32, where the chunk's first token stands.
      lengths: [batch] int32, tokens of each sequence with the chunk; what the chunk has beyond is padding.
      config: the size.

    Returns:
      [batch, S, heads, head_dim], zeros for padding, and the two pools.
    """
    own = chunk_positions(starts, lengths, q.shape[1])
    return step(q, k, v, k_pool, v_pool, slots, table, own, places_in_block(config), config)


def prefill_open(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: jax.Array,
    starts: jax.Array,
    lengths: jax.Array,
    references: jax.Array,
    offsets: jax.Array,
    *,
    config: Config,
) -> Step:
    """`prefill` for any batch, pool and block size: references is [total_pool_blocks], offsets [block_size], int32."""
    own = chunk_positions(starts, lengths, q.shape[1])
    return step(q, k, v, k_pool, v_pool, slots, table, own, offsets, config, references)


# --- the writes alone ---------------------------------------------------------------------------------------------


def write_slots(pool: jax.Array, slots: jax.Array, rows: jax.Array, *, config: Config) -> jax.Array:
    """`writes.write_slots`, into a flat pool; config has the sizes of the example."""
    del config
    return writes.write_slots(pool, slots, rows)


def write_blocks(
    pool: jax.Array, blocks: jax.Array, offsets: jax.Array, rows: jax.Array, *, config: Config
) -> jax.Array:
    """`writes.write_blocks`, into a pool by blocks, each row by block and offset."""
    del config
    return writes.write_blocks(pool, blocks, offsets, rows)


def write_pages(pool: jax.Array, pages: jax.Array, chunk: jax.Array, *, config: Config) -> jax.Array:
    """`writes.write_pages`, into a pool by blocks, whole blocks at once."""
    del config
    return writes.write_pages(pool, pages, chunk)


def write_page_slots(pool: jax.Array, pages: jax.Array, chunk: jax.Array, *, config: Config) -> jax.Array:
    """`writes.write_page_slots`, into a flat pool, whole blocks at once."""
    del config
    return writes.write_page_slots(pool, pages, chunk)


# --- what `hlo-lower export` needs to know ------------------------------------------------------------------------


def step_args(config: Config, *tokens: int) -> tuple[Any, ...]:
    """q, k, v, the pools and the slots, for tokens of that shape."""
    key = floats(config, *tokens, config.kv_heads, config.head_dim)
    query = floats(config, *tokens, config.heads, config.head_dim)
    return query, key, key, flat_pool(config), flat_pool(config), integers(*tokens)


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode`."""
    table = integers(config.batch, config.max_blocks)
    return *step_args(config, config.batch), table, integers(config.batch)


def planned_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode_planned`."""
    return *step_args(config, config.batch), integers(config.batch)


def decode_open_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode_open`."""
    return *decode_args(config), integers(config.total_pool_blocks), integers(config.block_size)


def prefill_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `prefill`."""
    table, per_sequence = integers(config.batch, config.max_blocks), integers(config.batch)
    return *step_args(config, config.batch, config.chunk), table, per_sequence, per_sequence


def prefill_open_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `prefill_open`."""
    return *prefill_args(config), integers(config.total_pool_blocks), integers(config.block_size)


def slots_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `write_slots`: a token per sequence."""
    return flat_pool(config), integers(config.batch), floats(config, config.batch, *flat_pool(config).shape[1:])


def blocks_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `write_blocks`: a token per sequence."""
    tokens = integers(config.batch)
    return block_pool(config), tokens, tokens, floats(config, config.batch, *block_pool(config).shape[2:])


def pages_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `write_pages`: as many whole blocks as a chunk has, at least one."""
    pages = (config.batch, max(1, config.chunk // config.block_size))
    return block_pool(config), integers(*pages), floats(config, *pages, *block_pool(config).shape[1:])


def page_slots_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `write_page_slots`: as of `write_pages`."""
    return flat_pool(config), *pages_args(config)[1:]


KEY = "config.kv_heads, config.head_dim"
POOL = f"total_pool_blocks * block_size, {KEY}"
TABLE = "batch, config.max_blocks"
DECODE_SHAPES = (
    *("batch, config.heads, config.head_dim", f"batch, {KEY}", f"batch, {KEY}", POOL, POOL),
    *("batch", TABLE, "batch"),
)
PREFILL_SHAPES = (
    *("batch, _, config.heads, config.head_dim", f"batch, _, {KEY}", f"batch, _, {KEY}", POOL, POOL),
    *("batch, _", TABLE, "batch", "batch"),
)
# A pair of blocks is loaded at once, so the pool has two; JAX does not conclude that from total_pool_blocks >= 2.
SIZES = ("total_pool_blocks", "block_size", "total_pool_blocks * block_size >= 2 * block_size")


def entry(args: Any, *donate: int, shapes: tuple[str, ...] | None = None) -> dict[str, Any]:
    """An entry of `EXPORTS`, at every preset."""
    fields = {"args": args, "config": Config(), "presets": PRESETS, "donate": donate}
    return fields if shapes is None else {**fields, "shapes": shapes}


EXPORTS = {
    "decode": entry(decode_args, 3, 4),
    "decode_planned": entry(planned_args, 3, 4),
    "prefill": entry(prefill_args, 3, 4),
    "decode_open": entry(decode_open_args, 3, 4, shapes=(*DECODE_SHAPES, *SIZES)),
    "prefill_open": entry(prefill_open_args, 3, 4, shapes=(*PREFILL_SHAPES, *SIZES)),
    "write_slots": entry(slots_args, 0),
    "write_blocks": entry(blocks_args, 0),
    "write_pages": entry(pages_args, 0),
    "write_page_slots": entry(page_slots_args, 0),
}
