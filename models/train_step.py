"""A training step of a small GPT: token and position embeddings, causal attention, cross-entropy, SGD or Adam.

The forward pass has no scatter; the backward pass has one for each table that is read by index: the token embedding
and the position embedding, whose gradients are sums over rows, and the log-probabilities, of which
`jnp.take_along_axis` picks the one of the label.

    hlo-lower export models/train_step.py:sgd -o sgd.mlir
    hlo-lower export models/train_step.py:adam -o adam.mlir --set preset=gpt2 --set layers=2
    hlo-lower export models/train_step.py:adam -o open.mlir --shapes ... ... "b, s+1"

The optimizers are written out, and the step gives away the parameters and the optimizer's state.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

Params = dict[str, Any]
State = dict[str, Any]


@dataclass(frozen=True)
class Config:
    """The size of a model and of a step. The defaults are the preset `tiny`.

    Attributes:
      layers: transformer blocks, unrolled.
      hidden: width of the residual stream, a multiple of heads.
      heads: attention heads.
      ffn: inner width of the feed-forward block.
      vocab: tokens in the vocabulary.
      length: positions in the position table; what a step trains on per sequence.
      batch: sequences in a step.
      dtype: dtype of weights and optimizer state.
      tied_head: whether the output head is the transposed embedding, which then has two gradients.
      learning_rate: size of a step.
      beta1: decay of Adam's mean of gradients.
      beta2: decay of Adam's mean of squared gradients.
      epsilon: added to Adam's denominator.
    """

    layers: int = 1
    hidden: int = 16
    heads: int = 2
    ffn: int = 32
    vocab: int = 64
    length: int = 8
    batch: int = 2
    dtype: str = "float32"
    tied_head: bool = False
    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "ffn", "vocab", "length", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.hidden % self.heads:
            raise ValueError(f"hidden={self.hidden} must be a multiple of heads={self.heads}")
        if not jnp.issubdtype(jnp.dtype(self.dtype), jnp.floating):
            raise ValueError(f"dtype={self.dtype} must be a floating-point dtype")


PRESETS = {
    "tiny": Config(),
    # The sizes of GPT-2, 124M parameters.
    "gpt2": Config(
        layers=12, hidden=768, heads=12, ffn=3072, vocab=50257, length=1024, batch=8, tied_head=True, learning_rate=6e-4
    ),
}


def param_specs(config: Config) -> Params:
    """Shape and dtype of every weight."""
    spec = partial(jax.ShapeDtypeStruct, dtype=jnp.dtype(config.dtype))
    layer = {
        "attention_norm": spec((config.hidden,)),
        "wqkv": spec((config.hidden, 3 * config.hidden)),
        "wo": spec((config.hidden, config.hidden)),
        "ffn_norm": spec((config.hidden,)),
        "w_up": spec((config.hidden, config.ffn)),
        "w_down": spec((config.ffn, config.hidden)),
    }
    params: Params = {
        "embedding": spec((config.vocab, config.hidden)),
        "positions": spec((config.length, config.hidden)),
        "layers": [dict(layer) for _ in range(config.layers)],
        "norm": spec((config.hidden,)),
    }
    if not config.tied_head:
        params["head"] = spec((config.hidden, config.vocab))
    return params


def state_specs(config: Config) -> State:
    """Shape and dtype of Adam's state: the step count, and the two means, each laid out as the weights."""
    return {
        "count": jax.ShapeDtypeStruct((), jnp.int32),
        "mean": param_specs(config),
        "square": param_specs(config),
    }


# --- the model ----------------------------------------------------------------------------------------------------


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    """Layer normalization of x [..., hidden] without a bias."""
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * weight


