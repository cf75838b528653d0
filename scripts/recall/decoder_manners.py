"""The second ten decoders: how libraries write them (mapped heads, modules of one token, merged heads, loops over
layers), attention to another sequence, caches in chunks."""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, finds
from recall.decoder_variants import (
    BATCH,
    BF16,
    CACHE,
    F32,
    GATED,
    HEADS,
    LENGTH,
    LOOKUP,
    PLAIN,
    SIZE,
    TOKENS,
    WIDTH,
    below,
    centred,
    halves,
    heads_of,
    rms,
    spec,
    weights,
)

VARIANTS = Suite("decoder manners")

CAUSAL = finds("attention", 2, causal=True)


@VARIANTS.case(weights(PLAIN), TOKENS, finds=(CAUSAL, finds("layer_norm", 5), finds("relu", 2), LOOKUP))
def heads_mapped_one_by_one(p, tokens):
    def head(q, k, v):
        scores = q @ k.T / jnp.sqrt(q.shape[-1])
        return jax.nn.softmax(jnp.where(below(), scores, -jnp.inf)) @ v

    def attend(q, k, v):
        return jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)

    x = p["table"][tokens]
    for w in p["layers"]:
        q, k, v = heads_of(centred(x, w["n1"], w["n1_b"]) @ w["qkv"])
        x = x + jax.vmap(attend)(q, k, v).reshape(x.shape) @ w["o"]
        x = x + jax.nn.relu(centred(x, w["n2"], w["n2_b"]) @ w["up"]) @ w["down"]
    return centred(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(CAUSAL, finds("layer_norm", 5), finds("gelu", 2, approximate="tanh"), LOOKUP),
)
def modules_of_one_token(p, tokens):
    def norm(scale, bias, x):
        mean, variance = jnp.mean(x, keepdims=True), jnp.var(x, keepdims=True)
        variance = jnp.maximum(0.0, variance)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias

    def linear(weight, bias, x):
        return weight.T @ x + bias

    def attention(w, x):
        qkv = jax.vmap(partial(linear, w["qkv"], w["qkv_b"]))(x)
        q, k, v = (jnp.split(qkv, 3, axis=-1)[n].reshape(LENGTH, HEADS, SIZE) for n in range(3))

        def one(q, k, v):
            q = q / math.sqrt(SIZE)
            logits = jnp.einsum("sd,Sd->sS", q, k)
            logits = jnp.where(below(), logits, jnp.finfo(logits.dtype).min)
            return jnp.einsum("sS,Sd->sd", jax.nn.softmax(logits, axis=-1), v)

        out = jax.vmap(one, in_axes=1, out_axes=1)(q, k, v).reshape(LENGTH, WIDTH)
        return jax.vmap(partial(linear, w["o"], w["o_b"]))(out)

    def model(tokens):
        x = jax.vmap(lambda token: p["table"][token])(tokens)
        for w in p["layers"]:
            x = x + attention(w, jax.vmap(partial(norm, w["n1"], w["n1_b"]))(x))
            y = jax.vmap(partial(linear, w["up"], w["up_b"]))(jax.vmap(partial(norm, w["n2"], w["n2_b"]))(x))
            x = x + jax.vmap(partial(linear, w["down"], w["down_b"]))(jax.nn.gelu(y))
        x = jax.vmap(partial(norm, p["n"], p["n"]))(x)
        return jax.vmap(lambda one: p["table"] @ one)(x)

    return jax.vmap(model)(tokens)


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(CAUSAL, finds("layer_norm", 5), finds("gelu", 2, approximate="tanh"), LOOKUP),
)
def one_pass_norms_and_attention_of_a_library(p, tokens):
    def norm(x, scale, bias):
        mean, square = jnp.mean(x, -1), jnp.mean(lax.square(x), -1)
        variance = jnp.maximum(0.0, square - lax.square(mean))
        mean, variance = jnp.expand_dims(mean, -1), jnp.expand_dims(variance, -1)
        y, factor = x - mean, lax.rsqrt(variance + 1e-6)
        return y * (factor * scale.reshape(1, 1, -1)) + bias.reshape(1, 1, -1)

    def attention(query, key, value, mask):
        query = query / jnp.sqrt(query.shape[-1]).astype(query.dtype)
        weight = jnp.einsum("...qhd,...khd->...hqk", query, key)
        weight = jnp.where(mask, weight, jnp.finfo(weight.dtype).min)
        return jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(weight).astype(value.dtype), value)

    x = jnp.take(p["table"], tokens, axis=0)
    places = jnp.broadcast_to(jnp.arange(LENGTH), tokens.shape)
    mask = jnp.greater_equal(places[..., None], places[..., None, :])[:, None]
    for w in p["layers"]:
        q, k, v = heads_of(norm(x, w["n1"], w["n1_b"]) @ w["qkv"] + w["qkv_b"].reshape(1, 1, -1))
        out = attention(q, k, v, mask)
        kernel = w["o"].reshape(HEADS, SIZE, WIDTH)
        x = x + lax.dot_general(out, kernel, (((2, 3), (0, 1)), ((), ()))) + w["o_b"]
        x = x + jax.nn.gelu(norm(x, w["n2"], w["n2_b"]) @ w["up"] + w["up_b"]) @ w["down"] + w["down_b"]
    return norm(x, p["n"], p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(CAUSAL, finds("layer_norm", 4), finds("gelu", 2, approximate="none"), LOOKUP),
)
def heads_merged_into_the_batch(p, tokens):
    def shaped(x):
        return x.reshape(BATCH, LENGTH, HEADS, SIZE).swapaxes(1, 2).reshape(BATCH * HEADS, LENGTH, SIZE)

    x = p["table"][tokens]
    mask = jnp.triu(jnp.full((LENGTH, LENGTH), jnp.finfo(F32).min), k=1)[None, None]
    for w in p["layers"]:
        q, k, v = jnp.split(x @ w["qkv"] + w["qkv_b"], 3, -1)
        q, k, v = shaped(q * SIZE**-0.5), shaped(k), shaped(v)
        scores = lax.batch_matmul(q, k.transpose(0, 2, 1)).reshape(BATCH, HEADS, LENGTH, LENGTH) + mask
        weight = jax.nn.softmax(scores.reshape(BATCH * HEADS, LENGTH, LENGTH), axis=-1)
        out = lax.batch_matmul(weight, v).reshape(BATCH, HEADS, LENGTH, SIZE).swapaxes(1, 2)
        x = centred(x + (out.reshape(x.shape) @ w["o"] + w["o_b"]), w["n1"], w["n1_b"])
        y = jax.nn.gelu(x @ w["up"] + w["up_b"], approximate=False)
        x = centred(x + (y @ w["down"] + w["down_b"]), w["n2"], w["n2_b"])
    return x @ p["table"].T


