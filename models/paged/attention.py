"""Attention over a pool, as a plan of loads says: for each sequence a loop over its pairs, then one over its singles.

What does not change in a loop stays outside of it: the scaled queries, their tiles, the sequence's loads and length,
and the places of a load's rows.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from paged import kernels
from paged.kernels import Running
from paged.plan import Integers, Plan, Tier


def attend(
    q: jax.Array,
    k_pool: jax.Array,
    v_pool: jax.Array,
    plan: Plan,
    positions: jax.Array,
    offsets: jax.Array,
    tile: int,
    composites: bool = False,
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
      composites: whether each kernel is a composite; where a size is open it is none, as jax.lax.composite has no
        operands for the sizes, which its decomposition takes there.

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
    sizes = (*q.shape, *k_pool.shape, *plan.table.shape, *offsets.shape)
    named = composites and not any(map(jax.export.is_symbolic_dim, sizes))
    loads = [(jnp.asarray(tier.places), tier.count) for tier in plan.tiers]

    def sequence(args: tuple[Any, ...]) -> jax.Array:
        q, own, row, loads = args
        tiers = [
            tier._replace(places=places, count=count) for tier, (places, count) in zip(plan.tiers, loads, strict=True)
        ]
        return _attend_one(q, k_pool, v_pool, Plan(row, tiers), own, offsets, tile, named)

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
    named: bool,
) -> jax.Array:
    """`attend` for one sequence: q [kv_heads, rows, head_dim], own [rows], the plan of it alone; float32."""
    cuts = range(0, q.shape[1], tile)
    tiles = [(q[:, i : i + tile], own[i : i + tile, None]) for i in cuts]  # the last one keeps what is left
    running = [kernels.nothing_yet(queries) for queries, _ in tiles]
    for tier in plan.tiers:
        running = _attend_tier(tier, plan.table, k_pool, v_pool, tiles, running, jnp.max(own) + 1, offsets, named)
    finish = kernels.called(kernels.finish, {} if named else None)
    return jnp.concatenate([finish(of_tile) for of_tile in running], axis=1)


def _attend_tier(
    tier: Tier,
    table: Integers,
    k_pool: jax.Array,
    v_pool: jax.Array,
    tiles: Sequence[tuple[jax.Array, jax.Array]],
    running: list[Running],
    end: jax.Array,
    offsets: jax.Array,
    named: bool,
) -> list[Running]:
    """What tiles of queries [kv_heads, r, head_dim] at positions [r, 1] have so far, joined with a tier's loads."""
    block_size = offsets.shape[0]
    within, rows = tier.form.places(offsets), tier.form.blocks * block_size
    attributes = {"blocks": tier.form.blocks, "block_size": block_size} if named else None
    load_keys = kernels.called(kernels.load_keys, attributes, rows=rows)
    load_values = kernels.called(kernels.load_values, attributes, rows=rows)
    steps = (kernels.qk, kernels.softmax_prepare, kernels.pv, kernels.online_update)
    qk, softmax_prepare, pv, online_update = (kernels.called(kernel, attributes) for kernel in steps)

    def load(i: jax.Array, state: tuple[jax.Array, list[Running]]) -> tuple[jax.Array, list[Running]]:
        place, running = state
        first = table[place] * block_size
        at = place * block_size + within
        keys, values = load_keys(k_pool, first), load_values(v_pool, first, at < end)  # for all tiles
        joined: list[Running] = []
        for (queries, own), so_far in zip(tiles, running, strict=True):
            p, largest, total = softmax_prepare(qk(queries, keys), at <= own)
            joined.append(online_update(so_far, largest, total, pv(p, values)))
        return tier.places[(place if tier.linked else i) + 1], joined

    return lax.fori_loop(0, tier.count, load, (tier.places[0], running))[1]
