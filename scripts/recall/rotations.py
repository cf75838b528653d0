"""rope as people write it: halves, interleaved, partial; tables given or computed, of several layouts."""

import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds, i32

JAX = Suite("JAX models")
TORCH = Suite("torch.export")
NUMPY = Suite("numpy-like")

X = f32(2, 8, 4, 16)
"""Batch, positions, heads, size of a head."""

FIRST = f32(2, 4, 8, 16)
"""With heads before positions."""

HALVES = finds("rope", pairs="halves")
INTERLEAVED = finds("rope", pairs="interleaved")


def turned(x):
    """(a, b) to (-b, a), halves of the last axis."""
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([-b, a], axis=-1)


@TORCH.case(FIRST, f32(8, 16), f32(8, 16), finds=HALVES)
def rope_llama(x, cos, sin):
    return x * cos[None, None] + turned(x) * sin[None, None]


@TORCH.case(bf16(2, 4, 8, 16), i32(2, 8), finds=HALVES)
def rope_with_tables_computed(x, positions):
    inverse = 1.0 / (10000 ** (jnp.arange(0, 16, 2, dtype=jnp.float32) / 16))
    angles = positions[:, :, None].astype(jnp.float32) * inverse
    angles = jnp.concatenate([angles, angles], -1)[:, None]
    return x * jnp.cos(angles).astype(jnp.bfloat16) + turned(x) * jnp.sin(angles).astype(jnp.bfloat16)


@JAX.case(X, f32(8, 8), f32(8, 8), finds=HALVES)
def rope_halves_joined(x, cos, sin):
    cos, sin = cos[None, :, None, :], sin[None, :, None, :]
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


@JAX.case(bf16(2, 8, 4, 16), i32(2, 8), finds=HALVES)
def rope_gemma(x, positions):
    timescale = 10_000 ** (2 * jnp.arange(8) / 16)
    angles = (positions[..., None] / timescale[None, None])[..., None, :]
    a, b = x[..., :8], x[..., 8:]
    out = jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), b * jnp.cos(angles) + a * jnp.sin(angles)], -1)
    return out.astype(x.dtype)


@NUMPY.case(X, f32(8, 8), f32(8, 8), finds=HALVES)
def rope_halves_rolled(x, cos, sin):
    cos = jnp.concatenate([cos, cos], -1)[:, None]
    sin = jnp.concatenate([-sin, sin], -1)[:, None]
    return x * cos + jnp.roll(x, 8, axis=-1) * sin


@TORCH.case(FIRST, f32(8, 8), f32(8, 8), finds=INTERLEAVED)
def rope_interleaved_stacked(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1).reshape(x.shape)


@TORCH.case(X, f32(8, 16), f32(8, 16), finds=INTERLEAVED)
def rope_gptj(x, cos, sin):
    every_two = jnp.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * cos[:, None] + every_two * sin[:, None]


@JAX.case(f16(2, 8, 4, 16), f16(8, 8), f16(8, 8), finds=INTERLEAVED)
def rope_interleaved_by_reshape(x, cos, sin):
    pairs = x.reshape(2, 8, 4, 8, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return jnp.concatenate([(a * cos - b * sin)[..., None], (a * sin + b * cos)[..., None]], -1).reshape(x.shape)


@NUMPY.case(X, f32(8, 8), f32(8, 8), finds=INTERLEAVED)
def rope_by_complex_numbers(x, cos, sin):
    pairs = x.reshape(2, 8, 4, 8, 2)
    turned_by = lax.complex(cos, sin)[None, :, None]
    out = lax.complex(pairs[..., 0], pairs[..., 1]) * turned_by
    return jnp.stack([lax.real(out), lax.imag(out)], -1).reshape(x.shape)


@TORCH.case(FIRST, f32(8, 8), f32(8, 8), finds=finds("rope", pairs="halves", size=8))
def rope_partial_neox(x, cos, sin):
    part, rest = x[..., :8], x[..., 8:]
    return jnp.concatenate([part * cos + turned(part) * sin, rest], axis=-1)


@JAX.case(f32(2, 1, 4, 16), f32(32, 8), f32(32, 8), i32(), finds=HALVES)
def rope_decode_row_of_table(x, cos, sin, position):
    cos = lax.dynamic_slice(cos, (position, 0), (1, 8))[:, None]
    sin = lax.dynamic_slice(sin, (position, 0), (1, 8))[:, None]
    a, b = x[..., :8], x[..., 8:]
    return jnp.concatenate((a * cos - b * sin, a * sin + b * cos), axis=-1)


@TORCH.case(FIRST, f32(8, 8), f32(8, 8), finds=finds("rope", pairs="interleaved_to_halves"))
def rope_deepseek(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return jnp.concatenate([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
