"""Thirty forms of attention, sixteen to thirty: whole models' forms, and how heads, groups and batches are laid out."""

import math

import jax
import jax.numpy as jnp

from recall.attention_patterns import ADDED, HALF_ROWS, PATTERNS, QUARTER, ROWS, heads_first
from recall.case import bf16, boolean, f16, f32, finds

CAUSAL = finds("attention", scale=0.25, causal=True)
UNSCALED = finds("attention", scale=1.0, mask="additive")


@PATTERNS.case(HALF_ROWS, HALF_ROWS, HALF_ROWS, f16(2, 1, 1, 8), finds=ADDED)
def bert_half_softmax_in_f32(q, k, v, mask):
    q, k, v = heads_first(q, k, v)
    scores = q @ jnp.transpose(k, (0, 1, 3, 2)) / 4.0 + mask
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1)
    return weights.astype(jnp.float16) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, f32(2, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def distilbert_mask_of_numbers(q, k, v, seen):
    q, k, v = heads_first(q, k, v)
    scores = jnp.matmul(q / math.sqrt(16), jnp.swapaxes(k, 2, 3))
    hidden = (seen == 0)[:, None, None, :]
    scores = jnp.where(hidden, jnp.finfo(jnp.float32).min, scores)
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, finds=CAUSAL)
def gpt2(q, k, v):
    q, k, v = heads_first(q, k, v)
    scores = q @ jnp.swapaxes(k, -1, -2)
    scores = scores / jnp.full((), 16**0.5, scores.dtype)
    seen = jnp.tril(jnp.ones((8, 8), bool))[None, None]
    scores = jnp.where(seen, scores, jnp.finfo(scores.dtype).min)
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, f32(2, 1, 1, 8), finds=finds("attention", scale=0.25, causal=True, mask="additive"))
def gpt2_padded(q, k, v, padding):
    q, k, v = heads_first(q, k, v)
    scores = (q @ jnp.swapaxes(k, -1, -2)) / jnp.full((), 4.0, jnp.float32)
    seen = jnp.tril(jnp.ones((1, 1, 8, 8), bool))
    scores = jnp.where(seen, scores, jnp.finfo(scores.dtype).min) + padding
    return jax.nn.softmax(scores, axis=-1) @ v


@PATTERNS.case(f32(2, 8, 64), f32(2, 8, 64), f32(2, 8, 64), f32(2, 1, 8, 8), finds=ADDED)
def opt_heads_merged_into_batch(q, k, v, mask):
    def split(x):
        return x.reshape(2, 8, 4, 16).transpose(0, 2, 1, 3).reshape(8, 8, 16)

    scores = jax.lax.batch_matmul(split(q * 0.25), split(k).transpose(0, 2, 1))
    scores = scores.reshape(2, 4, 8, 8) + mask
    scores = jnp.maximum(scores, jnp.finfo(jnp.float32).min).reshape(8, 8, 8)
    out = jax.lax.batch_matmul(jax.nn.softmax(scores, axis=-1), split(v))
    return out.reshape(2, 4, 8, 16).transpose(0, 2, 1, 3).reshape(2, 8, 64)


@PATTERNS.case(ROWS, ROWS, ROWS, f32(1, 4, 8, 8), finds=UNSCALED)
def t5(q, k, v, bias):
    q, k, v = heads_first(q, k, v)
    scores = q @ jnp.swapaxes(k, 3, 2)
    scores += bias
    weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(scores.dtype)
    return weights @ v


@PATTERNS.case(
    bf16(2, 8, 4, 16), bf16(2, 8, 4, 16), bf16(2, 8, 4, 16), bf16(1, 4, 8, 8), bf16(2, 1, 1, 8), finds=UNSCALED
)
def t5_bias_and_padding_in_bf16(q, k, v, bias, padding):
    q, k, v = heads_first(q, k, v)
    scores = (q @ jnp.swapaxes(k, 3, 2)) + (bias + padding)
    return jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(jnp.bfloat16) @ v


