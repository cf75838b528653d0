"""A step of paged attention: the new tokens' keys and values are written, then each attends up to itself."""

import jax
import jax.numpy as jnp

from paged.attention import attend
from paged.config import Config
from paged.plan import Integers, plan_tiers
from paged.writes import write_slots

Step = tuple[jax.Array, jax.Array, jax.Array]


def step(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: Integers,
    positions: jax.Array,
    offsets: jax.Array,
    config: Config,
    references: jax.Array | None = None,
) -> Step:
    """Write S new tokens per sequence, then attend over each sequence up to each of them.

    Args:
      q: [batch, S, heads, head_dim].
      k: [batch, S, kv_heads, head_dim].
      v: as k.
      k_pool: [total_pool_blocks * block_size, kv_heads, head_dim]; donated.
      v_pool: as k_pool; donated.
      slots: [batch, S] int32, where each token goes; one outside the pool, such as -1, is dropped.
      table: [batch, max_blocks] int32, the blocks of each sequence; a NumPy array is planned while tracing.
      positions: [batch, S] int32, where each token stands in its sequence; -1 for padding, whose result is zeros.
      offsets: [block_size] int32: 0, 1, 2, ...
      config: `tile`, `tiers` and `composites` of it count here.
      references: [total_pool_blocks] int32, the sequences that hold a block.

    Returns:
      [batch, S, heads, head_dim], and the two pools.
    """
    flat = slots.reshape(-1)
    k_pool = write_slots(k_pool, flat, k.reshape(-1, *k.shape[2:]))
    v_pool = write_slots(v_pool, flat, v.reshape(-1, *v.shape[2:]))
    block_size = offsets.shape[0]
    blocks = k_pool.shape[0] // block_size if references is None else references.shape[0]
    lengths = jnp.max(positions, axis=1) + 1
    plan = plan_tiers(table, lengths, block_size, blocks, tiers=config.tiers, references=references)
    return attend(q, k_pool, v_pool, plan, positions, offsets, config.tile, config.composites), k_pool, v_pool


def decode_step(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    slots: jax.Array,
    table: Integers,
    lengths: jax.Array,
    offsets: jax.Array,
    config: Config,
    references: jax.Array | None = None,
) -> Step:
    """`step` for one token per sequence, at the end of each."""
    own = lengths[:, None] - 1
    new = (q[:, None], k[:, None], v[:, None])
    out, *pools = step(*new, k_pool, v_pool, slots[:, None], table, own, offsets, config, references)
    return out[:, 0], *pools


def chunk_positions(starts: jax.Array, lengths: jax.Array, tokens: int) -> jax.Array:
    """Positions [batch, S] of a chunk's tokens, -1 where it is padded."""
    positions = starts[:, None] + jnp.arange(tokens, dtype=jnp.int32)
    return jnp.where(positions < lengths[:, None], positions, -1)
