"""The suite: what language models scatter, each as a small JAX function with its arguments.

A function holds the scatter and what belongs to it, and as little else as can be: the ratio is that of the scatter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from benchmark.sizes import Sizes

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Case:
    """One class of the suite.

    Attributes:
      name: as `--classes` takes it.
      size: its sizes, for a reader.
      kind: what every scatter of it is classified as.
      function: the JAX function, of positional arguments; one result.
      arguments: makes its arguments.
      donated: whether argument 0 is given away and the result takes its place in the next call.
      float_sum: whether floats are added, so that `float_mode="reassociate"` may differ in rounding.
      tolerance: then, how far a result may be off, as a part of the largest magnitude among the results.
    """

    name: str
    size: str
    kind: str
    function: Callable[..., jax.Array]
    arguments: Callable[[], Arrays]
    donated: bool = False
    float_sum: bool = False
    tolerance: float = 1e-5


def suite(sizes: Sizes) -> tuple[Case, ...]:
    """All classes at these sizes."""
    return (
        _decode(sizes),
        _ragged(sizes),
        _prefill("prefill", sizes, sizes.prompt),
        _prefill("long_prefill", sizes, sizes.long_prompt),
        _paged(sizes),
        _paged_prompt(sizes),
        _embedding_grad(sizes),
        _moe_dispatch(sizes),
        _moe_combine(sizes),
        _cross_entropy_grad(sizes),
        _top_p_mask(sizes),
        _top_p_sorted(sizes),
        _bincount(sizes),
        _weighted_bincount(sizes),
    )


# --- writes into a cache, which is given away ---------------------------------------------------------------------


def _decode(sizes: Sizes) -> Case:
    shape = (1, sizes.heads, sizes.length, sizes.width)

    def decode(cache: jax.Array, row: jax.Array, position: jax.Array) -> jax.Array:
        return cache.at[:, :, position].set(row)

    def arguments() -> Arrays:
        return _noise(shape), _noise((1, sizes.heads, sizes.width), 1), np.int32(sizes.length // 3)[...]

    size = f"1 row into {sizes.heads} x {sizes.length:,} x {sizes.width}"
    return Case("decode", size, "insert_slice", decode, arguments, donated=True)


def _prefill(name: str, sizes: Sizes, rows: int) -> Case:
    shape = (1, sizes.heads, sizes.length, sizes.width)

    def prefill(cache: jax.Array, update: jax.Array, start: jax.Array) -> jax.Array:
        return cache.at[:, :, start + jnp.arange(rows)].set(update)

    def arguments() -> Arrays:
        return _noise(shape), _noise((1, sizes.heads, rows, sizes.width), 1), np.int32(sizes.length // 3)[...]

    size = f"{rows:,} rows into {sizes.heads} x {sizes.length:,} x {sizes.width}"
    return Case(name, size, "insert_slice", prefill, arguments, donated=True)


def _ragged(sizes: Sizes) -> Case:
    shape = (sizes.batch, sizes.kv_heads, sizes.ragged_length, sizes.width)

    def ragged(cache: jax.Array, rows: jax.Array, positions: jax.Array) -> jax.Array:
        return cache.at[jnp.arange(sizes.batch), :, positions].set(rows)

    def arguments() -> Arrays:
        positions = _random().integers(0, sizes.ragged_length, sizes.batch, np.int32)
        return _noise(shape), _noise((sizes.batch, sizes.kv_heads, sizes.width), 1), positions

    size = f"batch {sizes.batch}, 1 row each into {sizes.kv_heads} x {sizes.ragged_length:,} x {sizes.width}"
    return Case("ragged", size, "insert_slice", ragged, arguments, donated=True)


def _paged(sizes: Sizes) -> Case:
    def paged(pages: jax.Array, rows: jax.Array, page: jax.Array, slot: jax.Array) -> jax.Array:
        return pages.at[page, slot].set(rows)

    def arguments() -> Arrays:
        random = _random()
        page = random.permutation(sizes.pages)[: sizes.batch].astype(np.int32)  # a page belongs to one sequence
        slot = random.integers(0, sizes.page, sizes.batch, np.int32)
        return _page_pool(sizes), _noise((sizes.batch, sizes.kv_heads, sizes.width), 1), page, slot

    size = f"{sizes.batch} rows into {sizes.pages:,} pages of {sizes.page} x {sizes.kv_heads} x {sizes.width}"
    return Case("paged", size, "general", paged, arguments, donated=True)


def _paged_prompt(sizes: Sizes) -> Case:
    count = min(sizes.long_prompt, sizes.pages * sizes.page)

    def paged_prompt(pages: jax.Array, rows: jax.Array, table: jax.Array, start: jax.Array) -> jax.Array:
        positions = start + jnp.arange(count)
        return pages.at[table[positions // sizes.page], positions % sizes.page].set(rows)

    def arguments() -> Arrays:
        table = _random().permutation(sizes.pages).astype(np.int32)
        rows = _noise((count, sizes.kv_heads, sizes.width), 1)
        return _page_pool(sizes), rows, table, np.int32(sizes.page // 2)[...]

    size = f"{count:,} rows through a table into {sizes.pages:,} pages of {sizes.page}"
    return Case("paged_prompt", size, "general", paged_prompt, arguments, donated=True)


# --- sums ---------------------------------------------------------------------------------------------------------


def _embedding_grad(sizes: Sizes) -> Case:
    table = jax.ShapeDtypeStruct((sizes.vocab, sizes.hidden), jnp.float32)

    def embedding_grad(tokens: jax.Array, gradient: jax.Array) -> jax.Array:
        return jax.linear_transpose(lambda t: t[tokens], table)(gradient)[0]

    def arguments() -> Arrays:
        return _tokens(sizes.tokens, sizes.vocab), _noise((sizes.tokens, sizes.hidden))

    size = f"{sizes.tokens:,} tokens of {sizes.vocab:,} x {sizes.hidden:,}"
    return Case("embedding_grad", size, "reduction_add", embedding_grad, arguments, float_sum=True)


def _cross_entropy_grad(sizes: Sizes) -> Case:
    log_probs = jax.ShapeDtypeStruct((sizes.tokens, sizes.vocab), jnp.float32)

    def cross_entropy_grad(labels: jax.Array, gradient: jax.Array) -> jax.Array:
        """How the gradient comes back through the pick of each row's label."""
        pick = jax.linear_transpose(lambda p: jnp.take_along_axis(p, labels[:, None], axis=1), log_probs)
        return pick(gradient)[0]

    def arguments() -> Arrays:
        return _tokens(sizes.tokens, sizes.vocab), _noise((sizes.tokens, 1))

    size = f"{sizes.tokens:,} labels of {sizes.vocab:,}"
    return Case("cross_entropy_grad", size, "reduction_add", cross_entropy_grad, arguments, float_sum=True)