@PATTERNS.case(ROWS, ROWS, ROWS, f32(1, 4, 8, 8), finds=UNSCALED)
def t5_key_and_value_returned(q, k, v, bias):
    q, k, v = heads_first(q, k, v)
    weights = jax.nn.softmax(jnp.matmul(q, jnp.swapaxes(k, 3, 2)) + bias)
    return jnp.matmul(weights, v).transpose(0, 2, 1, 3), k, v


@PATTERNS.case(ROWS, ROWS, ROWS, f32(2, 1, 1, 8), finds=ADDED)
def albert_einsums_of_rows(q, k, v, mask):
    scores = jnp.einsum("bfnd,btnd->bnft", q, k) * (1 / math.sqrt(16.0))
    weights = jax.nn.softmax(scores + mask)
    return jnp.einsum("bnft,btnd->bfnd", weights, v)


@PATTERNS.case(f32(2, 8, 192), finds=QUARTER)
def vit_one_projection(qkv):
    q, k, v = jnp.transpose(qkv.reshape(2, 8, 3, 4, 16), (2, 0, 3, 1, 4))
    weights = jax.nn.softmax((q * 16**-0.5) @ jnp.swapaxes(k, -2, -1), axis=-1)
    return jnp.swapaxes(weights @ v, 1, 2).reshape(2, 8, 64)


CHUNKS = f32(2, 4, 3, 8, 16)


@PATTERNS.case(CHUNKS, CHUNKS, CHUNKS, boolean(2, 1, 3, 8, 8), finds=finds("attention", scale=0.25, mask="boolean"))
def reformer_within_chunks(q, k, v, seen):
    scores = jnp.einsum("bhcqd,bhckd->bhcqk", q, k / 4.0)
    scores = jnp.where(seen, scores, -1e9)
    weights = jnp.exp(scores - jax.nn.logsumexp(scores, axis=-1, keepdims=True))
    return jnp.einsum("bhcqk,bhckd->bhcqd", weights, v)


@PATTERNS.case(f32(2, 8, 8, 16), f32(2, 2, 8, 16), f32(2, 2, 8, 16), finds=QUARTER)
def groups_repeated(q, k, v):
    k, v = jnp.repeat(k, 4, axis=1), jnp.repeat(v, 4, axis=1)
    return jax.nn.softmax(q @ jnp.swapaxes(k, 2, 3) * 0.25, axis=-1) @ v


@PATTERNS.case(f32(2, 8, 8, 16), f32(2, 2, 8, 16), f32(2, 2, 8, 16), f32(2, 1, 8, 8), finds=ADDED)
def groups_expanded(q, k, v, mask):
    def expand(x):
        return jnp.broadcast_to(x[:, :, None], (2, 2, 4, 8, 16)).reshape(2, 8, 8, 16)

    scores = jnp.matmul(q, jnp.swapaxes(expand(k), 2, 3)) * 0.25 + mask
    return jnp.matmul(jax.nn.softmax(scores, axis=-1), expand(v))


@PATTERNS.case(f32(2, 8, 2, 4, 16), f32(2, 8, 2, 16), f32(2, 8, 2, 16), finds=QUARTER)
def groups_of_queries(q, k, v):
    scores = jnp.einsum("bskgd,btkd->bkgst", q, k) / 4.0
    return jnp.einsum("bkgst,btkd->bskgd", jax.nn.softmax(scores), v)


@PATTERNS.case(f32(4, 8, 16), f32(4, 8, 16), f32(4, 8, 16), finds=CAUSAL)
def without_batch_mask_of_infinities(q, k, v):
    mask = jnp.triu(jnp.full((8, 8), -jnp.inf), k=1)
    scores = q @ jnp.swapaxes(k, 1, 2) / 4.0 + mask
    return jax.nn.softmax(scores, axis=-1) @ v
