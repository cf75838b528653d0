"""Decoders with rms_norm, rope and gated layers, as JAX projects write them: positions before heads, einsums."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

WIDTH, HEADS, SIZE, HIDDEN, VOCABULARY, LAYERS = 64, 4, 16, 96, 128, 2


@dataclass(frozen=True)
class GatedDecoder:
    """How a decoder differs from the plainest.

    Attributes:
      groups: heads of keys and values.
      batch, positions: of the tokens.
      cache: positions of the cache of a decode step; 0: the tokens see themselves.
      one_plus: norms multiply by one plus their weight, and there are norms after each part as well.
      gelu: the gate is a gelu, not a silu.
      qk_norm: queries and keys are normalized in each head.
      softcap: of the scores.
      window: positions back that are seen; 0: all.
      tied: the logits come from the table of embeddings.
      scan: layers are one loop.
      greedy: the next token is the result, not the logits.
    """

    dtype: Any = jnp.float32
    groups: int = 2
    batch: int = 2
    positions: int = 8
    cache: int = 0
    one_plus: bool = False
    gelu: bool = False
    qk_norm: bool = False
    softcap: float = 0.0
    window: int = 0
    tied: bool = False
    scan: bool = False
    greedy: bool = False

    def arguments(self) -> tuple[Any, ...]:
        """Parameters, tokens, and caches with a position where there are some."""

        def spec(*shape, dtype=self.dtype):
            return jax.ShapeDtypeStruct(shape, dtype)

        layer = {
            "norms": spec(4, WIDTH),
            "q": spec(WIDTH, HEADS, SIZE),
            "k": spec(WIDTH, self.groups, SIZE),
            "v": spec(WIDTH, self.groups, SIZE),
            "o": spec(HEADS, SIZE, WIDTH),
            "head_norms": spec(2, SIZE),
            "gate": spec(WIDTH, HIDDEN),
            "up": spec(WIDTH, HIDDEN),
            "down": spec(HIDDEN, WIDTH),
        }
        layers: Any = [layer] * LAYERS
        if self.scan:
            layers = {name: spec(LAYERS, *leaf.shape) for name, leaf in layer.items()}
        params = {"table": spec(VOCABULARY, WIDTH), "layers": layers, "norm": spec(WIDTH)}
        if not self.tied:
            params["head"] = spec(WIDTH, VOCABULARY)
        tokens = spec(self.batch, self.positions, dtype=jnp.int32)
        if not self.cache:
            return params, tokens
        cache = spec(self.batch, self.cache, self.groups, SIZE)
        return params, tokens, [(cache, cache)] * LAYERS, spec(dtype=jnp.int32)

    def __call__(self, params, tokens, caches=None, start=0):
        x = params["table"][tokens]
        if self.one_plus:
            x = x * jnp.asarray(WIDTH**0.5, x.dtype)
        rows = start + jnp.arange(self.positions)
        if self.scan:
            x, _ = lax.scan(lambda x, layer: (self.layer(layer, x, rows, None)[0], None), x, params["layers"])
        written = []
        for number, layer in enumerate([] if self.scan else params["layers"]):
            x, cache = self.layer(layer, x, rows, caches[number] if caches else None)
            written.append(cache)
        x = self.norm(x, params["norm"])
        logits = x @ (params["table"].T if self.tied else params["head"])
        result = jnp.argmax(logits[:, -1], axis=-1) if self.greedy else logits
        return (result, written) if caches else result

    def layer(self, layer, x, rows, cache):
        out, cache = self.attend(layer, self.norm(x, layer["norms"][0]), rows, cache)
        x = x + (self.norm(out, layer["norms"][1]) if self.one_plus else out)
        hidden = self.norm(x, layer["norms"][2])
        gate, up = hidden @ layer["gate"], hidden @ layer["up"]
        out = ((jax.nn.gelu(gate) if self.gelu else jax.nn.silu(gate)) * up) @ layer["down"]
        return x + (self.norm(out, layer["norms"][3]) if self.one_plus else out), cache

    def norm(self, x, weight):
        wide = x.astype(jnp.float32)
        normed = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
        if self.one_plus:
            return (normed * (1 + weight.astype(jnp.float32))).astype(x.dtype)
        return normed.astype(x.dtype) * weight

    def attend(self, layer, x, rows, cache):
        q = jnp.einsum("btd,dhk->bthk", x, layer["q"])
        k = jnp.einsum("btd,dhk->bthk", x, layer["k"])
        v = jnp.einsum("btd,dhk->bthk", x, layer["v"])
        if self.qk_norm:
            q, k = self.norm(q, layer["head_norms"][0]), self.norm(k, layer["head_norms"][1])
        q, k = rotated(q, rows), rotated(k, rows)
        if cache:
            k = lax.dynamic_update_slice(cache[0], k, (0, rows[0], 0, 0))
            v = lax.dynamic_update_slice(cache[1], v, (0, rows[0], 0, 0))
            cache = (k, v)
        q = q.reshape(*q.shape[:2], self.groups, HEADS // self.groups, SIZE)
        scores = jnp.einsum("btkgh,bskh->bkgts", q, k).astype(jnp.float32) * SIZE**-0.5
        if self.softcap:
            scores = jnp.tanh(scores / self.softcap) * self.softcap
        columns = jnp.arange(k.shape[1])
        seen = columns[None] <= rows[:, None]
        if self.window:
            seen &= columns[None] > rows[:, None] - self.window
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e30)).astype(v.dtype)
        out = jnp.einsum("bkgts,bskh->btkgh", weights, v)
        return jnp.einsum("bthk,hkd->btd", out.reshape(*out.shape[:2], HEADS, SIZE), layer["o"]), cache


def rotated(x, rows):
    """Each position's pairs turned by its angles."""
    angles = rows[:, None] * 10_000.0 ** (-jnp.arange(0, SIZE, 2) / SIZE)
    cos, sin = jnp.cos(angles)[None, :, None], jnp.sin(angles)[None, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)
