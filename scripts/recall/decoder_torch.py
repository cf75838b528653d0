"""Decoders in the manner of PyTorch's exports: weights as their transposes, heads first, casts, masks as arguments."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

WIDTH, HEADS, GROUPS, SIZE, HIDDEN, VOCABULARY, LAYERS = 64, 4, 2, 16, 96, 128, 2


@dataclass(frozen=True)
class ExportedDecoder:
    """How an export differs from the plainest.

    Attributes:
      cache: positions of caches that rows are copied into; 0: no cache.
      softcap: of the scores.
      relative: scores are not scaled, and a bias of positions is added; the layer in between has a relu.
      tanh: the gate is a gelu by tanh.
    """

    dtype: Any = jnp.float32
    positions: int = 8
    cache: int = 0
    softcap: float = 0.0
    relative: bool = False
    tanh: bool = False

    def arguments(self) -> tuple[Any, ...]:
        """Weights, tokens, cosine, sine, mask, bias; caches and positions where there are some."""

        def spec(*shape, dtype=self.dtype):
            return jax.ShapeDtypeStruct(shape, dtype)

        layer = {name: spec(WIDTH) for name in ("norm1", "norm2")}
        layer |= {name: spec(GROUPS * SIZE, WIDTH) for name in ("k", "v")}
        layer |= {name: spec(WIDTH, WIDTH) for name in ("q", "o")}
        layer |= {"gate": spec(HIDDEN, WIDTH), "up": spec(HIDDEN, WIDTH), "down": spec(WIDTH, HIDDEN)}
        weights = {"table": spec(VOCABULARY, WIDTH), "norm": spec(WIDTH), "head": spec(VOCABULARY, WIDTH)}
        keys = self.cache or self.positions
        turning = (spec(1, self.positions, SIZE, dtype=jnp.float32),) * 2
        found = [weights | {"layers": [layer] * LAYERS}, spec(1, self.positions, dtype=jnp.int32), *turning]
        found.append(spec(1, 1, self.positions, keys))
        found.append(spec(1, HEADS, self.positions, keys))
        if self.cache:
            cache = spec(1, GROUPS, self.cache, SIZE)
            found += [[(cache, cache)] * LAYERS, spec(self.positions, dtype=jnp.int32)]
        return tuple(found)

    def __call__(self, weights, tokens, cos, sin, mask, bias, caches=None, places=None):
        x = weights["table"].at[tokens.reshape(-1)].get(mode="promise_in_bounds").reshape(1, self.positions, WIDTH)
        cos, sin = (jnp.expand_dims(table, 1).astype(self.dtype) for table in (cos, sin))
        written = []
        for number, layer in enumerate(weights["layers"]):
            normed = self.norm(x, layer["norm1"])
            q, k, v = (split(dense(normed, layer[name])) for name in "qkv")
            if not self.relative:
                q, k = q * cos + half_turned(q) * sin, k * cos + half_turned(k) * sin
            if caches is not None:
                k = caches[number][0].at[:, :, places].set(k)
                v = caches[number][1].at[:, :, places].set(v)
                written.append((k, v))
            x = x + dense(self.attend(q, k, v, mask, bias), layer["o"])
            x = x + self.feed(layer, self.norm(x, layer["norm2"]))
        logits = dense(self.norm(x, weights["norm"]), weights["head"]).astype(jnp.float32)
        return logits, written

    def norm(self, x, weight):
        wide = x.astype(jnp.float32)
        variance = jnp.mean(jnp.power(wide, 2), axis=-1, keepdims=True)
        return weight * (wide * lax.rsqrt(variance + 1e-5)).astype(self.dtype)

    def feed(self, layer, x):
        if self.relative:
            return dense(jnp.maximum(dense(x, layer["gate"]), 0), layer["down"])
        gate = dense(x, layer["gate"])
        gate = jax.nn.gelu(gate) if self.tanh else gate * jax.nn.sigmoid(gate)
        return dense(gate * dense(x, layer["up"]), layer["down"])

    def attend(self, q, k, v, mask, bias):
        k, v = repeated(k), repeated(v)
        scores = jnp.matmul(q, jnp.transpose(k, (0, 1, 3, 2)))
        scores = scores + bias if self.relative else scores * 0.25
        if self.softcap:
            scores = jnp.tanh(scores / self.softcap) * self.softcap
        weights = jax.nn.softmax((scores + mask).astype(jnp.float32), axis=-1).astype(self.dtype)
        return jnp.transpose(jnp.matmul(weights, v), (0, 2, 1, 3)).reshape(1, self.positions, WIDTH)


def dense(x, weight):
    """Rows times the transpose of a weight, as two axes."""
    flat = jnp.matmul(x.reshape(-1, x.shape[-1]), jnp.transpose(weight))
    return flat.reshape(*x.shape[:-1], weight.shape[0])


def split(x):
    """Heads before positions."""
    return jnp.transpose(x.reshape(1, x.shape[1], -1, SIZE), (0, 2, 1, 3))


def repeated(x):
    """Each head of keys or values for the queries that share it."""
    wide = jnp.broadcast_to(x[:, :, None], (1, GROUPS, HEADS // GROUPS, x.shape[2], SIZE))
    return wide.reshape(1, HEADS, x.shape[2], SIZE)


def half_turned(x):
    return jnp.concatenate((-x[..., SIZE // 2 :], x[..., : SIZE // 2]), axis=-1)