def _moe_combine(sizes: Sizes) -> Case:
    rows = sizes.moe_tokens * sizes.top_k

    def moe_combine(done: jax.Array, token: jax.Array) -> jax.Array:
        return jnp.zeros((sizes.moe_tokens, sizes.moe_hidden)).at[token].add(done)

    def arguments() -> Arrays:
        order = np.argsort(_experts(sizes), kind="stable")  # rows stand in the order of their experts
        return _noise((rows, sizes.moe_hidden)), (order // sizes.top_k).astype(np.int32)

    size = f"{rows:,} rows of {sizes.moe_hidden:,} to {sizes.moe_tokens:,} tokens"
    return Case("moe_combine", size, "reduction_add", moe_combine, arguments, float_sum=True)


def _bincount(sizes: Sizes) -> Case:
    def bincount(values: jax.Array) -> jax.Array:
        return jnp.zeros(sizes.bins, jnp.int32).at[values].add(1)

    size = f"{sizes.counted:,} into {sizes.bins:,} bins"
    return Case("bincount", size, "reduction_add", bincount, lambda: (_tokens(sizes.counted, sizes.bins),))


def _weighted_bincount(sizes: Sizes) -> Case:
    def weighted_bincount(values: jax.Array, weights: jax.Array) -> jax.Array:
        return jnp.zeros(sizes.bins).at[values].add(weights)

    def arguments() -> Arrays:
        return _tokens(sizes.counted, sizes.bins), _noise((sizes.counted,))

    size = f"{sizes.counted:,} floats into {sizes.bins:,} bins"
    return Case(
        "weighted_bincount", size, "reduction_add", weighted_bincount, arguments, float_sum=True, tolerance=1e-4
    )


# --- assignments at places that the data chooses ------------------------------------------------------------------


def _moe_dispatch(sizes: Sizes) -> Case:
    rows = sizes.moe_tokens * sizes.top_k
    slots = rows // sizes.experts * 5 // 4

    def moe_dispatch(x: jax.Array, expert: jax.Array, slot: jax.Array) -> jax.Array:
        buffer = jnp.zeros((sizes.experts, slots, sizes.moe_hidden))
        return buffer.at[expert, slot].set(x[jnp.arange(rows) // sizes.top_k], mode="drop")

    def arguments() -> Arrays:
        expert = _experts(sizes)
        before = np.zeros(sizes.experts, np.int64)
        slot = np.empty(rows, np.int32)
        for row, chosen in enumerate(expert):  # the next free slot; those past the last one are dropped
            slot[row] = before[chosen]
            before[chosen] += 1
        return _noise((sizes.moe_tokens, sizes.moe_hidden)), expert, slot

    size = f"{rows:,} rows of {sizes.moe_hidden:,} to {sizes.experts} experts of {slots} slots"
    return Case("moe_dispatch", size, "general", moe_dispatch, arguments)


def _top_p_mask(sizes: Sizes) -> Case:
    def top_p_mask(order: jax.Array, count: jax.Array) -> jax.Array:
        return jnp.zeros(sizes.vocab, bool).at[order].set(jnp.arange(sizes.vocab) < count)

    def arguments() -> Arrays:
        return _random().permutation(sizes.vocab).astype(np.int32), np.int32(sizes.vocab // 40)[...]

    return Case("top_p_mask", f"over {sizes.vocab:,}, the order an argument", "general", top_p_mask, arguments)


def _top_p_sorted(sizes: Sizes) -> Case:
    def top_p_sorted(logits: jax.Array, count: jax.Array) -> jax.Array:
        order = jnp.argsort(logits, descending=True)
        return jnp.zeros(sizes.vocab, bool).at[order].set(jnp.arange(sizes.vocab) < count)

    def arguments() -> Arrays:
        return _noise((sizes.vocab,)), np.int32(sizes.vocab // 40)[...]

    return Case("top_p_sorted", f"over {sizes.vocab:,}, with the sort", "general", top_p_sorted, arguments)


# --- values -------------------------------------------------------------------------------------------------------


def _random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _noise(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float32]:
    """Normal noise that repeats with a prime period, which is quick to make and has no rows alike."""
    return np.resize(_random(seed).standard_normal(1_000_003, np.float32), shape)


def _page_pool(sizes: Sizes) -> NDArray[np.float32]:
    return _noise((sizes.pages, sizes.page, sizes.kv_heads, sizes.width))


def _tokens(count: int, below: int) -> NDArray[np.int32]:
    """Numbers below a limit, the low ones more often: as words in a text."""
    return (_random().random(count) ** 3 * below).astype(np.int32)


def _experts(sizes: Sizes) -> NDArray[np.int32]:
    """The expert of each row, top_k rows per token; the first experts are chosen more often than they have slots."""
    return (_random().random(sizes.moe_tokens * sizes.top_k) ** 1.25 * sizes.experts).astype(np.int32)
