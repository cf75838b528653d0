"""top_k, argmax, argmin, one_hot, embedding_lookup, take_along_axis as people write them."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds, i32

JAX = Suite("JAX models")
NUMPY = Suite("numpy-like")
TORCH = Suite("torch.export")
LAYERS = Suite("layer libraries")

X = f32(4, 8)


JAX.add("top_k", lambda x: lax.top_k(x, 3), X, finds=finds("top_k", k=3))


@NUMPY.case(X, finds=finds("top_k", k=3))
def top_k_by_argsort(x):
    order = jnp.argsort(-x, axis=-1)[:, :3]
    return jnp.take_along_axis(x, order, axis=-1), order


@NUMPY.case(f16(4, 8), finds=finds("top_k", k=2))
def top_k_by_sorting_down(x):
    return jnp.sort(x, axis=-1, descending=True)[:, :2]


@TORCH.case(bf16(4, 8), finds=finds("top_k", k=3))
def top_k_by_sort_of_pairs(x):
    positions = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    negated, positions = lax.sort((-x, positions), dimension=1, num_keys=1)
    return -negated[:, :3], positions[:, :3]


@LAYERS.case(f32(8, 4), finds=finds("top_k", k=2))
def top_k_first_axis(x):
    values, positions = lax.top_k(x.T, 2)
    return values.T, positions.T


JAX.add("argmax", lambda x: jnp.argmax(x, axis=-1), X, finds=finds("argmax", axis=1))


NUMPY.add(
    "argmax_first_axis_kept", lambda x: jnp.argmax(x, axis=0, keepdims=True), bf16(4, 8), finds=finds("argmax", axis=0)
)


LAYERS.add("argmax_of_lax", lambda x: lax.argmax(x, 1, jnp.int32), X, finds=finds("argmax", axis=1))


@NUMPY.case(X, finds=finds("argmax", axis=1))
def argmax_by_smallest_equal(x):
    positions = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return jnp.min(jnp.where(x == x.max(1, keepdims=True), positions, 8), axis=1)


TORCH.add("argmax_of_all", lambda x: jnp.argmax(x), f16(4, 8), finds=finds("argmax"))
JAX.add("argmin", lambda x: jnp.argmin(x, axis=-1), X, finds=finds("argmin", axis=1))
NUMPY.add("argmin_of_integers", lambda x: jnp.argmin(x, axis=0), i32(4, 8), finds=finds("argmin", axis=0))
LAYERS.add("argmin_of_lax", lambda x: lax.argmin(x, 1, jnp.int32), f16(4, 8), finds=finds("argmin", axis=1))
TORCH.add("argmin_of_all", lambda x: jnp.argmin(x), bf16(4, 8), finds=finds("argmin"))
JAX.add("one_hot", lambda labels: jax.nn.one_hot(labels, 10), i32(4), finds=finds("one_hot", depth=10))


@NUMPY.case(i32(2, 4), finds=finds("one_hot", depth=10))
def one_hot_by_comparison(labels):
    return (labels[..., None] == jnp.arange(10)).astype(jnp.bfloat16)


@JAX.case(i32(4), finds=finds("one_hot", depth=10, axis=0))
def one_hot_first_axis(labels):
    return jax.nn.one_hot(labels, 10, axis=0, dtype=jnp.float16)


@TORCH.case(i32(4), finds=finds("one_hot", depth=10))
def one_hot_by_select(labels):
    same = lax.eq(jnp.broadcast_to(labels[:, None], (4, 10)), lax.broadcasted_iota(jnp.int32, (4, 10), 1))
    return jnp.where(same, jnp.float32(1), jnp.float32(0))


NUMPY.add(
    "one_hot_by_rows_of_the_identity", lambda labels: jnp.eye(10)[labels], i32(4), finds=finds("one_hot", depth=10)
)


TABLE, TOKENS = f32(32, 16), i32(2, 4)


@LAYERS.case(TABLE, TOKENS, finds=finds("embedding_lookup"))
def embedding_lookup_by_take(table, tokens):
    return jnp.take(table, tokens, axis=0)


@NUMPY.case(bf16(32, 16), TOKENS, finds=finds("embedding_lookup"))
def embedding_lookup_by_indexing(table, tokens):
    return table[tokens]


@LAYERS.case(f16(32, 16), TOKENS, finds=finds("embedding_lookup"))
def embedding_lookup_clipped(table, tokens):
    return jnp.take(table, tokens, axis=0, mode="clip")


@TORCH.case(TABLE, TOKENS, finds=finds("embedding_lookup"))
def embedding_lookup_flat_in_bounds(table, tokens):
    return table.at[tokens.reshape(-1)].get(mode="promise_in_bounds").reshape(2, 4, 16)


@LAYERS.case(TABLE, TOKENS, finds=finds("embedding_lookup"))
def embedding_lookup_by_one_hot(table, tokens):
    return jax.nn.one_hot(tokens, 32) @ table


@JAX.case(X, i32(4, 1), finds=finds("take_along_axis", axis=1))
def take_along_axis(x, positions):
    return jnp.take_along_axis(x, positions, axis=1)


@NUMPY.case(X, i32(4), finds=finds("take_along_axis", axis=1))
def take_along_axis_by_indexing(x, labels):
    return x[jnp.arange(4), labels]


@TORCH.case(bf16(3, 4, 8), i32(3, 2, 8), finds=finds("take_along_axis", axis=1))
def take_along_axis_middle(x, positions):
    return jnp.take_along_axis(x, positions, axis=1, mode="promise_in_bounds")


@LAYERS.case(f16(4, 8), i32(4), finds=finds("take_along_axis", axis=1))
def take_along_axis_mapped(x, labels):
    return jax.vmap(lambda row, label: row[label])(x, labels)
