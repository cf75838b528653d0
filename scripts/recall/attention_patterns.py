"""Thirty forms of attention, one to fifteen: how scores are scaled, masked and cast.

They are the forms for which the compiler of PyTorch has patterns (its tests of fused attention name the models that
have them), written anew in JAX. Dropout is that of inference, so it is not there.
"""

import math

import jax
import jax.numpy as jnp

from recall.case import Suite, boolean, f16, f32, finds

PATTERNS = Suite("inductor patterns")

HEADS = f32(2, 4, 8, 16)
"""Batch, heads, positions, size of a head."""

ROWS = f32(2, 8, 4, 16)
"""Batch, positions, heads, size of a head: what projections give."""

HALF_ROWS = f16(2, 8, 4, 16)
QUARTER = finds("attention", scale=0.25, causal=False, mask="none")
ADDED = finds("attention", scale=0.25, mask="additive")


def heads_first(*tensors):
    """Each with heads before positions."""
    return tuple(jnp.transpose(tensor, (0, 2, 1, 3)) for tensor in tensors)


@PATTERNS.case(HEADS, HEADS, HEADS, finds=QUARTER)
def divided(q, k, v):
    scores = jnp.matmul(q, jnp.swapaxes(k, -2, -1)) / 4.0
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(HEADS, HEADS, HEADS, finds=finds("attention", scale=0.3))
def multiplied(q, k, v):
    scores = jnp.matmul(q, jnp.swapaxes(k, -2, -1)) * 0.3
    return jnp.matmul(jax.nn.softmax(scores, axis=-1), v)


@PATTERNS.case(HEADS, f32(2, 4, 16, 8), HEADS, finds=finds("attention", scale=0.5))
def divided_key_transposed_already(q, kt, v):
    return jnp.matmul(jax.nn.softmax(jnp.matmul(q, kt) / 2.0), v)


@PATTERNS.case(HEADS, HEADS, HEADS, finds=finds("attention", scale=0.4))
def multiplied_einsum(q, k, v):
    scores = 0.4 * jnp.einsum("bhqd,bhkd->bhqk", q, k)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@PATTERNS.case(HEADS, HEADS, HEADS, f32(2, 1, 8, 8), finds=ADDED)
def mask_added(q, k, v, mask):
    scores = q @ jnp.swapaxes(k, -2, -1) / math.sqrt(q.shape[-1]) + mask
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(HEADS, HEADS, HEADS, f32(1, 1, 8, 8), finds=ADDED)
def mask_added_root_computed(q, k, v, mask):
    root = jnp.sqrt(jnp.float32(q.shape[-1]))
    scores = (q @ jnp.swapaxes(k, -2, -1)) / root + mask
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(HALF_ROWS, HALF_ROWS, HALF_ROWS, finds=QUARTER)
def rows_softmax_in_f32(q, k, v):
    q, k, v = heads_first(q, k, v)
    scores = (q @ jnp.swapaxes(k, -2, -1)) / math.sqrt(q.shape[-1])
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(jnp.float16)
    return weights @ v


@PATTERNS.case(HALF_ROWS, HALF_ROWS, HALF_ROWS, finds=QUARTER)
def rows_scores_in_f32(q, k, v):
    q, k, v = heads_first(q, k, v)
    scores = jnp.matmul(q, jnp.swapaxes(k, -2, -1), preferred_element_type=jnp.float32) / 4.0
    return jax.nn.softmax(scores, axis=-1).astype(q.dtype) @ v


@PATTERNS.case(HALF_ROWS, HALF_ROWS, HALF_ROWS, finds=QUARTER)
def query_divided_first(q, k, v):
    q, k, v = heads_first(q, k, v)
    q = q / math.sqrt(q.shape[-1])
    weights = jax.nn.softmax((q @ jnp.swapaxes(k, -2, -1)).astype(jnp.float32), axis=-1)
    return weights.astype(jnp.float16) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, finds=QUARTER)
def query_multiplied_before_it_is_transposed(q, k, v):
    q, k, v = heads_first(q * q.shape[-1] ** -0.5, k, v)
    return jax.nn.softmax(q @ jnp.swapaxes(k, -2, -1), axis=-1) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, finds=finds("attention", scale=0.125))
def rows_divided(q, k, v):
    q, k, v = heads_first(q, k, v)
    out = jax.nn.softmax((q @ jnp.swapaxes(k, 2, 3)) / 8.0, axis=-1) @ v
    return jnp.transpose(out, (0, 2, 1, 3))


@PATTERNS.case(ROWS, ROWS, ROWS, finds=QUARTER)
def query_and_key_scaled_each(q, k, v):
    q, k, v = heads_first(q, k, v)
    part = q.shape[-1] ** -0.25
    scores = (q * part) @ (jnp.swapaxes(k, 2, 3) * part)
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(f32(8, 8, 16), f32(8, 8, 16), f32(8, 8, 16), finds=finds("attention", scale=1.0, mask="none"))
def three_axes_unscaled(q, k, v):
    scores = jax.lax.batch_matmul(q, jnp.transpose(k, (0, 2, 1)))
    return jax.lax.batch_matmul(jax.nn.softmax(scores, axis=-1), v)


@PATTERNS.case(ROWS, ROWS, ROWS, f32(2, 1, 1, 8), finds=ADDED)
def bert(q, k, v, mask):
    q, k, v = heads_first(q, k, v)
    weights = jax.nn.softmax(q @ jnp.transpose(k, (0, 1, 3, 2)) / 4.0 + mask, axis=-1)
    return jnp.transpose(weights @ v, (0, 2, 1, 3)).reshape(2, 8, 64)


@PATTERNS.case(ROWS, ROWS, ROWS, boolean(2, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def distilbert(q, k, v, seen):
    q, k, v = heads_first(q, k, v)
    scores = (q / 4.0) @ jnp.transpose(k, (0, 1, 3, 2))
    hidden = jnp.broadcast_to((~seen).reshape(2, 1, 1, 8), scores.shape)
    weights = jax.nn.softmax(jnp.where(hidden, -jnp.inf, scores), axis=-1)
    return weights @ v
