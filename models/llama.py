"""A Llama-style decoder in plain JAX: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

Written as such code is written, with a contiguous KV cache per layer that `cache.at[:, :, position].set(k)` updates,
so an export of it holds the scatters that real decoders hold: two per layer.

    hlo-lower export models/llama.py:decode -o decode.mlir --set preset=llama_1b
    hlo-lower export models/llama.py:prefill -o prefill.mlir --set layers=4 --set prompt=32
    hlo-lower export models/llama.py:prefill -o open.mlir --shapes ... "b, _, t, _" "b, s" ...

Nothing is downloaded and no weight is made: the arguments of an export are shapes and dtypes.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

Layer = dict[str, jax.Array]
Params = dict[str, Any]
Cache = list[dict[str, jax.Array]]


@dataclass(frozen=True)
class Config:
    """The size of a decoder. The defaults are the preset `tiny`.

    Attributes:
      layers: decoder layers, unrolled.
      hidden: width of the residual stream.
      heads: query heads.
      kv_heads: key and value heads, a divisor of heads.
      head_dim: width of a head, even.
      ffn: inner width of the SwiGLU block.
      vocab: tokens in the vocabulary.
      max_length: positions in the KV cache.
      batch: sequences.
      prompt: tokens per sequence that one prefill step takes, at most max_length.
      dtype: dtype of weights, activations and caches.
      rope_theta: base of the rotary frequencies.
      norm_eps: added to the mean square in RMSNorm.
      tied_head: whether the output head is the transposed embedding.
    """

    layers: int = 2
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    ffn: int = 128
    vocab: int = 256
    max_length: int = 64
    batch: int = 2
    prompt: int = 8
    dtype: str = "float32"
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5
    tied_head: bool = False

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "batch", "prompt"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads={self.heads} must be a multiple of kv_heads={self.kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim={self.head_dim} must be even: rotary positions turn pairs")
        if self.prompt > self.max_length:
            raise ValueError(f"prompt={self.prompt} must not exceed max_length={self.max_length}")
        if not jnp.issubdtype(jnp.dtype(self.dtype), jnp.floating):
            raise ValueError(f"dtype={self.dtype} must be a floating-point dtype")


PRESETS = {
    "tiny": Config(),
    # The sizes of Llama 3.2 1B.
    "llama_1b": Config(
        layers=16,
        hidden=2048,
        heads=32,
        kv_heads=8,
        head_dim=64,
        ffn=8192,
        vocab=128256,
        max_length=4096,
        prompt=512,
        dtype="bfloat16",
        rope_theta=500000.0,
        tied_head=True,
    ),
    # The sizes of Llama 3.1 8B.
    "llama_8b": Config(
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn=14336,
        vocab=128256,
        max_length=8192,
        prompt=512,
        dtype="bfloat16",
        rope_theta=500000.0,
    ),
}


# --- weights and caches: their specs, and random ones to run with -----------------------------------------------


def param_specs(config: Config) -> Params:
    """Shape and dtype of every weight, as the nested dict that `decode` and `prefill` take."""
    spec = partial(jax.ShapeDtypeStruct, dtype=jnp.dtype(config.dtype))
    query, key = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer = {
        "attention_norm": spec((config.hidden,)),
        "wq": spec((config.hidden, query)),
        "wk": spec((config.hidden, key)),
        "wv": spec((config.hidden, key)),
        "wo": spec((query, config.hidden)),
        "ffn_norm": spec((config.hidden,)),
        "w_gate": spec((config.hidden, config.ffn)),
        "w_up": spec((config.hidden, config.ffn)),
        "w_down": spec((config.ffn, config.hidden)),
    }
    params: Params = {
        "embedding": spec((config.vocab, config.hidden)),
        "layers": [dict(layer) for _ in range(config.layers)],
        "norm": spec((config.hidden,)),
    }
    if not config.tied_head:
        params["head"] = spec((config.hidden, config.vocab))
    return params


def cache_specs(config: Config) -> Cache:
    """Shape and dtype of the KV cache: per layer, k and v of [batch, kv_heads, max_length, head_dim]."""
    shape = (config.batch, config.kv_heads, config.max_length, config.head_dim)
    spec = jax.ShapeDtypeStruct(shape, jnp.dtype(config.dtype))
    return [{"k": spec, "v": spec} for _ in range(config.layers)]


def init_params(config: Config, key: jax.Array) -> Params:
    """Random weights of the right scale: norms around one, matrices with deviation 1/sqrt(rows)."""
    leaves, tree = jax.tree.flatten(param_specs(config))
    keys = jax.random.split(key, len(leaves))

    def leaf(key: jax.Array, spec: jax.ShapeDtypeStruct) -> jax.Array:
        noise = jax.random.normal(key, spec.shape, jnp.float32)
        weight = 1.0 + 0.1 * noise if len(spec.shape) == 1 else noise * spec.shape[0] ** -0.5
        return weight.astype(spec.dtype)

    return jax.tree.unflatten(tree, [leaf(k, s) for k, s in zip(keys, leaves, strict=True)])


def init_cache(config: Config) -> Cache:
    """An empty KV cache."""
    return jax.tree.map(lambda spec: jnp.zeros(spec.shape, spec.dtype), cache_specs(config))


# --- the decoder ------------------------------------------------------------------------------------------------


def rms_norm(x: jax.Array, weight: jax.Array, eps: float) -> jax.Array:
    """Scale x of [..., hidden] to a mean square of one, in float32, times weight."""
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)
    return wide.astype(x.dtype) * weight


def rotary(positions: jax.Array, config: Config) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of [..., head_dim] for positions of [...], each frequency twice (the rotate-half layout)."""
    exponents = jnp.arange(0, config.head_dim, 2, dtype=jnp.float32) / config.head_dim
    angles = positions[..., None].astype(jnp.float32) * config.rope_theta**-exponents
    angles = jnp.concatenate([angles, angles], axis=-1)
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Turn the pairs (i, i + head_dim/2) of x [batch, heads, S, head_dim] by the angles of their positions."""
    low, high = jnp.split(x, 2, axis=-1)
    return (x * cos + jnp.concatenate([-high, low], axis=-1) * sin).astype(x.dtype)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, positions: jax.Array) -> jax.Array:
    """Grouped-query attention of queries at positions over a whole cache, whose later positions are masked.

    Args:
      q: [batch, heads, S, head_dim].
      k: [batch, kv_heads, max_length, head_dim].
      v: as k.
      positions: [S], the position of each query; with a sequence's own positions [batch, 1, 1, S].

    Returns:
      [batch, S, heads * head_dim].
    """
    batch, heads, length, head_dim = q.shape
    kv_heads = k.shape[1]
    grouped = q.reshape(batch, kv_heads, heads // kv_heads, length, head_dim)
    scores = jnp.einsum("bkgsd,bktd->bkgst", grouped, k, preferred_element_type=jnp.float32) * head_dim**-0.5
    visible = jnp.arange(k.shape[2]) <= positions[..., None]
    weights = jax.nn.softmax(jnp.where(visible, scores, scores.dtype.type(-jnp.inf)), axis=-1).astype(v.dtype)
    mixed = jnp.einsum("bkgst,bktd->bkgsd", weights, v)
    return mixed.reshape(batch, heads, length, head_dim).swapaxes(1, 2).reshape(batch, length, heads * head_dim)


def split_heads(x: jax.Array, head_dim: int) -> jax.Array:
    """[batch, S, heads * head_dim] as [batch, heads, S, head_dim]."""
    return x.reshape(*x.shape[:2], -1, head_dim).swapaxes(1, 2)


def project(
    layer: Layer, x: jax.Array, cos: jax.Array, sin: jax.Array, config: Config
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Queries, keys and values of x [batch, S, hidden], each [batch, its heads, S, head_dim]; q and k are rotated."""
    h = rms_norm(x, layer["attention_norm"], config.norm_eps)
    q = split_heads(h @ layer["wq"], config.head_dim)
    k = split_heads(h @ layer["wk"], config.head_dim)
    v = split_heads(h @ layer["wv"], config.head_dim)
    return rotate(q, cos, sin), rotate(k, cos, sin), v