OUTSIDE = dict.fromkeys(("cq", "ck", "cv"), (WIDTH, HEADS, SIZE)) | {"co": (HEADS, SIZE, WIDTH)}


@VARIANTS.case(
    weights(GATED | OUTSIDE, n3=(WIDTH,)),
    TOKENS,
    spec(BATCH, 5, WIDTH),
    spec(BATCH, 5, dtype=jnp.bool_),
    finds=(finds("attention", 4), finds("rms_norm", 7), finds("rope", 4), finds("swiglu", 2), LOOKUP),
)
def attention_to_another_sequence(p, tokens, memory, seen):
    x, at = p["table"][tokens], jnp.arange(LENGTH)
    for w in p["layers"]:
        y = rms(x, w["n1"])
        q, k = (halves(jnp.einsum("btd,dhk->bthk", y, w[n]), at) for n in "qk")
        v = jnp.einsum("btd,dhk->bthk", y, w["v"])
        x = x + jnp.einsum("bthk,hkd->btd", jax.nn.dot_product_attention(q, k, v, is_causal=True), w["o"])
        y = rms(x, w["n3"])
        q = jnp.einsum("btd,dhk->bhtk", y, w["cq"])
        k, v = (jnp.einsum("bsd,dhk->bhsk", memory, w[n]) for n in ("ck", "cv"))
        scores = jnp.einsum("bhtk,bhsk->bhts", q, k) * SIZE**-0.5
        weight = jax.nn.softmax(scores, where=seen[:, None, None, :], axis=-1)
        x = x + jnp.einsum("bhts,bhsk,hkd->btd", weight, v, w["co"])
        y = rms(x, w["n2"])
        x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
    return rms(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(GATED, BF16),
    spec(BATCH, 4, dtype=jnp.int32),
    [(spec(BATCH, 2, CACHE, SIZE, dtype=BF16), spec(BATCH, 2, CACHE, SIZE, dtype=BF16))] * 2,
    spec(BATCH, dtype=jnp.int32),
    finds=(finds("attention", 2), finds("kv_cache_update", 4, axis=2), finds("rms_norm", 5), finds("rope", 4)),
)
def chunks_at_lengths_of_their_own(p, tokens, caches, lengths):
    def put(cache, new, at):
        return lax.dynamic_update_slice(cache, new, (0, at, 0))

    x = p["table"].at[tokens].get(mode="clip")
    at = lengths[:, None] + jnp.arange(4)
    seen = (jnp.arange(CACHE) <= at[..., None])[:, None, None]
    written = []
    for w, (ks, vs) in zip(p["layers"], caches, strict=True):
        y = rms(x, w["n1"])
        q, k = (halves(jnp.einsum("btd,dhk->bthk", y, w[n]), at) for n in "qk")
        ks = jax.vmap(put)(ks, k.swapaxes(1, 2), lengths)
        vs = jax.vmap(put)(vs, jnp.einsum("btd,dhk->bhtk", y, w["v"]), lengths)
        q = q.reshape(BATCH, 4, 2, 2, SIZE)
        scores = jnp.einsum("btgrk,bgsk->bgrts", q, ks, preferred_element_type=F32) * SIZE**-0.5
        weight = jax.nn.softmax(jnp.where(seen, scores, -0.7 * float(jnp.finfo(F32).max)))
        out = jnp.einsum("bgrts,bgsk->btgrk", weight.astype(BF16), vs).reshape(BATCH, 4, HEADS, SIZE)
        x = x + jnp.einsum("bthk,hkd->btd", out, w["o"])
        y = rms(x, w["n2"])
        gate, up = jnp.split(y @ jnp.concatenate([w["gate"], w["up"]], axis=1), 2, axis=-1)
        x = x + (jax.nn.silu(gate) * up) @ w["down"]
        written.append((ks, vs))
    return (rms(x, p["n"]) @ p["table"].T)[:, -1], written


