"""Which loads a step makes: pairs of blocks that lie next to each other in the pool, and the other blocks one by one.

From left to right, two neighbouring entries of a sequence's table whose blocks touch (the second is the first plus one)
are a pair; every other entry is a load of its own: the odd block of a run, the partly filled last one. An entry that is
not used, or names no block of the pool, is no load. So the second block of a pair exists, and no load passes the pool.

At run time the loads of a form are a linked list in the table's own order, which running minima make: a sort would
make a plain list, but not every consumer of an export has one. At build time they are a plain list.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from paged.kernels import ONE_BLOCK, TWO_BLOCKS, Form

Integers = jax.Array | NDArray[np.int32]


class Tier(NamedTuple):
    """The loads of one form, of each sequence.

    Attributes:
      form: how many blocks a load takes.
      places: int32, of a list [batch, loads + 1] the entry of the table at which each load begins; of a linked list
        [batch, max_blocks + 1] the first entry from each on at which a load begins. Load 0 is at places[0] in both.
      count: [batch] int32, how many loads are made.
      linked: whether it is a linked list.
    """

    form: Form
    places: Integers
    count: jax.Array
    linked: bool


class Plan(NamedTuple):
    """The loads of a step: those of each tier, and the block table [batch, max_blocks] that their places are in."""

    table: Integers
    tiers: Sequence[Tier]


def plan_tiers(
    table: Integers,
    lengths: jax.Array,
    block_size: int,
    total_pool_blocks: int,
    *,
    tiers: int = 2,
    references: jax.Array | None = None,
) -> Plan:
    """Plan the loads of a step: now, where the table is a NumPy array, else with operations of the program.

    Args:
      table: [batch, max_blocks] int32.
      lengths: [batch] int32, tokens of each sequence; entries from there on are not used, whatever they hold.
      block_size: tokens in a block.
      total_pool_blocks: blocks in the pool.
      tiers: 1 makes no pairs.
      references: [total_pool_blocks] int32, sequences that hold a block; one that nobody holds is not loaded. Without
        it all may be. Only for a table that is an argument.
    """
    if isinstance(table, np.ndarray):
        return _plan_at_build_time(table, lengths, block_size, total_pool_blocks, tiers)
    return _plan_at_run_time(table, lengths, block_size, total_pool_blocks, tiers, references)


def _plan_at_run_time(
    table: jax.Array, lengths: jax.Array, block_size: int, total: int, tiers: int, references: jax.Array | None
) -> Plan:
    columns = jnp.broadcast_to(jnp.arange(table.shape[1], dtype=jnp.int32), table.shape)
    usable = (columns * block_size < lengths[:, None]) & (table >= 0) & (table < total)
    if references is not None:
        usable &= references.at[table].get(mode="clip") > 0
    if tiers == 1:
        return Plan(table, [_tier(ONE_BLOCK, usable, columns)])
    touches = usable[:, 1:] & usable[:, :-1] & (table[:, 1:] - 1 == table[:, :-1])
    none = jnp.zeros_like(usable[:, :1])
    begins = lax.cummax(jnp.where(jnp.concatenate([none, touches], axis=1), 0, columns), axis=1)
    even = usable & ((columns - begins) % 2 == 0)  # of its run of touching blocks
    pairs = even & jnp.concatenate([touches, none], axis=1)
    return Plan(table, [_tier(TWO_BLOCKS, pairs, columns), _tier(ONE_BLOCK, even & ~pairs, columns)])


def _tier(form: Form, is_load: jax.Array, columns: jax.Array) -> Tier:
    end = jnp.full_like(columns[:, :1], columns.shape[1])
    following = lax.cummin(jnp.where(is_load, columns, end), axis=1, reverse=True)
    return Tier(form, jnp.concatenate([following, end], axis=1), _count(is_load), linked=True)


def _plan_at_build_time(table: NDArray[np.int32], lengths: jax.Array, block_size: int, total: int, tiers: int) -> Plan:
    """Constant loads; at run time only the length says how many of them are made, as their places ascend.

    A tier that no sequence has is left out.
    """
    is_load = {form: np.zeros(table.shape, bool) for form in (TWO_BLOCKS, ONE_BLOCK)}
    for i, row in enumerate(table.tolist()):
        place = 0
        while place < len(row):
            ends = place + 1 == len(row)
            paired = tiers == 2 and not ends and row[place + 1] == row[place] + 1 and 0 <= row[place] < total - 1
            form = TWO_BLOCKS if paired else ONE_BLOCK
            is_load[form][i, place] = 0 <= row[place] < total
            place += form.blocks
    return Plan(table, [_constant_tier(form, at, lengths, block_size) for form, at in is_load.items() if at.any()])


def _constant_tier(form: Form, is_load: NDArray[np.bool_], lengths: jax.Array, block_size: int) -> Tier:
    places = np.zeros((len(is_load), int(is_load.sum(axis=1).max()) + 1), np.int32)
    for i, row in enumerate(is_load):
        places[i, : row.sum()] = np.flatnonzero(row)
    columns = np.arange(is_load.shape[1], dtype=np.int32)
    return Tier(form, places, _count(is_load & (columns * block_size < lengths[:, None])), linked=False)


def _count(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags, axis=1, dtype=jnp.int32)
