"""Attention as people write it in JAX: groups, caches in prefill and decode, windows, soft caps, all masks."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, boolean, f32, finds, i32

JAX_NN = Suite("jax.nn")
LAYERS = Suite("layer libraries")
NUMPY = Suite("numpy-like")
DECODE = Suite("torch.export")

HEAD = f32(8, 16)
BTNH = f32(2, 8, 4, 16)
"""Batch, positions, heads, size of a head."""


@JAX_NN.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25, causal=False))
def attention_plain(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


@JAX_NN.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25, causal=True))
def attention_causal(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@JAX_NN.case(BTNH, BTNH, BTNH, f32(2, 4, 8, 8), finds=finds("attention", scale=0.5, mask="additive"))
def attention_bias(q, k, v, bias):
    return jax.nn.dot_product_attention(q, k, v, bias, scale=0.5)


@JAX_NN.case(BTNH, BTNH, BTNH, boolean(2, 1, 8, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def attention_mask(q, k, v, mask):
    return jax.nn.dot_product_attention(q, k, v, mask=mask)


@JAX_NN.case(bf16(2, 8, 8, 16), bf16(2, 8, 2, 16), bf16(2, 8, 2, 16), finds=finds("attention", scale=0.25))
def attention_groups_bf16(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@JAX_NN.case(f32(2, 8, 8, 16), f32(2, 8, 1, 16), f32(2, 8, 1, 16), finds=finds("attention", scale=0.25))
def attention_one_group(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


@JAX_NN.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25, window=4))
def attention_window(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, local_window_size=(3, 0))


@LAYERS.case(BTNH, BTNH, BTNH, boolean(2, 1, 8, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def attention_of_linen(q, k, v, mask):
    q = q / jnp.sqrt(16).astype(jnp.float32)
    scores = jnp.einsum("...qhd,...khd->...hqk", q, k)
    scores = jnp.where(mask, scores, jnp.finfo(jnp.float32).min)
    return jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(scores), v)


@LAYERS.case(f32(8, 4, 16), f32(8, 4, 16), f32(8, 4, 16), boolean(4, 8, 8), finds=finds("attention", scale=0.25))
def attention_of_haiku(q, k, v, mask):
    scores = jnp.einsum("thd,Thd->htT", q, k) * (1 / math.sqrt(16))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e30))
    return jnp.einsum("htT,Thd->thd", weights, v).reshape(8, 64)


@LAYERS.case(f32(8, 4, 16), f32(8, 4, 16), f32(8, 4, 16), finds=finds("attention", scale=0.25))
def attention_of_equinox(q, k, v):
    def head(q, k, v):
        return jnp.einsum("sS,Sd->sd", jax.nn.softmax(jnp.einsum("sd,Sd->sS", q / math.sqrt(16), k)), v)

    return jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)


@NUMPY.case(f32(8, 16), f32(8, 16), f32(8, 16), finds=finds("attention", scale=0.25, causal=True))
def attention_of_one_head(q, k, v):
    scores = q @ k.T * 0.25
    scores += jnp.where(jnp.arange(8)[:, None] >= jnp.arange(8)[None, :], 0.0, -1e9)
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ v


@NUMPY.case(f32(8, 16), f32(8, 16), f32(8, 16), finds=finds("attention", scale=0.25))
def attention_divided_after_the_product(q, k, v):
    scores = q @ k.T / 4
    weights = jnp.exp(scores - scores.max(-1, keepdims=True))
    return (weights @ v) / weights.sum(-1, keepdims=True)


@NUMPY.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25, softcap=50.0))
def attention_softcap(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.25
    scores = 50.0 * jnp.tanh(scores / 50.0)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


@NUMPY.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25, causal=True, window=3))
def attention_sliding_window(q, k, v):
    rows, columns = jnp.arange(8)[:, None], jnp.arange(8)[None]
    seen = (columns <= rows) & (columns > rows - 3)
    scores = jnp.where(seen, jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.25, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


@NUMPY.case(f32(2, 8, 4, 16), f32(2, 8, 16), f32(2, 8, 16), finds=finds("attention", scale=0.25))
def attention_many_queries_one_key(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkd->bhqk", q, k) / 4)
    return jnp.einsum("bhqk,bkd->bqhd", weights, v)


CACHE = f32(2, 32, 2, 16)


@DECODE.case(f32(2, 1, 4, 16), CACHE, CACHE, i32(), finds=finds("attention", scale=0.25, mask="boolean"))
def attention_decode(q, keys, values, position):
    q = q.transpose(0, 2, 1, 3)
    k, v = (jnp.repeat(x.transpose(0, 2, 1, 3), 2, axis=1) for x in (keys, values))
    scores = q @ jnp.swapaxes(k, 2, 3) * 0.25
    seen = jnp.arange(32) <= position
    weights = jax.nn.softmax(jnp.where(seen[None, None, None], scores, -jnp.inf).astype(jnp.float32), axis=-1)
    return (weights.astype(v.dtype) @ v).transpose(0, 2, 1, 3)


@DECODE.case(
    f32(2, 1, 4, 16),
    CACHE,
    CACHE,
    f32(2, 1, 2, 16),
    i32(),
    finds=(finds("attention", scale=0.25), finds("kv_cache_update", axis=1)),
)
def attention_decode_grouped_with_update(q, keys, values, new, position):
    keys = lax.dynamic_update_slice(keys, new, (0, position, 0, 0))
    grouped = q.reshape(2, 1, 2, 2, 16)
    scores = jnp.einsum("bqkgd,bskd->bkgqs", grouped, keys) * 16**-0.5
    seen = lax.broadcasted_iota(jnp.int32, scores.shape, 4) < position + 1
    weights = jax.nn.softmax(jnp.where(seen, scores, jnp.finfo(jnp.float32).min))
    return jnp.einsum("bkgqs,bskd->bqkgd", weights, values).reshape(2, 1, 64)


@DECODE.case(f32(2, 6, 4, 16), f32(2, 32, 4, 16), f32(2, 32, 4, 16), i32(), finds=finds("attention", scale=0.25))
def attention_prefill_into_cache(q, keys, values, start):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys) * 0.25
    rows = start + jnp.arange(6)
    mask = jnp.where(jnp.arange(32)[None, :] <= rows[:, None], 0.0, -2.3819763e38)
    weights = jax.nn.softmax(scores + mask[None, None])
    return jnp.einsum("bhqk,bkhd->bqhd", weights, values)


@DECODE.case(bf16(1, 4, 8, 16), bf16(1, 4, 8, 16), bf16(1, 4, 8, 16), finds=finds("attention", scale=0.25))
def attention_of_decomposed_sdpa(q, k, v):
    root = math.sqrt(0.25)
    q, k = q * root, jnp.swapaxes(k, -2, -1) * root
    mask = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), 0.0, -jnp.inf).astype(jnp.bfloat16)
    scores = jnp.matmul(q.reshape(4, 8, 16), k.reshape(4, 16, 8)).reshape(1, 4, 8, 8) + mask
    shifted = scores - scores.max(-1, keepdims=True)
    weights = jnp.exp(shifted) / jnp.exp(shifted).sum(-1, keepdims=True)
    return jnp.matmul(weights.reshape(4, 8, 8), v.reshape(4, 8, 16)).reshape(1, 4, 8, 16)


def softmax_of_rows_seen(scores):
    """Rows of which nothing is seen give 0, as in PyTorch's safe softmax."""
    nothing = ~jnp.any(~(scores == -jnp.inf), axis=-1, keepdims=True)
    return jnp.where(nothing, 0.0, jax.nn.softmax(scores, axis=-1))