STACKED = {name: spec(2, *shape) for name, shape in GATED.items()}


@VARIANTS.case(
    {"table": spec(64, WIDTH), "n": spec(WIDTH), "layers": STACKED},
    TOKENS,
    finds=(finds("attention", causal=True), finds("rms_norm", 3), finds("rope", 2), finds("swiglu"), LOOKUP),
)
def a_loop_over_layers_that_is_run_again(p, tokens):
    @jax.checkpoint
    def layer(x, w):
        y = rms(x, w["n1"])
        q, k = (halves(jnp.einsum("btd,dhk->bthk", y, w[n]), jnp.arange(LENGTH)) for n in "qk")
        k, v = (jnp.repeat(part, 2, 2) for part in (k, jnp.einsum("btd,dhk->bthk", y, w["v"])))
        scores = jnp.einsum("bthk,bshk->bhts", q, k) / math.sqrt(SIZE)
        scores = scores + jnp.where(below(), 0.0, -jnp.inf)
        out = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), v)
        x = x + jnp.einsum("bthk,hkd->btd", out, w["o"])
        y = rms(x, w["n2"])
        return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"], None

    x, _ = lax.scan(layer, p["table"][tokens], p["layers"])
    return rms(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(GATED | {"k": (WIDTH, HEADS, SIZE), "v": (WIDTH, HEADS, SIZE)}, qn=(WIDTH,), kn=(WIDTH,)),
    TOKENS,
    finds=(CAUSAL, finds("rms_norm", 9), finds("rope", 4, pairs="halves"), finds("swiglu", 2), LOOKUP),
)
def norms_behind_and_of_queries_and_keys(p, tokens):
    def rotate_half(x):
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate([-b, a], axis=-1)

    x = p["table"][tokens]
    angles = jnp.arange(LENGTH)[:, None] * (5e5 ** (-jnp.arange(0, SIZE, 2) / SIZE))[None]
    angles = jnp.concatenate([angles, angles], -1)[None, :, None]
    for w in p["layers"]:
        q, k = (
            rms(x @ w[n].reshape(WIDTH, WIDTH), w[m]).reshape(BATCH, LENGTH, HEADS, SIZE)
            for n, m in (["q", "qn"], ["k", "kn"])
        )
        q, k = (t * jnp.cos(angles) + rotate_half(t) * jnp.sin(angles) for t in (q, k))
        v = (x @ w["v"].reshape(WIDTH, WIDTH)).reshape(BATCH, LENGTH, HEADS, SIZE)
        out = jax.nn.dot_product_attention(q, k, v, mask=below()[None, None], scale=SIZE**-0.5)
        x = x + rms(out.reshape(x.shape) @ w["o"].reshape(WIDTH, WIDTH), w["n1"])
        x = x + rms((jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["down"], w["n2"])
    return rms(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(GATED, router=(WIDTH, 4), sinks=(HEADS,)),
    TOKENS,
    finds=(CAUSAL, finds("rms_norm", 5), finds("rope", 4, pairs="interleaved"), finds("silu", 2), LOOKUP),
)
def gates_before_and_rotations_by_even_and_odd(p, tokens):
    def turned(x):
        angles = jnp.arange(LENGTH)[:, None] * 1e4 ** (-jnp.arange(0, SIZE, 2) / SIZE)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        even, odd = x[..., ::2], x[..., 1::2]
        both = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
        return both.reshape(*x.shape[:-1], -1)

    x = p["table"][tokens]
    for w in p["layers"]:
        y = rms(x, w["n1"])
        q, k = (turned(jnp.tensordot(y, w[n], 1)) for n in "qk")
        v = jnp.tensordot(y, w["v"], 1)
        k, v = (jnp.tile(part[:, :, :, None], (1, 1, 1, 2, 1)).reshape(q.shape) for part in (k, v))
        scores = jnp.einsum("bthk,bshk->bhts", q * (1 / math.sqrt(SIZE)), k)
        hidden = ~below()
        scores = jnp.where(hidden, jnp.asarray(-1e30, scores.dtype), scores)
        shifted = scores - lax.stop_gradient(scores.max(-1, keepdims=True))
        weight = jnp.exp(shifted)
        weight = weight / weight.sum(-1, keepdims=True)
        x = x + jnp.tensordot(jnp.einsum("bhts,bshk->bthk", weight, v), w["o"], 2)
        y = rms(x, w["n2"])
        x = x + jnp.tanh(y @ w["router"]).mean(-1, keepdims=True) * (jax.nn.silu(y @ w["gate"]) @ w["down"])
    return rms(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(GATED),
    spec(BATCH, 1, dtype=jnp.int32),
    spec(2, 2, BATCH, CACHE, 2, SIZE),
    spec(dtype=jnp.int32),
    finds=(finds("attention", 2), finds("rms_norm", 5), finds("rope", 4), finds("swiglu", 2), LOOKUP),
)
def one_array_of_caches_in_a_ring(p, tokens, cache, at):
    x = p["table"][tokens]
    slot = at % CACHE
    seen = (jnp.arange(CACHE) <= at) | (at >= CACHE)
    for number, w in enumerate(p["layers"]):
        y = rms(x, w["n1"])
        q, k = (halves(jnp.einsum("btd,dhk->bthk", y, w[n]), at[None]) for n in "qk")
        v = jnp.einsum("btd,dhk->bthk", y, w["v"])
        cache = lax.dynamic_update_slice(cache, jnp.stack([k, v])[None], (number, 0, 0, slot, 0, 0))
        keys, values = cache[number, 0], cache[number, 1]
        scores = jnp.einsum("btgrk,bsgk->bgrts", q.reshape(BATCH, 1, 2, 2, SIZE), keys) * SIZE**-0.5
        weight = jax.nn.softmax(jnp.where(seen, scores, jnp.finfo(F32).min), axis=-1)
        out = jnp.einsum("bgrts,bsgk->btgrk", weight, values).reshape(BATCH, 1, HEADS, SIZE)
        x = x + jnp.einsum("bthk,hkd->btd", out, w["o"])
        y = rms(x, w["n2"])
        x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
    return rms(x[:, 0], p["n"]) @ p["table"].T, cache
