"""What is no attention, or none with these attributes: masks and axes in other places."""

import jax
import jax.numpy as jnp

from recall.case import boolean, f32, finds
from recall.near_softmaxes import NEAR

HEADS = f32(2, 4, 8, 8)
"""Batch, heads, positions, size of a head: as many positions as elements, so that shapes do not tell them apart."""

NO_ATTENTION = finds("attention")
NOT_CAUSAL = finds("attention", causal=True)


def scores_of(q, k):
    return jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.25


def weighted(weights, v):
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def refused(name, function, *more, no=NO_ATTENTION):
    """One of query, key and value."""
    NEAR.add(name, function, HEADS, HEADS, HEADS, *more, refuses=no)


def seen_where(q, k, v, seen):
    return weighted(jax.nn.softmax(jnp.where(seen, scores_of(q, k), -1e9)), v)


@NEAR.case(HEADS, HEADS, HEADS, boolean(8, 8), refuses=NO_ATTENTION)
def attention_masked_after_the_softmax(q, k, v, mask):
    return weighted(jnp.where(mask, jax.nn.softmax(scores_of(q, k)), 0.0), v)


@NEAR.case(HEADS, HEADS, HEADS, f32(8, 8), refuses=NO_ATTENTION)
def attention_weights_multiplied_after_the_softmax(q, k, v, mask):
    return weighted(jax.nn.softmax(scores_of(q, k)) * mask, v)


refused("attention_softmax_over_queries", lambda q, k, v: weighted(jax.nn.softmax(scores_of(q, k), axis=2), v))
refused("attention_softmax_over_heads", lambda q, k, v: weighted(jax.nn.softmax(scores_of(q, k), axis=1), v))
refused(
    "attention_weights_transposed", lambda q, k, v: jnp.einsum("bhqk,bhqd->bhkd", jax.nn.softmax(scores_of(q, k)), v)
)
refused(
    "attention_values_of_queries", lambda q, k, v: jnp.einsum("bhqk,bhqd->bhqd", jax.nn.softmax(scores_of(q, k)), v)
)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_scores_of_elements(q, k, v):
    scores = jnp.einsum("bhsd,bhse->bhde", q, k)
    return jnp.einsum("bhde,bhes->bhds", jax.nn.softmax(scores, axis=2), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NOT_CAUSAL)
def attention_sees_one_later(q, k, v):
    return seen_where(q, k, v, jnp.tril(jnp.ones((8, 8), bool), k=1))


@NEAR.case(HEADS, HEADS, HEADS, refuses=NOT_CAUSAL)
def attention_does_not_see_itself(q, k, v):
    return seen_where(q, k, v, jnp.tril(jnp.ones((8, 8), bool), k=-1))


refused(
    "attention_sees_the_future", lambda q, k, v: seen_where(q, k, v, jnp.triu(jnp.ones((8, 8), bool))), no=NOT_CAUSAL
)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NOT_CAUSAL)
def attention_causal_by_comparison_off_by_one(q, k, v):
    return seen_where(q, k, v, jnp.arange(8)[:, None] > jnp.arange(8)[None])


@NEAR.case(HEADS, f32(2, 4, 12, 8), f32(2, 4, 12, 8), refuses=NOT_CAUSAL)
def attention_causal_counted_from_the_end(q, k, v):
    return seen_where(q, k, v, jnp.arange(12)[None] <= jnp.arange(8)[:, None] + 4)


@NEAR.case(HEADS, HEADS, HEADS, refuses=finds("attention", window=4))
def attention_window_off_by_one(q, k, v):
    far = jnp.arange(8)[:, None] - jnp.arange(8)[None]
    return seen_where(q, k, v, (far >= 0) & (far <= 4))


@NEAR.case(HEADS, HEADS, HEADS, refuses=(finds("attention", scale=0.0625), NO_ATTENTION))
def attention_weights_scaled(q, k, v):
    return weighted(jax.nn.softmax(scores_of(q, k)) * 0.25 + 0.1, v)


@NEAR.case(HEADS, HEADS, HEADS, f32(8, 8), refuses=NO_ATTENTION)
def attention_scores_multiplied_by_the_mask(q, k, v, mask):
    return weighted(jax.nn.softmax(scores_of(q, k) * mask), v)


@NEAR.case(HEADS, HEADS, HEADS, boolean(8, 8), refuses=finds("attention", mask="boolean"))
def attention_masked_by_nought(q, k, v, mask):
    return weighted(jax.nn.softmax(jnp.where(mask, scores_of(q, k), 0.0)), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=(finds("attention", softcap=30.0), finds("attention", softcap=50.0)))
def attention_softcap_of_two_constants(q, k, v):
    return weighted(jax.nn.softmax(30 * jnp.tanh(scores_of(q, k) / 50)), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=finds("attention", softcap=30.0))
def attention_softcap_of_almost_one_constant(q, k, v):
    return weighted(jax.nn.softmax(30 * jnp.tanh(scores_of(q, k) / 30.02)), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_scores_bounded_from_below(q, k, v):
    return weighted(jax.nn.softmax(jnp.maximum(scores_of(q, k), -2e4)), v)


@NEAR.case(f32(2, 4, 6, 8), f32(2, 24, 8), f32(2, 24, 8), refuses=NOT_CAUSAL)
def attention_causal_over_merged_rows(q, k, v):
    scores = jnp.einsum("bth,bsh->bts", q.reshape(2, 24, 8), k)
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((24, 24), bool)), scores, -jnp.inf))
    return (weights @ v).reshape(q.shape)


refused("attention_by_sigmoid", lambda q, k, v: weighted(jax.nn.sigmoid(scores_of(q, k)), v))


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_by_relu(q, k, v):
    s = jax.nn.relu(scores_of(q, k))
    return weighted(s / s.sum(-1, keepdims=True), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_linear(q, k, v):
    state = jnp.einsum("bhkd,bhke->bhde", jax.nn.softmax(k, axis=2), v)
    return jnp.einsum("bhqd,bhde->bhqe", jax.nn.softmax(q), state)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_maximum_of_other_rows(q, k, v):
    s = scores_of(q, k)
    e = jnp.exp(s - s.max(2, keepdims=True))
    return weighted(e / e.sum(3, keepdims=True), v)


@NEAR.case(HEADS, HEADS, HEADS, refuses=NO_ATTENTION)
def attention_rows_with_anything_hidden_are_nought(q, k, v):
    s = scores_of(q, k)
    hidden = jnp.any(s == -jnp.inf, axis=-1, keepdims=True)
    return weighted(jnp.where(hidden, 0.0, jax.nn.softmax(s)), v)


LONG = f32(1024, 8)


@NEAR.case(LONG, LONG, LONG, refuses=NOT_CAUSAL)
def attention_causal_but_for_one_place(q, k, v):
    rows, columns = jnp.arange(1024)[:, None], jnp.arange(1024)[None]
    seen = (columns <= rows) & ~((rows == 701) & (columns == 177))
    return jax.nn.softmax(jnp.where(seen, q @ k.T * 0.25, -1e9)) @ v
