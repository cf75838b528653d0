"""A mixture-of-experts block: a router, the dispatch of tokens to their experts, the experts, and the way back.

The dispatch is where the scatters are, and people write it in three ways, each an export of its own:

- `capacity`: each expert has a fixed number of slots; a token goes to the next free slot of its expert, and one that
  finds none is dropped (`buffer.at[expert, slot].set(x, mode="drop")`). Back by a gather and `.at[token].add`.
- `sorted_tokens`: the tokens in the order of their experts, each expert a run of rows; back by `.at[order].set`.
- `segments`: the same, and back by `jax.ops.segment_sum` straight from the sorted rows.

    hlo-lower export models/moe.py:capacity -o capacity.mlir --set tokens=64 --set slots=24
    hlo-lower export models/moe.py:sorted_tokens -o sorted.mlir --set preset=mixtral
    hlo-lower export models/moe.py:segments -o open.mlir --shapes ... "n, _"

Each also counts the tokens of every expert, as a router's load balancing needs: by `.at[expert].add(1)` or by bincount.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

Params = dict[str, jax.Array]


@dataclass(frozen=True)
class Config:
    """The size of a block. The defaults are the preset `tiny`.

    Attributes:
      tokens: tokens that are routed together, batch times length.
      hidden: width of a token.
      ffn: inner width of an expert.
      experts: how many there are.
      top_k: experts that a token goes to, at most experts.
      slots: tokens that an expert takes, in `capacity`.
      dtype: dtype of weights and tokens.
    """

    tokens: int = 16
    hidden: int = 32
    ffn: int = 64
    experts: int = 4
    top_k: int = 2
    slots: int = 10
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("tokens", "hidden", "ffn", "experts", "top_k", "slots"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.top_k > self.experts:
            raise ValueError(f"top_k={self.top_k} must not exceed experts={self.experts}")
        if not jnp.issubdtype(jnp.dtype(self.dtype), jnp.floating):
            raise ValueError(f"dtype={self.dtype} must be a floating-point dtype")


PRESETS = {
    "tiny": Config(),
    # One block of Mixtral 8x7B.
    "mixtral": Config(tokens=512, hidden=4096, ffn=14336, experts=8, top_k=2, slots=160, dtype="bfloat16"),
    # One block of Qwen3 30B-A3B.
    "qwen3_30b": Config(tokens=512, hidden=2048, ffn=768, experts=128, top_k=8, slots=40, dtype="bfloat16"),
}


def param_specs(config: Config) -> Params:
    """Shape and dtype of every weight: the router, and per matrix of an expert those of all experts in one."""
    spec = partial(jax.ShapeDtypeStruct, dtype=jnp.dtype(config.dtype))
    return {
        "router": spec((config.hidden, config.experts)),
        "w_gate": spec((config.experts, config.hidden, config.ffn)),
        "w_up": spec((config.experts, config.hidden, config.ffn)),
        "w_down": spec((config.experts, config.ffn, config.hidden)),
    }


# --- routing and experts ------------------------------------------------------------------------------------------


def route(params: Params, x: jax.Array, config: Config) -> tuple[jax.Array, jax.Array]:
    """Choose top_k experts for each token of x [tokens, hidden].

    Returns:
      Weights of [tokens, top_k] in float32 that sum to one per token, and the experts, int32 of the same shape.
    """
    logits = jnp.matmul(x, params["router"], preferred_element_type=jnp.float32)
    best, experts = jax.lax.top_k(logits, config.top_k)
    return jax.nn.softmax(best, axis=-1), experts


def expert_ffn(params: Params, x: jax.Array) -> jax.Array:
    """SwiGLU of x [experts, slots, hidden], expert by expert."""
    gate = jnp.einsum("ech,ehf->ecf", x, params["w_gate"])
    up = jnp.einsum("ech,ehf->ecf", x, params["w_up"])
    return jnp.einsum("ecf,efh->ech", jax.nn.silu(gate) * up, params["w_down"])


def grouped_ffn(params: Params, x: jax.Array, counts: jax.Array) -> jax.Array:
    """SwiGLU of x [rows, hidden], whose first counts[0] rows are expert 0's, the next counts[1] expert 1's, ..."""
    gate = jax.lax.ragged_dot(x, params["w_gate"], counts)
    up = jax.lax.ragged_dot(x, params["w_up"], counts)
    return jax.lax.ragged_dot(jax.nn.silu(gate) * up, params["w_down"], counts)


# --- three ways there and back ------------------------------------------------------------------------------------


def capacity(params: Params, x: jax.Array, *, config: Config) -> tuple[jax.Array, jax.Array]:
    """Run the block with a fixed number of slots per expert. The number of tokens may be symbolic, the slots may not.

    Args:
      params: weights, as `param_specs` lays them out.
      x: [tokens, hidden].
      config: the size.

    Returns:
      [tokens, hidden], zero for a token that found no slot, and how many tokens chose each expert, int32 [experts].
    """
    weights, experts = route(params, x, config)
    expert = experts.reshape(-1)
    token = jnp.arange(expert.shape[0]) // config.top_k
    chosen = jax.nn.one_hot(expert, config.experts, dtype=jnp.int32)
    slot = jnp.sum((jnp.cumsum(chosen, axis=0) - 1) * chosen, axis=-1)  # how many chose the expert before

    buffer = jnp.zeros((config.experts, config.slots, x.shape[1]), x.dtype)
    buffer = buffer.at[expert, slot].set(x[token], mode="drop")
    done = expert_ffn(params, buffer)
    rows = done.at[expert, slot].get(mode="fill", fill_value=0)

    mixed = jnp.zeros(x.shape, jnp.float32).at[token].add(rows * weights.reshape(-1, 1))
    counts = jnp.zeros(config.experts, jnp.int32).at[expert].add(1)
    return mixed.astype(x.dtype), counts


def in_expert_order(experts: jax.Array, config: Config) -> tuple[jax.Array, jax.Array]:
    """The order that sorts the choices of [tokens, top_k] by expert, and how many chose each, int32 [experts]."""
    expert = experts.reshape(-1)
    return jnp.argsort(expert, stable=True), jnp.bincount(expert, length=config.experts)


def sorted_tokens(params: Params, x: jax.Array, *, config: Config) -> tuple[jax.Array, jax.Array]:
    """Run the block over tokens sorted by expert and unsort them. The number of tokens may be symbolic.

    Args:
      params: weights, as `param_specs` lays them out.
      x: [tokens, hidden].
      config: the size; slots have no part in it, and no token is dropped.

    Returns:
      [tokens, hidden], and how many tokens chose each expert, int32 [experts].
    """
    weights, experts = route(params, x, config)
    order, counts = in_expert_order(experts, config)
    done = grouped_ffn(params, x[order // config.top_k], counts)
    rows = jnp.zeros_like(done).at[order].set(done)  # order is a permutation: every row is written once
    rows = rows.reshape(x.shape[0], config.top_k, x.shape[1])
    return jnp.einsum("tkh,tk->th", rows, weights).astype(x.dtype), counts


def segments(params: Params, x: jax.Array, *, config: Config) -> tuple[jax.Array, jax.Array]:
    """As `sorted_tokens`, adding the sorted rows straight to their tokens. The number of tokens may be symbolic."""
    weights, experts = route(params, x, config)
    order, counts = in_expert_order(experts, config)
    token = order // config.top_k
    rows = grouped_ffn(params, x[token], counts) * weights.reshape(-1)[order][:, None]
    return jax.ops.segment_sum(rows, token, num_segments=x.shape[0]).astype(x.dtype), counts


# --- what `hlo-lower export` needs to know ------------------------------------------------------------------------


def block_args(config: Config) -> tuple[Any, ...]:
    """Example arguments of the three."""
    return param_specs(config), jax.ShapeDtypeStruct((config.tokens, config.hidden), jnp.dtype(config.dtype))


EXPORTS = {
    name: {"args": block_args, "config": Config(), "presets": PRESETS}
    for name in ("capacity", "sorted_tokens", "segments")
}
