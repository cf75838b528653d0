"""Four ways to write new tokens into a pool of pages. Each leaves JAX as one scatter that drops what is out of bounds.

A server pads its batches: a padding token has slot -1, and one that was cancelled may have a slot past the pool. They
are many and alike, so the scatter's indices are not unique, and dropping them is what keeps other pages whole. None of
the four counts a negative index from the end.
"""

import jax
import jax.numpy as jnp
from jax import lax

ROW = lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
PLACE_IN_BLOCK = lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1)
)


def write_slots(pool: jax.Array, slots: jax.Array, rows: jax.Array) -> jax.Array:
    """Write each row to its slot, block * block_size + the place in it. A slot outside the pool drops its row.

    Args:
      pool: [total_pool_blocks * block_size, kv_heads, head_dim].
      slots: [tokens] int32.
      rows: [tokens, kv_heads, head_dim].
    """
    return lax.scatter(pool, slots[:, None], rows, ROW, mode=lax.GatherScatterMode.FILL_OR_DROP)


def write_blocks(pool: jax.Array, blocks: jax.Array, offsets: jax.Array, rows: jax.Array) -> jax.Array:
    """Write each row to a place of a block. A row is dropped where its block or its offset is outside, each by itself.

    An offset of block_size is not the first place of the next block.

    Args:
      pool: [total_pool_blocks, block_size, kv_heads, head_dim].
      blocks: [tokens] int32.
      offsets: [tokens] int32.
      rows: [tokens, kv_heads, head_dim].
    """
    pairs = jnp.stack([blocks, offsets], axis=1)
    return lax.scatter(pool, pairs, rows, PLACE_IN_BLOCK, mode=lax.GatherScatterMode.FILL_OR_DROP)


def write_pages(pool: jax.Array, pages: jax.Array, chunk: jax.Array) -> jax.Array:
    """Write whole pages of an aligned chunk. Page -1, and one past the pool, drops its page.

    Written with `.at[]`, which counts negative indices from the end; so they go past the end first.

    Args:
      pool: [total_pool_blocks, block_size, kv_heads, head_dim].
      pages: [batch, chunk_blocks] int32.
      chunk: [batch, chunk_blocks, block_size, kv_heads, head_dim].
    """
    return pool.at[jnp.where(pages < 0, pool.shape[0], pages)].set(chunk, mode="drop")


def write_page_slots(pool: jax.Array, pages: jax.Array, chunk: jax.Array) -> jax.Array:
    """Write whole pages of an aligned chunk into a flat pool, by the slots of their rows, which have to fit int32.

    Args:
      pool: [total_pool_blocks * block_size, kv_heads, head_dim].
      pages: [batch, chunk_blocks] int32.
      chunk: [batch, chunk_blocks, block_size, kv_heads, head_dim].
    """
    block_size = chunk.shape[2]
    slots = pages[..., None] * block_size + jnp.arange(block_size, dtype=jnp.int32)
    return write_slots(pool, slots.reshape(-1), chunk.reshape(-1, *pool.shape[1:]))
