"""Choosing the next token: penalties for what was said before, top-k, top-p, and a draw.

Each step changes logits at positions that the data chooses, and so leaves JAX as a scatter: a penalty `.at[rows,
history].set`, a count `.add`, a ban `.min`, a suppressed column `.at[:, tokens].set`, a top-k mask `.at[rows,
tokens].set`, and for top-p the way back from sorted order, `.at[rows, order].set`. A draw takes its uniform noise as an
argument: the same noise, the same token.

    hlo-lower export models/sampling.py:greedy -o greedy.mlir
    hlo-lower export models/sampling.py:sample_top_k -o top_k.mlir --set vocab=32000 --set top_k=50
    hlo-lower export models/sampling.py:sample_top_p -o top_p.mlir --set preset=llama
    hlo-lower export models/sampling.py:sample_fresh -o open.mlir --shapes "b, _" "b, h" "b, _"

The history of a sequence that is shorter than the longest ends in tokens equal to vocab: they are out of bounds, so
their updates are dropped.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Choice = tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class Config:
    """The size of a step and the taste of the sampler. The defaults are the preset `tiny`.

    Attributes:
      batch: sequences.
      vocab: tokens in the vocabulary.
      history: tokens of each sequence so far.
      banned: tokens that may not come next, per sequence.
      suppressed: tokens that may never come.
      top_k: tokens that `sample_top_k` draws from, at most vocab.
      top_p: probability that `sample_top_p` draws from, above 0, at most 1.
      temperature: divides the logits before a draw, above 0.
      repetition: divides a positive logit of a token in the history and multiplies a negative one, at least 1.
      frequency: taken off the logit of a token once for every time it is in the history.
      freshness: multiplies the probability of a token once for every time it is in the history, from 0 to 1.
    """

    batch: int = 2
    vocab: int = 64
    history: int = 12
    banned: int = 3
    suppressed: int = 2
    top_k: int = 8
    top_p: float = 0.9
    temperature: float = 0.8
    repetition: float = 1.2
    frequency: float = 0.1
    freshness: float = 0.5

    def __post_init__(self) -> None:
        for name in ("batch", "vocab", "history", "banned", "suppressed", "top_k"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.top_k > self.vocab:
            raise ValueError(f"top_k={self.top_k} must not exceed vocab={self.vocab}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p} must be above 0 and at most 1")
        if self.temperature <= 0:
            raise ValueError(f"temperature={self.temperature} must be above 0")


PRESETS = {
    "tiny": Config(),
    # The vocabulary of Llama 3 and its usual sampler.
    "llama": Config(batch=8, vocab=128256, history=1024, banned=16, suppressed=8, top_k=50, top_p=0.9, temperature=0.6),
}


# --- changes to logits --------------------------------------------------------------------------------------------


def rows_of(logits: jax.Array) -> jax.Array:
    """The row numbers of logits [batch, vocab] as [batch, 1], to go with columns of [batch, n]."""
    return jnp.arange(logits.shape[0])[:, None]


def penalize_repetition(logits: jax.Array, history: jax.Array, config: Config) -> jax.Array:
    """Make the tokens of history [batch, h] less likely, once each, however often they occur."""
    rows = rows_of(logits)
    scores = logits.at[rows, history].get(mode="fill", fill_value=0)
    scores = jnp.where(scores < 0, scores * config.repetition, scores / config.repetition)
    return logits.at[rows, history].set(scores)


def penalize_frequency(logits: jax.Array, history: jax.Array, config: Config) -> jax.Array:
    """Make the tokens of history [batch, h] less likely, the more the oftener they occur."""
    counts = jnp.zeros(logits.shape, jnp.int32).at[rows_of(logits), history].add(1)
    return logits - config.frequency * counts


def ban(logits: jax.Array, banned: jax.Array) -> jax.Array:
    """Push the tokens of banned [batch, n] down to a logit of -10000; one that is lower already stays."""
    return logits.at[rows_of(logits), banned].min(-1e4)


def suppress(logits: jax.Array, suppressed: jax.Array) -> jax.Array:
    """Rule the tokens of suppressed [n] out for every sequence."""
    return logits.at[:, suppressed].set(-jnp.inf)


def keep_top_k(logits: jax.Array, config: Config) -> jax.Array:
    """Rule out all but the top_k tokens of each sequence, ties by the lower token."""
    values, tokens = jax.lax.top_k(logits, config.top_k)
    return jnp.full_like(logits, -jnp.inf).at[rows_of(logits), tokens].set(values)


def keep_top_p(logits: jax.Array, config: Config) -> jax.Array:
    """Rule out all but the most likely tokens whose probability, up to and with the last of them, is top_p."""
    order = jnp.argsort(logits, axis=-1, descending=True)
    ranked = jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1)
    kept = jnp.cumsum(ranked, axis=-1) - ranked < config.top_p  # the sum before it: the most likely is always kept
    kept = jnp.zeros(logits.shape, bool).at[rows_of(logits), order].set(kept)
    return jnp.where(kept, logits, -jnp.inf)


def draw(logits: jax.Array, noise: jax.Array) -> jax.Array:
    """Draw a token per row by the Gumbel trick, from noise [batch, vocab] uniform over [0, 1)."""
    limits = jnp.finfo(noise.dtype)
    noise = jnp.clip(noise, limits.tiny, 1 - limits.epsneg)  # open at both ends: no infinities
    return best(logits - jnp.log(-jnp.log(noise)))


def best(logits: jax.Array) -> jax.Array:
    """The token with the highest logit in each row, the lowest among equals."""
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)


# --- the samplers -------------------------------------------------------------------------------------------------


def greedy(
    logits: jax.Array, history: jax.Array, banned: jax.Array, suppressed: jax.Array, *, config: Config
) -> Choice:
    """The most likely token after all penalties. Batch, history, banned and suppressed may be symbolic; vocab too.

    Args:
      logits: [batch, vocab] float32; donated.
      history: [batch, h] int32, padded with vocab.
      banned: [batch, n] int32, padded with vocab.
      suppressed: [m] int32, the same for every sequence.
      config: the sampler.

    Returns:
      The token of each sequence, int32 [batch], and the logits that it was chosen from, float32 [batch, vocab].
    """
    logits = penalize_repetition(logits, history, config)
    logits = penalize_frequency(logits, history, config)
    logits = suppress(ban(logits, banned), suppressed)
    return best(logits), logits


def sample_top_k(logits: jax.Array, noise: jax.Array, *, config: Config) -> Choice:
    """A draw among the top_k tokens. Batch and vocab may be symbolic, top_k is a number.

    Args:
      logits: [batch, vocab] float32; donated.
      noise: [batch, vocab] float32, uniform over [0, 1).
      config: the sampler.

    Returns:
      The token of each sequence, int32 [batch], and the logits that it was chosen from, float32 [batch, vocab].
    """
    logits = keep_top_k(logits, config) / config.temperature
    return draw(logits, noise), logits


def sample_top_p(logits: jax.Array, noise: jax.Array, *, config: Config) -> Choice:
    """A draw among the most likely tokens that make up top_p; takes and gives what `sample_top_k` does.

    Batch and vocab may be symbolic.
    """
    logits = keep_top_p(logits / config.temperature, config)
    return draw(logits, noise), logits


def sample_fresh(logits: jax.Array, history: jax.Array, noise: jax.Array, *, config: Config) -> Choice:
    """A draw that prefers what was not said: each time a token is in the history its probability shrinks.

    Batch, vocab and history may be symbolic.

    Args:
      logits: [batch, vocab] float32; donated.
      history: [batch, h] int32, padded with vocab.
      noise: [batch, vocab] float32, uniform over [0, 1).
      config: the sampler.

    Returns:
      The token of each sequence, int32 [batch], and the logits that it was chosen from, float32 [batch, vocab].
    """
    probabilities = jax.nn.softmax(logits / config.temperature, axis=-1)
    probabilities = probabilities.at[rows_of(logits), history].multiply(config.freshness)
    logits = jnp.log(probabilities)
    return draw(logits, noise), logits


# --- what `hlo-lower export` needs to know ------------------------------------------------------------------------


def specs(config: Config) -> dict[str, jax.ShapeDtypeStruct]:
    """Every argument of the samplers by its name."""
    return {
        "logits": jax.ShapeDtypeStruct((config.batch, config.vocab), jnp.float32),
        "noise": jax.ShapeDtypeStruct((config.batch, config.vocab), jnp.float32),
        "history": jax.ShapeDtypeStruct((config.batch, config.history), jnp.int32),
        "banned": jax.ShapeDtypeStruct((config.batch, config.banned), jnp.int32),
        "suppressed": jax.ShapeDtypeStruct((config.suppressed,), jnp.int32),
    }


def greedy_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `greedy`."""
    given = specs(config)
    return given["logits"], given["history"], given["banned"], given["suppressed"]


def draw_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `sample_top_k` and `sample_top_p`."""
    given = specs(config)
    return given["logits"], given["noise"]


def fresh_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of `sample_fresh`."""
    given = specs(config)
    return given["logits"], given["history"], given["noise"]


EXPORTS = {
    "greedy": {"args": greedy_args, "config": Config(), "presets": PRESETS, "donate": (0,)},
    "sample_top_k": {"args": draw_args, "config": Config(), "presets": PRESETS, "donate": (0,)},
    "sample_top_p": {"args": draw_args, "config": Config(), "presets": PRESETS, "donate": (0,)},
    "sample_fresh": {"args": fresh_args, "config": Config(), "presets": PRESETS, "donate": (0,)},
}
