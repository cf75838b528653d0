"""The kernels of paged attention: loads, QK, softmax prepare, PV and online update, on one block or on two that touch.

A kernel's keys and values are n pool rows: block_size of them in the one-block form, 2 * block_size in the two-block
form. Either way they are one contiguous load, which all tiles of queries share: keys are turned and values masked as
they are loaded. Sums are float32 throughout.

Pages that a sequence does not own may hold anything, NaN too. So what is masked is selected away, in scores and in
values: a weight of zero alone would not do, as 0 * NaN is NaN.

In an export each kernel is a composite of its name, so that a consumer can put one of its own in its place:

    %s = stablehlo.composite "paged.qk" %q, %keys {composite_attributes = {block_size = 4, blocks = 2}, ...}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


@dataclass(frozen=True)
class Form:
    """How many neighbouring blocks a kernel takes at once."""

    blocks: int

    def places(self, offsets: jax.Array) -> jax.Array:
        """The places of the loaded rows, counted from the first: offsets of [block_size], for each block further on."""
        return jnp.concatenate([offsets + i * offsets.shape[0] for i in range(self.blocks)])


ONE_BLOCK = Form(1)
TWO_BLOCKS = Form(2)


def called(kernel: Callable[..., Any], attributes: Mapping[str, int] | None, **static: Any) -> Callable[..., Any]:
    """A kernel as a composite of its name and these attributes, or itself for None; it is given what is static."""
    given = partial(kernel, **static)
    if attributes is None:
        return given
    return partial(lax.composite(lambda *operands, **_: given(*operands), f"paged.{kernel.__name__}"), **attributes)


class Running(NamedTuple):
    """Softmax so far, of a tile of r queries: all float32, mixed not yet divided by total.

    Attributes:
      largest: [kv_heads, r], -inf where nothing was seen.
      total: [kv_heads, r], the sum of exp(score - largest).
      mixed: [kv_heads, r, head_dim], the values so weighted.
    """

    largest: jax.Array
    total: jax.Array
    mixed: jax.Array


def nothing_yet(q: jax.Array) -> Running:
    """The start for a tile of queries [kv_heads, r, head_dim]."""
    rows = jnp.zeros(q.shape[:2], jnp.float32)
    return Running(jnp.full_like(rows, -jnp.inf), rows, jnp.zeros(q.shape, jnp.float32))


def load_keys(pool: jax.Array, first: jax.Array, *, rows: int) -> jax.Array:
    """Keys [kv_heads, n, head_dim] of n pool rows from the first one on.

    Rows stay whole; left to XLA's CPU, a key's dims would be scattered over columns.
    """
    return _load(pool, first, rows).swapaxes(0, 1)


def load_values(pool: jax.Array, first: jax.Array, owned: jax.Array, *, rows: int) -> jax.Array:
    """Values [n, kv_heads, head_dim] of n pool rows from the first one on; a row that is not owned, [n], is zero."""
    return jnp.where(owned[:, None, None], _load(pool, first, rows), jnp.zeros((), pool.dtype))


def _load(pool: jax.Array, first: jax.Array, rows: int) -> jax.Array:
    """Rows of a pool in one slice.

    A slice that reached past the pool would be moved back, silently; the plan of loads has none that does.
    """
    return lax.dynamic_slice(pool, (first, 0, 0), (rows, *pool.shape[1:]))


def qk(q: jax.Array, keys: jax.Array) -> jax.Array:
    """Scores [kv_heads, r, n] of scaled queries [kv_heads, r, head_dim] and keys [kv_heads, n, head_dim]."""
    return jnp.einsum("hrd,hnd->hrn", q, keys, preferred_element_type=jnp.float32)


def softmax_prepare(scores: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Exponentials of scores against their own maximum, what is not seen left out.

    In a partly filled last block only the first rows are seen; where a query sees nothing at all, all are zero.

    Args:
      scores: [kv_heads, r, n].
      seen: [r, n], whether a query sees a row.

    Returns:
      Exponentials [kv_heads, r, n], their maxima and sums [kv_heads, r].
    """
    masked = jnp.where(seen, scores, -jnp.inf)
    largest = jnp.max(masked, axis=-1)
    p = jnp.exp(masked - _finite(largest)[..., None])
    return p, largest, jnp.sum(p, axis=-1)


def pv(p: jax.Array, values: jax.Array) -> jax.Array:
    """Values [n, kv_heads, head_dim] weighted by p [kv_heads, r, n]."""
    return jnp.einsum("hrn,nhd->hrd", p.astype(values.dtype), values, preferred_element_type=jnp.float32)


def online_update(running: Running, largest: jax.Array, total: jax.Array, mixed: jax.Array) -> Running:
    """Join what was seen so far with a further load, both rescaled to the larger maximum."""
    joint = jnp.maximum(running.largest, largest)
    before = jnp.exp(running.largest - _finite(joint))
    now = jnp.exp(largest - _finite(joint))
    return Running(
        joint,
        before * running.total + now * total,
        before[..., None] * running.mixed + now[..., None] * mixed,
    )


def finish(running: Running) -> jax.Array:
    """The attention [kv_heads, r, head_dim]; zeros where nothing was seen."""
    return running.mixed / jnp.where(running.total == 0, 1, running.total)[..., None]


def _finite(largest: jax.Array) -> jax.Array:
    """A maximum to subtract: -inf, where nothing was seen, would give -inf - -inf."""
    return jnp.where(largest == -jnp.inf, 0, largest)
