"""Decoders with layer_norm and plain layers: norms before or after, parallel parts, positions learned or turned."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

WIDTH, HEADS, SIZE, HIDDEN, VOCABULARY, LAYERS = 64, 4, 16, 256, 128, 2
PARTS = {"ln1": (2, WIDTH), "ln2": (2, WIDTH), "qkv": (WIDTH, 3 * WIDTH), "qkv_bias": (3 * WIDTH,)}
PARTS |= {"out": (WIDTH, WIDTH), "out_bias": (WIDTH,), "in": (WIDTH, HIDDEN), "in_bias": (HIDDEN,)}
PARTS |= {"down": (HIDDEN, WIDTH), "down_bias": (WIDTH,)}


@dataclass(frozen=True)
class PlainDecoder:
    """How a decoder differs from the plainest.

    Attributes:
      order: norms are "before" a part, or "after" it; "parallel": one norm for both parts; "two": one norm for each.
      activation: "gelu_new" (tanh, by hand), "gelu" (exact) or "relu".
      places: how positions are told: "learned", "alibi" (added to the scores), "interleaved" or "halves" (turned).
      turned: how many elements of a head are turned.
      masked: by a triangle of "booleans", of "numbers" that are added, or by the "argument".
      cache: positions of the cache of a decode step; 0: the tokens see themselves.
    """

    dtype: Any = jnp.float32
    batch: int = 2
    positions: int = 8
    order: str = "before"
    activation: str = "gelu_new"
    places: str = "learned"
    turned: int = 8
    masked: str = "booleans"
    cache: int = 0

    def arguments(self) -> tuple[Any, ...]:
        """Parameters and tokens; a mask, or caches and a position, where they are asked for."""

        def spec(*shape, dtype=self.dtype):
            return jax.ShapeDtypeStruct(shape, dtype)

        layers = [{name: spec(*shape) for name, shape in PARTS.items()}] * LAYERS
        params = {"table": spec(VOCABULARY, WIDTH), "places": spec(32, WIDTH), "ln": spec(2, WIDTH), "layers": layers}
        found = [params, spec(self.batch, self.positions, dtype=jnp.int32)]
        if self.masked == "argument":
            found.append(spec(self.batch, 1, self.positions, self.positions))
        if self.cache:
            cache = spec(self.batch, HEADS, self.cache, SIZE)
            found += [[(cache, cache)] * LAYERS, spec(dtype=jnp.int32)]
        return tuple(found)

    def __call__(self, params, tokens, *rest):
        x = jnp.take(params["table"], tokens, axis=0)
        if self.places == "learned":
            x = x + (
                lax.dynamic_slice(params["places"], (rest[1], 0), (1, WIDTH)) if self.cache else params["places"][:8]
            )
        if self.places == "alibi":
            x = layer_norm(x, params["ln"])
        written = []
        for number, layer in enumerate(params["layers"]):
            cache = (*rest[0][number], rest[1]) if self.cache else None
            mask = rest[0] if self.masked == "argument" else None
            x, cache = self.layer(layer, x, mask, cache)
            written.append(cache)
        if self.order != "after":
            x = layer_norm(x, params["ln"])
        logits = jnp.matmul(x, params["table"].T)
        return (logits, written) if self.cache else logits

    def layer(self, layer, x, mask, cache):
        if self.order == "after":
            out, cache = self.attend(layer, x, mask, cache)
            x = layer_norm(x + out, layer["ln1"])
            return layer_norm(x + self.feed(layer, x), layer["ln2"]), cache
        first = layer_norm(x, layer["ln1"])
        out, cache = self.attend(layer, first, mask, cache)
        if self.order == "before":
            x = x + out
            return x + self.feed(layer, layer_norm(x, layer["ln2"])), cache
        second = first if self.order == "parallel" else layer_norm(x, layer["ln2"])
        return x + out + self.feed(layer, second), cache

    def feed(self, layer, x):
        x = x @ layer["in"] + layer["in_bias"]
        if self.activation == "relu":
            x = jax.nn.relu(x)
        elif self.activation == "gelu":
            x = jax.nn.gelu(x, approximate=False)
        else:
            x = 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return x @ layer["down"] + layer["down_bias"]

    def attend(self, layer, x, mask, cache):
        batch, length, _ = x.shape
        qkv = x @ layer["qkv"] + layer["qkv_bias"]
        q, k, v = (
            part.reshape(batch, length, HEADS, SIZE).transpose(0, 2, 1, 3) for part in jnp.split(qkv, 3, axis=-1)
        )
        if self.places in ("interleaved", "halves"):
            q, k = self.turn(q), self.turn(k)
        if cache is not None:
            k = lax.dynamic_update_slice_in_dim(cache[0], k, cache[2], axis=2)
            v = lax.dynamic_update_slice_in_dim(cache[1], v, cache[2], axis=2)
        scores = jnp.matmul(q, jnp.swapaxes(k, -1, -2)) / math.sqrt(SIZE)
        scores = self.hidden(scores, mask, cache)
        out = jnp.matmul(jax.nn.softmax(scores, axis=-1), v)
        out = out.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        return out @ layer["out"] + layer["out_bias"], cache and (k, v)

    def hidden(self, scores, mask, cache):
        """Scores of what is not seen made small."""
        length = scores.shape[-1]
        if cache is not None:
            return jnp.where(jnp.arange(length) <= cache[2], scores, jnp.finfo(scores.dtype).min)
        if mask is not None:
            return scores + mask
        if self.places == "alibi":
            slopes = jnp.asarray([0.25, 0.0625, 0.015625, 0.00390625], scores.dtype)[:, None, None]
            scores = scores + slopes * (jnp.arange(length)[None, None] - jnp.arange(length)[None, :, None])
        if self.masked == "numbers":
            return scores + jnp.triu(jnp.full((length, length), -1e9, scores.dtype), k=1)
        seen = jnp.tril(jnp.ones((length, length), bool))
        return jnp.where(seen[None, None], scores, jnp.finfo(scores.dtype).min)

    def turn(self, x):
        """The first elements of each head turned by the angles of its position."""
        part, rest = x[..., : self.turned], x[..., self.turned :]
        angles = jnp.arange(x.shape[2])[:, None] / 10_000 ** (jnp.arange(0, self.turned, 2) / self.turned)
        cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
        if self.places == "interleaved":
            cos, sin = jnp.repeat(cos, 2, axis=-1), jnp.repeat(sin, 2, axis=-1)
            other = jnp.stack([-part[..., 1::2], part[..., ::2]], axis=-1).reshape(part.shape)
        else:
            cos, sin = jnp.tile(cos, 2), jnp.tile(sin, 2)
            half = self.turned // 2
            other = jnp.concatenate([-part[..., half:], part[..., :half]], axis=-1)
        return jnp.concatenate([part * cos + other * sin, rest], axis=-1)


def layer_norm(x, weights):
    """Over the last axis; the first row of the weights multiplies, the second is added."""
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * weights[0] + weights[1]
