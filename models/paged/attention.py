"""Attention over a pool, as a plan of loads says: for each sequence a loop over its pairs, then one over its singles.

What does not change in a loop stays outside of it: the scaled queries, their tiles, the sequence's loads and length,
and the places of a load's rows.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from paged import kernels
from paged.kernels import Running
from paged.plan import Plan


def attend(
    q: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    plan: Plan,
    positions: jax.Array,
    offsets: jax.Array,
    tile: int,
) -> jax.Array:
    """Attention of queries at positions, each over the tokens of its own sequence up to itself.

    Args:
      q: [batch, S, heads, head_dim].
      k_pool: [total_pool_blocks * block_size, kv_heads, head_dim].
      v_pool: as k_pool.
      plan: the loads, from `plan_tiers`.
      positions: [batch, S] int32; a query at a negative position sees nothing and gives zeros.
      offsets: [block_size] int32, the places in a block, counted from 0.
      tile: queries of one key head that a kernel takes at once.

    Returns:
      [batch, S, heads, head_dim] in q's dtype.
    """
    batch, queries, heads, head_dim = q.shape
    kv_heads = k_pool.shape[1]
    group = heads // kv_heads
    scaled = (q.astype(jnp.float32) * head_dim**-0.5).astype(q.dtype)
    # All queries of a key head together, a token's group beside each other.
    grouped = scaled.reshape(batch, queries, kv_heads, group, head_dim).swapaxes(1, 2)
    grouped = grouped.reshape(batch, kv_heads, queries * group, head_dim)
    own = jnp.broadcast_to(positions[..., None], (batch, queries, group)).reshape(batch, queries * group)
    loads = [(jnp.asarray(tier.places), tier.count) for tier in plan.tiers]

    def sequence(args: tuple[Any, ...]) -> jax.Array:
        q, own, row, loads = args
        tiers = [
            tier._replace(places=places, count=count) for tier, (places, count) in zip(plan.tiers, loads, strict=True)
        ]
        return _attend_one(q, k_pool, v_pool, Plan(row, tiers), own, offsets, tile)

    mixed = lax.map(sequence, (grouped, own, jnp.asarray(plan.table), loads))
    mixed = mixed.reshape(batch, kv_heads, queries, group, head_dim).swapaxes(1, 2)
    return mixed.reshape(q.shape).astype(q.dtype)


def _attend_one(
    q: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    plan: Plan,
    own: jax.Array,
    offsets: jax.Array,
    tile: int,
) -> jax.Array:
    """`attend` for one sequence: q [kv_heads, rows, head_dim], own [rows], the plan of it alone; float32."""
    block_size = offsets.shape[0]
    cuts = range(0, q.shape[1], tile)
    tiles = [(q[:, i : i + tile], own[i : i + tile, None]) for i in cuts]  # the last one keeps what is left
    end = jnp.max(own) + 1
    running = [kernels.nothing_yet(queries) for queries, _ in tiles]
    for tier in plan.tiers:
        within = tier.form.places(offsets)

        def load(i: jax.Array, state: tuple[jax.Array, list[Running]], tier=tier, within=within):
            place, running = state
            block = plan.table[place]
            keys = tier.form.load(k_pool, block, block_size)
            values = tier.form.load(v_pool, block, block_size)
            at = place * block_size + within
            owned = at < end
            joined: list[Running] = []
            for (queries, own), so_far in zip(tiles, running, strict=True):
                scores = kernels.qk(queries, keys)
                p, largest, total = kernels.softmax_prepare(scores, at <= own)
                joined.append(kernels.online_update(so_far, largest, total, kernels.pv(p, values, owned)))
            return tier.places[(place if tier.linked else i) + 1], joined

        _, running = lax.fori_loop(0, tier.count, load, (tier.places[0], running))
    return jnp.concatenate([kernels.finish(of_tile) for of_tile in running], axis=1)
