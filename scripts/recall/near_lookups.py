"""What is no lookup, no accumulation and no layer of its name."""

import jax.numpy as jnp
from jax import lax

from recall.case import bf16, boolean, f32, finds, i32
from recall.near_softmaxes import NEAR

X = f32(8, 8)


@NEAR.case(X, refuses=finds("argmax"))
def argmax_last_of_equals(x):
    positions = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return jnp.max(jnp.where(x == x.max(1, keepdims=True), positions, -1), axis=1)


@NEAR.case(X, X, refuses=finds("argmax"))
def argmax_of_another_maximum(x, y):
    positions = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return jnp.min(jnp.where(x == y.max(1, keepdims=True), positions, 8), axis=1)


NEAR.add("argmin_is_argmax", lambda x: jnp.argmax(x, axis=1), X, refuses=(finds("argmin"), finds("argmax", axis=0)))


@NEAR.case(i32(4), refuses=finds("one_hot"))
def one_hot_from_one(labels):
    return (labels[:, None] == jnp.arange(1, 11)).astype(jnp.float32)


@NEAR.case(i32(4), refuses=finds("one_hot"))
def one_hot_of_all_others(labels):
    return (labels[:, None] != jnp.arange(10)).astype(jnp.float32)


@NEAR.case(i32(4), refuses=finds("one_hot"))
def one_hot_below(labels):
    return (jnp.arange(10) < labels[:, None]).astype(jnp.float32)


NEAR.add("cumsum_without_itself", lambda x: x @ jnp.triu(jnp.ones((8, 8)), k=1), X, refuses=finds("cumsum"))


@NEAR.case(X, refuses=finds("cumsum"))
def cumsum_of_a_short_window(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 4), (1, 1), ((0, 0), (3, 0)))


@NEAR.case(X, refuses=finds("cumsum"))
def cumsum_is_cummax(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 8), (1, 1), ((0, 0), (7, 0)))


@NEAR.case(f32(16, 32), i32(4), refuses=finds("embedding_lookup"))
def embedding_lookup_of_columns(table, tokens):
    return jnp.take(table, tokens, axis=1)


@NEAR.case(X, i32(8), refuses=finds("take_along_axis"))
def take_along_axis_rows_one_further(x, labels):
    return x[jnp.roll(jnp.arange(8), 1), labels]


NEAR.add(
    "top_k_without_the_largest", lambda x: jnp.sort(x, axis=-1, descending=True)[:, 1:4], X, refuses=finds("top_k")
)
NEAR.add("top_k_of_the_smallest", lambda x: jnp.sort(x, axis=-1)[:, :3], X, refuses=finds("top_k", k=3, largest=True))
NEAR.add("linear_bias_of_rows", lambda x, w, b: x @ w + b[:, None], X, X, f32(8), refuses=finds("linear"))
NEAR.add("linear_bias_multiplied", lambda x, w, b: (x @ w) * b, X, X, f32(8), refuses=finds("linear"))
NEAR.add(
    "dropout_of_training", lambda x, keep: jnp.where(keep, x / 0.9, 0.0), X, boolean(8, 8), refuses=finds("dropout")
)
NEAR.add("dropout_times_almost_one", lambda x: x * 1.0001, X, refuses=finds("dropout"))


@NEAR.case(f32(2, 8, 4), f32(2, 1, 4), i32(), refuses=finds("kv_cache_update"))
def kv_cache_update_added(cache, new, position):
    old = lax.dynamic_slice(cache, (0, position, 0), (2, 1, 4))
    return lax.dynamic_update_slice(cache, old + new, (0, position, 0))


@NEAR.case(bf16(8, 4), bf16(3, 4), i32(3), refuses=finds("kv_cache_update"))
def kv_cache_update_accumulated(cache, new, positions):
    return cache.at[positions].add(new)


@NEAR.case(bf16(8, 4), bf16(3, 4), i32(3), refuses=finds("kv_cache_update"))
def kv_cache_update_maximum(cache, new, positions):
    return cache.at[positions].max(new)