def attention(layer: Params, x: jax.Array, config: Config) -> jax.Array:
    """Causal attention over x [batch, S, hidden]."""
    batch, length, hidden = x.shape
    q, k, v = jnp.split(norm(x, layer["attention_norm"]) @ layer["wqkv"], 3, axis=-1)
    q, k, v = (t.reshape(batch, length, config.heads, hidden // config.heads) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (hidden // config.heads) ** -0.5
    causal = jnp.arange(length)[:, None] >= jnp.arange(length)
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, hidden) @ layer["wo"]


def logits_of(params: Params, tokens: jax.Array, config: Config) -> jax.Array:
    """Logits of [batch, S, vocab] for what follows each of tokens [batch, S]."""
    x = params["embedding"][tokens] + params["positions"][jnp.arange(tokens.shape[1])]
    for i, layer in enumerate(params["layers"]):
        with jax.named_scope(f"layer_{i}"):
            x = x + attention(layer, x, config)
            x = x + jax.nn.gelu(norm(x, layer["ffn_norm"]) @ layer["w_up"]) @ layer["w_down"]
    head = params["embedding"].T if config.tied_head else params["head"]
    return norm(x, params["norm"]) @ head


def loss_of(params: Params, tokens: jax.Array, config: Config) -> jax.Array:
    """Mean cross-entropy, in nats, of each of tokens [batch, S+1] after the first, given those before it."""
    log_probs = jax.nn.log_softmax(logits_of(params, tokens[:, :-1], config).astype(jnp.float32), axis=-1)
    labels = tokens[:, 1:]
    return -jnp.mean(jnp.take_along_axis(log_probs, labels[..., None], axis=-1))


# --- the steps ----------------------------------------------------------------------------------------------------


def sgd(params: Params, tokens: jax.Array, *, config: Config) -> tuple[jax.Array, Params]:
    """Take one step of gradient descent. The batch and S may be symbolic, S up to length.

    Args:
      params: weights, as `param_specs` lays them out; donated.
      tokens: [batch, S+1] int32: S inputs, and S labels, each the token that follows.
      config: the size.

    Returns:
      The loss before the step, a float32 scalar, and the weights after it.
    """
    loss, gradients = jax.value_and_grad(loss_of)(params, tokens, config)
    return loss, jax.tree.map(lambda w, g: w - (config.learning_rate * g).astype(w.dtype), params, gradients)


def adam(params: Params, state: State, tokens: jax.Array, *, config: Config) -> tuple[jax.Array, Params, State]:
    """Take one step of Adam. The batch and S may be symbolic, S up to length.

    Args:
      params: weights, as `param_specs` lays them out; donated.
      state: Adam's, as `state_specs` lays it out, zeros before the first step; donated.
      tokens: [batch, S+1] int32: S inputs, and S labels, each the token that follows.
      config: the size.

    Returns:
      The loss before the step, a float32 scalar, and the weights and the state after it.
    """
    loss, gradients = jax.value_and_grad(loss_of)(params, tokens, config)
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: config.beta1 * m + (1 - config.beta1) * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: config.beta2 * s + (1 - config.beta2) * g * g, state["square"], gradients)
    rate = config.learning_rate * jnp.sqrt(1 - config.beta2**count) / (1 - config.beta1**count)

    def updated(w: jax.Array, m: jax.Array, s: jax.Array) -> jax.Array:
        return w - (rate * m / (jnp.sqrt(s) + config.epsilon)).astype(w.dtype)

    return loss, jax.tree.map(updated, params, mean, square), {"count": count, "mean": mean, "square": square}


# --- what `hlo-lower export` needs to know ------------------------------------------------------------------------


def sgd_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `sgd`."""
    return param_specs(config), jax.ShapeDtypeStruct((config.batch, config.length + 1), jnp.int32)


def adam_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `adam`."""
    params, tokens = sgd_args(config)
    return params, state_specs(config), tokens


EXPORTS = {
    "sgd": {"args": sgd_args, "config": Config(), "presets": PRESETS, "donate": (0,)},
    "adam": {"args": adam_args, "config": Config(), "presets": PRESETS, "donate": (0, 1)},
}