def feed_forward(layer: Layer, x: jax.Array, config: Config) -> jax.Array:
    """SwiGLU of the normed x: down(silu(gate(h)) * up(h))."""
    h = rms_norm(x, layer["ffn_norm"], config.norm_eps)
    return (jax.nn.silu(h @ layer["w_gate"]) * (h @ layer["w_up"])) @ layer["w_down"]


def logits_of(params: Params, x: jax.Array, config: Config) -> jax.Array:
    """Logits in float32 of [..., vocab] from the last layer's output of [..., hidden]."""
    x = rms_norm(x, params["norm"], config.norm_eps)
    head = params["embedding"].T if config.tied_head else params["head"]
    return jnp.matmul(x, head, preferred_element_type=jnp.float32)


def decode(
    params: Params, caches: Cache, tokens: jax.Array, position: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """Take one token per sequence, write its key and value at position, and predict the next token.

    Args:
      params: weights, as `param_specs` lays them out.
      caches: KV caches, as `cache_specs` lays them out; donated.
      tokens: [batch] int32.
      position: int32 scalar, where the token stands, the same for every sequence.
      config: the size.

    Returns:
      Logits of [batch, vocab] in float32, and the caches.
    """
    x = params["embedding"][tokens][:, None]
    positions = position[None]
    cos, sin = rotary(positions, config)
    written: Cache = []
    for i, (layer, cache) in enumerate(zip(params["layers"], caches, strict=True)):
        with jax.named_scope(f"layer_{i}"):
            q, k, v = project(layer, x, cos, sin, config)
            k_cache = cache["k"].at[:, :, position].set(k[:, :, 0])
            v_cache = cache["v"].at[:, :, position].set(v[:, :, 0])
            x = x + attend(q, k_cache, v_cache, positions) @ layer["wo"]
            x = x + feed_forward(layer, x, config)
            written.append({"k": k_cache, "v": v_cache})
    return logits_of(params, x[:, 0], config), written


def prefill(
    params: Params, caches: Cache, tokens: jax.Array, start: jax.Array, *, config: Config
) -> tuple[jax.Array, Cache]:
    """Take S tokens per sequence, write their keys and values from start on, and predict after each of them.

    Args:
      params: weights, as `param_specs` lays them out.
      caches: KV caches, as `cache_specs` lays them out; donated.
      tokens: [batch, S] int32.
      start: int32 scalar, where the first token stands.
      config: the size.

    Returns:
      Logits of [batch, S, vocab] in float32, and the caches.
    """
    x = params["embedding"][tokens]
    positions = start + jnp.arange(tokens.shape[1])
    cos, sin = rotary(positions, config)
    written: Cache = []
    for i, (layer, cache) in enumerate(zip(params["layers"], caches, strict=True)):
        with jax.named_scope(f"layer_{i}"):
            q, k, v = project(layer, x, cos, sin, config)
            k_cache = cache["k"].at[:, :, positions].set(k)
            v_cache = cache["v"].at[:, :, positions].set(v)
            x = x + attend(q, k_cache, v_cache, positions) @ layer["wo"]
            x = x + feed_forward(layer, x, config)
            written.append({"k": k_cache, "v": v_cache})
    return logits_of(params, x, config), written


# --- what `hlo-lower export` needs to know ----------------------------------------------------------------------


def decode_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `decode`."""
    tokens = jax.ShapeDtypeStruct((config.batch,), jnp.int32)
    return param_specs(config), cache_specs(config), tokens, jax.ShapeDtypeStruct((), jnp.int32)


def prefill_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `prefill`."""
    tokens = jax.ShapeDtypeStruct((config.batch, config.prompt), jnp.int32)
    return param_specs(config), cache_specs(config), tokens, jax.ShapeDtypeStruct((), jnp.int32)


EXPORTS = {
    "decode": {"args": decode_args, "config": Config(), "presets": PRESETS, "donate": (1,)},
    "prefill": {"args": prefill_args, "config": Config(), "presets": PRESETS, "donate": (1,)},
}
