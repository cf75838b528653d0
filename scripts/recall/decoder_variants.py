"""Twenty more decoders with two layers, each in the manner of another family of models or library: rotations, norms,
masks and caches. `decoder_manners` has the second ten."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, finds

VARIANTS = Suite("decoder variants")

WIDTH, HEADS, SIZE, HIDDEN, WORDS, BATCH, LENGTH, CACHE = 32, 4, 8, 48, 64, 2, 6, 16
F32, BF16 = jnp.float32, jnp.bfloat16

GATED = {"q": (WIDTH, HEADS, SIZE), "k": (WIDTH, 2, SIZE), "v": (WIDTH, 2, SIZE), "o": (HEADS, SIZE, WIDTH)}
GATED |= {"gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH), "n1": (WIDTH,), "n2": (WIDTH,)}
PLAIN = {"qkv": (WIDTH, 3 * WIDTH), "qkv_b": (3 * WIDTH,), "o": (WIDTH, WIDTH), "o_b": (WIDTH,), "n1": (WIDTH,)}
PLAIN |= {"n1_b": (WIDTH,), "n2": (WIDTH,), "n2_b": (WIDTH,), "up": (WIDTH, HIDDEN), "up_b": (HIDDEN,)}
PLAIN |= {"down": (HIDDEN, WIDTH), "down_b": (WIDTH,)}


def spec(*shape, dtype=F32):
    """Of one argument."""
    return jax.ShapeDtypeStruct(shape, dtype)


def weights(layer, dtype=F32, **more):
    """Parameters of two layers, a table and a last norm."""
    layers = [{name: spec(*shape, dtype=dtype) for name, shape in (layer | more).items()}] * 2
    return {"table": spec(WORDS, WIDTH, dtype=dtype), "layers": layers, "n": spec(WIDTH, dtype=dtype)}


TOKENS = spec(BATCH, LENGTH, dtype=jnp.int32)
LOOKUP = finds("embedding_lookup")
NORMS = finds("rms_norm", 5), finds("swiglu", 2), LOOKUP
HALVES = *NORMS, finds("rope", 4, pairs="halves")
"""What most with gates have beside their attention."""


def rms(x, w, eps=1e-6):
    """In f32."""
    wide = x.astype(F32)
    return (wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + eps)).astype(x.dtype) * w


def centred(x, w, b=None, eps=1e-5):
    """Layer norm with a two-pass variance."""
    d = x - x.mean(-1, keepdims=True)
    y = d / jnp.sqrt((d * d).mean(-1, keepdims=True) + eps) * w
    return y if b is None else y + b


def halves(x, positions, size=None, base=1e4):
    """Halves of the first elements turned, heads before the elements."""
    size = size or x.shape[-1]
    angles = positions[..., None, None] / base ** (jnp.arange(0, size, 2) / size)
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    a, b, rest = x[..., : size // 2], x[..., size // 2 : size], x[..., size:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos, rest], -1).astype(x.dtype)


@VARIANTS.case(
    weights(GATED, n3=(WIDTH,), n4=(WIDTH,)),
    TOKENS,
    finds=(
        finds("attention", 2, softcap=50.0, causal=True),
        finds("rms_norm", 9, weight="one_plus"),
        finds("rope", 4, pairs="halves"),
        finds("gelu", 2, approximate="tanh"),
        LOOKUP,
    ),
)
def softcaps_and_norms_on_both_sides(p, tokens):
    def norm(x, w):
        return (x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-6)) * (1.0 + w)

    x = p["table"][tokens] * jnp.sqrt(float(WIDTH))
    at = jnp.arange(LENGTH)
    for w in p["layers"]:
        y = norm(x, w["n1"])
        q = halves(jnp.einsum("btd,dhk->bthk", y, w["q"]), at) * SIZE**-0.5
        k = halves(jnp.einsum("btd,dhk->bthk", y, w["k"]), at)
        v = jnp.einsum("btd,dhk->bthk", y, w["v"])
        k, v = jnp.repeat(k, 2, axis=2), jnp.repeat(v, 2, axis=2)
        logits = jnp.einsum("bthk,bshk->bhts", q, k)
        logits = jnp.tanh(logits / 50.0) * 50.0
        logits = jnp.where((at[:, None] >= at[None])[None, None], logits, -2.3819763e38)
        out = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        x = x + norm(jnp.einsum("bthk,hkd->btd", out, w["o"]), w["n2"])
        y = norm(x, w["n3"])
        x = x + norm((jax.nn.gelu(y @ w["gate"]) * (y @ w["up"])) @ w["down"], w["n4"])
    logits = norm(x, p["n"]) @ p["table"].T
    return jnp.tanh(logits / 30.0) * 30.0


def heads_of(qkv):
    """Three parts, heads behind positions."""
    return (part.reshape(BATCH, LENGTH, HEADS, SIZE) for part in jnp.split(qkv, 3, axis=-1))


def below(n=LENGTH):
    return jnp.tril(jnp.ones((n, n), bool))


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(
        finds("attention", 2, causal=True),
        finds("layer_norm", 3),
        finds("rope", 4, pairs="halves", size=4),
        finds("gelu", 2, approximate="tanh"),
        LOOKUP,
    ),
)
def one_norm_for_parallel_parts(p, tokens):
    x = jnp.take(p["table"], tokens, axis=0)
    for w in p["layers"]:
        y = centred(x, w["n1"], w["n1_b"])
        q, k, v = heads_of(jnp.dot(y, w["qkv"]) + w["qkv_b"])
        q, k = halves(q, jnp.arange(LENGTH), 4), halves(k, jnp.arange(LENGTH), 4)
        q, k, v = (jnp.swapaxes(part, 1, 2) for part in (q, k, v))
        scores = (q.astype(F32) @ k.astype(F32).swapaxes(2, 3)) * (1 / math.sqrt(SIZE))
        scores = jnp.where(below(), scores, jnp.finfo(F32).min)
        out = (jax.nn.softmax(scores, -1).astype(v.dtype) @ v).swapaxes(1, 2).reshape(BATCH, LENGTH, WIDTH)
        x = x + (out @ w["o"] + w["o_b"]) + (jax.nn.gelu(y @ w["up"] + w["up_b"]) @ w["down"] + w["down_b"])
    return centred(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(
        finds("attention", 2, causal=True),
        finds("layer_norm", 5),
        finds("rope", 4, pairs="halves", size=4),
        finds("gelu", 2, approximate="none"),
        LOOKUP,
    ),
)
def queries_keys_and_values_interleaved_by_heads(p, tokens):
    def rotate_half(x):
        return jnp.concatenate((-x[..., 2:], x[..., :2]), axis=-1)

    x = p["table"][tokens]
    frequencies = jnp.outer(jnp.arange(LENGTH), 1.0 / (10000 ** (jnp.arange(0, 4, 2) / 4)))
    embedded = jnp.concatenate((frequencies, frequencies), axis=-1)
    cos, sin = jnp.cos(embedded)[None, None], jnp.sin(embedded)[None, None]
    for w in p["layers"]:
        qkv = centred(x, w["n1"], w["n1_b"]) @ w["qkv"] + w["qkv_b"]
        qkv = qkv.reshape(BATCH, LENGTH, HEADS, 3 * SIZE).transpose(0, 2, 1, 3)
        q, k, v = jnp.split(qkv, 3, axis=-1)
        (q, q_rest), (k, k_rest) = jnp.split(q, [4], axis=-1), jnp.split(k, [4], axis=-1)
        q = jnp.concatenate((q * cos + rotate_half(q) * sin, q_rest), axis=-1)
        k = jnp.concatenate((k * cos + rotate_half(k) * sin, k_rest), axis=-1)
        scores = jnp.matmul(q, k.transpose(0, 1, 3, 2)) / jnp.sqrt(jnp.array(SIZE, F32))
        scores = jnp.where(below()[None, None, :, :], scores, jnp.finfo(scores.dtype).min)
        out = jnp.matmul(jax.nn.softmax(scores), v).transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, -1)
        y = centred(x, w["n2"], w["n2_b"]) @ w["up"] + w["up_b"]
        y = y * 0.5 * (1 + lax.erf(y / math.sqrt(2))) @ w["down"] + w["down_b"]
        x = y + (out @ w["o"] + w["o_b"]) + x
    return centred(x, p["n"]) @ p["table"].T


@VARIANTS.case(
    weights(GATED | {"k": (WIDTH, SIZE), "v": (WIDTH, SIZE)}),
    TOKENS,
    finds=(finds("attention", 2, causal=True), *HALVES),
)
def one_head_of_keys(p, tokens):
    x = p["table"][tokens]
    at = jnp.broadcast_to(jnp.arange(LENGTH), tokens.shape)
    for w in p["layers"]:
        y = rms(x, w["n1"])
        q = halves(jnp.einsum("btd,dhk->bthk", y, w["q"]), at)
        k = halves((y @ w["k"])[:, :, None], at)[:, :, 0]
        scores = jnp.einsum("bthk,bsk->bhts", q, k) * SIZE**-0.5
        scores += jnp.where(at[:, None, :, None] >= at[:, None, None, :], 0.0, -1e10)
        out = jnp.einsum("bhts,bsk->bthk", jax.nn.softmax(scores), y @ w["v"])
        x = x + jnp.einsum("bthk,hkd->btd", out, w["o"])
        y = rms(x, w["n2"])
        x = x + jnp.dot(jax.nn.silu(jnp.dot(y, w["gate"])) * jnp.dot(y, w["up"]), w["down"])
    return jnp.argmax(rms(x, p["n"]) @ p["table"].T, -1)


@VARIANTS.case(
    weights(GATED, BF16),
    TOKENS,
    finds=(finds("attention", 2, causal=True, window=3), *HALVES),
)
def a_window_in_bf16_accumulated_in_f32(p, tokens):
    wide = {"preferred_element_type": F32}
    x = p["table"][tokens]
    at = jnp.arange(LENGTH)
    back = at[:, None] - at[None, :]
    seen = jnp.logical_and(back >= 0, back < 3)
    for w in p["layers"]:
        y = rms(x, w["n1"])
        q, k, v = (jnp.einsum("btd,dhk->bthk", y, w[n], **wide).astype(BF16) for n in "qkv")
        q, k = halves(q, at), halves(k, at)
        q = q.reshape(BATCH, LENGTH, 2, 2, SIZE)
        scores = jnp.einsum("btgrk,bsgk->bgrts", q, k, **wide) / math.sqrt(SIZE)
        scores = jnp.where(seen, scores, -jnp.inf)
        weight = jax.nn.softmax(scores, axis=-1).astype(BF16)
        out = jnp.einsum("bgrts,bsgk->btgrk", weight, v, **wide).astype(BF16)
        x = x + jnp.einsum("bthk,hkd->btd", out.reshape(BATCH, LENGTH, HEADS, SIZE), w["o"], **wide).astype(BF16)
        y = rms(x, w["n2"])
        gate, up = (jnp.einsum("btd,df->btf", y, w[n], **wide) for n in ("gate", "up"))
        x = x + jnp.einsum("btf,fd->btd", (jax.nn.silu(gate) * up).astype(BF16), w["down"], **wide).astype(BF16)
    return jnp.einsum("btd,vd->btv", rms(x, p["n"]), p["table"], **wide)


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(finds("attention", 2), finds("layer_norm", 5), finds("gelu", 2, approximate="none"), LOOKUP),
)
def biases_that_grow_with_distance(p, tokens):
    x = p["table"][tokens]
    slopes = 2.0 ** (-8 * jnp.arange(1, HEADS + 1) / HEADS)
    bias = slopes[:, None, None] * jnp.arange(1 - LENGTH, 1)[None, None, :]
    mask = jnp.where(below(), 0, jnp.finfo(F32).min)
    for w in p["layers"]:
        q, k, v = heads_of(centred(x, w["n1"]) @ w["qkv"])
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / SIZE**0.5 + bias + mask
        out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
        x = x + out.reshape(BATCH, LENGTH, WIDTH) @ w["o"]
        x = x + jax.nn.gelu(centred(x, w["n2"]) @ w["up"], approximate=False) @ w["down"]
    return centred(x, p["n"]) @ p["table"].T


ROWS = spec(BATCH, dtype=jnp.int32)
CACHES = [(spec(BATCH, CACHE, 2, SIZE), spec(BATCH, CACHE, 2, SIZE))] * 2


@VARIANTS.case(
    weights(GATED),
    ROWS,
    CACHES,
    ROWS,
    finds=(finds("attention", 2), finds("kv_cache_update", 4, axis=1), *HALVES),
)
def rows_at_places_of_their_own(p, tokens, caches, at):
    x = p["table"][tokens]
    seen = jnp.arange(CACHE)[None] <= at[:, None]
    written = []
    for w, (ks, vs) in zip(p["layers"], caches, strict=True):
        y = rms(x, w["n1"])
        q, k = halves(jnp.einsum("bd,dhk->bhk", y, w["q"]), at), halves(jnp.einsum("bd,dhk->bhk", y, w["k"]), at)
        ks = ks.at[jnp.arange(BATCH), at].set(k)
        vs = vs.at[jnp.arange(BATCH), at].set(jnp.einsum("bd,dhk->bhk", y, w["v"]))
        scores = jnp.einsum("bgrk,bsgk->bgrs", q.reshape(BATCH, 2, 2, SIZE), ks) * SIZE**-0.5
        scores = jnp.where(seen[:, None, None], scores, -1e9)
        out = jnp.einsum("bgrs,bsgk->bgrk", jax.nn.softmax(scores), vs).reshape(BATCH, HEADS, SIZE)
        x = x + jnp.einsum("bhk,hkd->bd", out, w["o"])
        y = rms(x, w["n2"])
        x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        written.append((ks, vs))
    return rms(x, p["n"]) @ p["table"].T, written


@VARIANTS.case(
    weights(GATED),
    spec(1, dtype=jnp.int32),
    [(spec(HEADS // 2, CACHE, SIZE), spec(HEADS // 2, CACHE, SIZE))] * 2,
    spec(dtype=jnp.int32),
    finds=(finds("attention", 2), finds("kv_cache_update", 4, axis=1), *HALVES),
)
def one_row_written_by_a_scatter(p, token, caches, at):
    x = p["table"][token]
    written = []
    for w, (ks, vs) in zip(p["layers"], caches, strict=True):
        y = rms(x, w["n1"])
        q, k = (halves(jnp.einsum("td,dhk->thk", y, w[n]), at[None]) for n in "qk")
        ks = ks.at[:, at].set(k[0])
        vs = vs.at[:, at].set(jnp.einsum("td,dhk->thk", y, w["v"])[0])
        keys, values = jnp.repeat(ks, 2, axis=0), jnp.repeat(vs, 2, axis=0)
        scores = jnp.einsum("hk,hsk->hs", q[0], keys) / math.sqrt(SIZE)
        scores = jnp.where(jnp.arange(CACHE) <= at, scores, -1e30)
        out = jnp.einsum("hs,hsk->hk", jax.nn.softmax(scores), values)
        x = x + jnp.einsum("hk,hkd->d", out, w["o"])
        y = rms(x, w["n2"])
        x = x + (jax.nn.swish(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        written.append((ks, vs))
    return rms(x, p["n"]) @ p["table"].T, written


@VARIANTS.case(
    weights(GATED),
    TOKENS,
    finds=(finds("attention", 2, causal=True), *NORMS, finds("rope", 4, pairs="interleaved")),
)
def rotations_by_complex_numbers(p, tokens):
    def turned(x, rotation):
        pairs = x.reshape(*x.shape[:-1], -1, 2)
        z = lax.complex(pairs[..., 0], pairs[..., 1]) * rotation[None, :, None]
        return jnp.stack([z.real, z.imag], axis=-1).reshape(x.shape)

    x = p["table"][tokens]
    angles = jnp.outer(jnp.arange(LENGTH), 1.0 / (1e4 ** (jnp.arange(0, SIZE, 2) / SIZE)))
    rotation = jnp.exp(1j * angles)
    mask = jnp.triu(jnp.full((LENGTH, LENGTH), -jnp.inf), 1)
    for w in p["layers"]:
        y = rms(x, w["n1"], 1e-5)
        q, k, v = (jnp.einsum("btd,dhk->bthk", y, w[n]) for n in "qkv")
        q, k = turned(q, rotation), turned(k, rotation)
        k, v = (
            jnp.broadcast_to(t[:, :, :, None], (BATCH, LENGTH, 2, 2, SIZE)).reshape(BATCH, LENGTH, HEADS, SIZE)
            for t in (k, v)
        )
        q, k, v = (t.transpose(0, 2, 1, 3) for t in (q, k, v))
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(SIZE) + mask
        out = (jax.nn.softmax(scores.astype(F32), axis=-1) @ v).transpose(0, 2, 1, 3)
        x = x + out.reshape(BATCH, LENGTH, -1) @ w["o"].reshape(WIDTH, WIDTH)
        y = rms(x, w["n2"], 1e-5)
        gate = y @ w["gate"]
        x = x + (gate * jax.nn.sigmoid(gate) * (y @ w["up"])) @ w["down"]
    return rms(x, p["n"], 1e-5) @ p["table"].T


@VARIANTS.case(
    weights(PLAIN),
    TOKENS,
    finds=(
        finds("attention", 2, causal=True),
        finds("layer_norm", 3),
        finds("rope", 4, pairs="interleaved", size=4),
        finds("gelu", 2, approximate="tanh"),
        LOOKUP,
    ),
)
def every_two_elements_turned(p, tokens):
    def rotate_every_two(x):
        return jnp.stack((-x[..., 1::2], x[..., ::2]), axis=-1).reshape(x.shape)

    def apply(x, table):
        sin, cos = (jnp.repeat(t, 2, axis=-1)[None, :, None] for t in jnp.split(table, 2, axis=-1))
        return x * cos + rotate_every_two(x) * sin

    x = p["table"][tokens]
    angles = jnp.einsum("i,j->ij", jnp.arange(LENGTH), 1.0 / 10000 ** (jnp.arange(0, 4, 2) / 4))
    table = jnp.concatenate((jnp.sin(angles), jnp.cos(angles)), axis=1)
    for w in p["layers"]:
        y = centred(x, w["n1"], w["n1_b"])
        q, k, v = heads_of(y @ w["qkv"])
        q = jnp.concatenate([apply(q[..., :4], table), q[..., 4:]], axis=-1)
        k = jnp.concatenate([apply(k[..., :4], table), k[..., 4:]], axis=-1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(SIZE)
        scores = lax.select(jnp.broadcast_to(below(), scores.shape), scores, jnp.full_like(scores, -1e9))
        out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape)
        y = y @ w["up"] + w["up_b"]
        y = 0.5 * y * (1.0 + jnp.tanh(jnp.sqrt(2.0 / jnp.pi) * (y + 0.044715 * jnp.power(y, 3))))
        x = out @ w["o"] + (y @ w["down"] + w["down_b"]) + x
    return centred(x, p["n"]) @ p["table"].T