@DECODE.case(f32(1, 4, 8, 16), f32(1, 2, 32, 16), f32(1, 2, 32, 16), i32(), finds=finds("attention", scale=0.25))
def attention_of_exported_sdpa(q, keys, values, start):
    seen = jnp.arange(32)[None] <= (start + jnp.arange(8))[:, None]
    mask = jnp.where(seen[None, None], 0.0, -jnp.inf) * 1.0
    k, v = (jnp.broadcast_to(x[:, :, None], (1, 2, 2, 32, 16)).reshape(1, 4, 32, 16) for x in (keys, values))
    scores = jnp.matmul((q * 0.5).reshape(4, 8, 16), (jnp.swapaxes(k, 2, 3) * 0.5).reshape(4, 16, 32))
    weights = softmax_of_rows_seen(scores.reshape(1, 4, 8, 32) + mask)
    out = jnp.matmul(weights.reshape(4, 8, 32), v.reshape(4, 32, 16)).reshape(1, 4, 8, 16)
    return out.transpose(2, 0, 1, 3).transpose(1, 0, 2, 3).reshape(1, 8, 64)


@LAYERS.case(BTNH, BTNH, BTNH, finds=finds("attention", scale=0.25))
def attention_through_dropout_of_rate_nought(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.25)
    weights = jnp.where(jnp.ones(weights.shape, bool), weights / 1.0, 0.0)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


@NUMPY.case(HEAD, HEAD, HEAD, f32(8, 8), f32(8), finds=finds("attention", scale=0.25, mask="additive"))
def attention_of_two_masks(q, k, v, bias, padding):
    return jax.nn.softmax(q @ k.T * 0.25 + bias + padding) @ v


@NUMPY.case(HEAD, HEAD, HEAD, boolean(8, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def attention_scaled_after_the_mask(q, k, v, seen):
    return jax.nn.softmax(jnp.where(seen, q @ k.T, -jnp.inf) * 0.25) @ v
