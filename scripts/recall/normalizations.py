"""layer_norm, rms_norm and l2_norm as people write them."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds

LINEN = Suite("linen")
HAIKU = Suite("haiku")
EQUINOX = Suite("equinox")
NUMPY = Suite("numpy-like")
TORCH = Suite("torch.export")

X, W = f32(2, 4, 16), f32(16)
LAYER = finds("layer_norm", epsilon=1e-5)
RMS = finds("rms_norm", epsilon=1e-6)


@LINEN.case(X, W, W, finds=finds("layer_norm", epsilon=1e-6))
def layer_norm_fast_variance(x, scale, bias):
    mean, mean2 = jnp.mean(x, -1), jnp.mean(lax.square(x), -1)
    variance = jnp.maximum(0.0, mean2 - lax.square(mean))
    factor = lax.rsqrt(variance[..., None] + 1e-6) * scale.reshape(1, 1, 16)
    return (x - mean[..., None]) * factor + bias.reshape(1, 1, 16)


@LINEN.case(bf16(2, 4, 16), W, W, finds=finds("layer_norm", epsilon=1e-6))
def layer_norm_in_f32(x, scale, bias):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = lax.square(wide - mean).mean(-1, keepdims=True)
    y = (x - mean) * (lax.rsqrt(variance + 1e-6) * scale) + bias
    return y.astype(jnp.bfloat16)


@HAIKU.case(X, W, W, finds=LAYER)
def layer_norm_inverse_first(x, scale, offset):
    mean, variance = jnp.mean(x, axis=-1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
    inverse = jnp.broadcast_to(scale, x.shape) * lax.rsqrt(variance + 1e-5)
    return inverse * (x - mean) + jnp.broadcast_to(offset, x.shape)


@HAIKU.case(f32(2, 4, 6), f32(4, 6), f32(4, 6), finds=LAYER)
def layer_norm_of_two_axes(x, scale, offset):
    mean, variance = jnp.mean(x, axis=(1, 2), keepdims=True), jnp.var(x, axis=(1, 2), keepdims=True)
    return scale * lax.rsqrt(variance + 1e-5) * (x - mean) + offset


@EQUINOX.case(f32(2, 16), W, W, finds=LAYER)
def layer_norm_mapped(x, weight, bias):
    def one(x):
        mean = jnp.mean(x, keepdims=True)
        variance = jnp.maximum(jnp.var(x, keepdims=True), 0.0)
        return weight * ((x - mean) * lax.rsqrt(variance + 1e-5)) + bias

    return jax.vmap(one)(x)


@NUMPY.case(X, W, W, finds=LAYER)
def layer_norm_by_square_root(x, g, b):
    mean = x.mean(-1, keepdims=True)
    return g * (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, -1, keepdims=True) + 1e-5) + b


@NUMPY.case(f16(16, 4), finds=finds("layer_norm", epsilon=1e-3, weight="none"))
def layer_norm_first_axis_no_weight(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3)


@NUMPY.case(X, W, finds=LAYER)
def layer_norm_no_bias(x, g):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.pow(jnp.square(centred).mean(-1, keepdims=True) + 1e-5, -0.5) * g


@TORCH.case(X, W, W, finds=LAYER)
def layer_norm_of_decomposed_native(x, weight, bias):
    mean = jnp.expand_dims(jnp.sum(x, 2) / 16.0, 2)
    centred = x - mean
    variance = jnp.expand_dims(jnp.sum(centred * centred, 2) / 16.0, 2)
    inverse = 1.0 / jnp.sqrt(variance + 1e-5)
    return centred * inverse * weight[None, None] + bias[None, None]


@LINEN.case(X, W, finds=RMS)
def rms_norm(x, scale):
    mean2 = jnp.mean(lax.square(x), -1, keepdims=True)
    return x * (lax.rsqrt(mean2 + 1e-6) * scale)


@LINEN.case(bf16(2, 4, 16), bf16(16), finds=finds("rms_norm", epsilon=1e-6, weight="one_plus"))
def rms_norm_one_plus_weight(x, scale):
    variance = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    normed = jnp.asarray(x * jnp.reciprocal(jnp.sqrt(variance + 1e-6)), jnp.bfloat16)
    return normed * (1 + scale)


@HAIKU.case(X, W, finds=finds("rms_norm", epsilon=1e-5))
def rms_norm_weight_broadcast(x, scale):
    mean_squared = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
    mean_squared = jnp.broadcast_to(mean_squared, x.shape)
    return x * jnp.broadcast_to(scale, x.shape) * jax.lax.rsqrt(mean_squared + 1e-5)


@EQUINOX.case(f32(3, 16), W, finds=finds("rms_norm", epsilon=1e-5))
def rms_norm_mapped(x, weight):
    return jax.vmap(lambda row: weight * (row * lax.rsqrt(jnp.mean(row**2) + 1e-5)))(x)


@NUMPY.case(X, finds=finds("rms_norm", epsilon=1e-6, weight="none"))
def rms_norm_no_weight(x):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


@NUMPY.case(f16(2, 16, 3), f16(16), finds=RMS)
def rms_norm_middle_axis(x, w):
    return x * lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True) + 1e-6) * w[None, :, None]


@TORCH.case(bf16(2, 4, 16), bf16(16), finds=RMS)
def rms_norm_llama(x, weight):
    wide = x.astype(jnp.float32)
    variance = jnp.power(wide, 2.0).mean(-1, keepdims=True)
    return weight * (wide * lax.rsqrt(variance + 1e-6)).astype(jnp.bfloat16)


@TORCH.case(bf16(2, 4, 16), bf16(16), finds=finds("rms_norm", epsilon=1e-6, weight="one_plus"))
def rms_norm_gemma(x, weight):
    wide = x.astype(jnp.float32)
    normed = wide * lax.rsqrt(jnp.sum(wide * wide, -1, keepdims=True) / 16 + 1e-6)
    return (normed * (1.0 + weight.astype(jnp.float32))).astype(jnp.bfloat16)


NUMPY.add("l2_norm", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), X, finds=finds("l2_norm"))


@LINEN.case(X, finds=finds("l2_norm", epsilon=1e-12))
def l2_norm_epsilon_inside(x):
    return x * lax.rsqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + 1e-12)


@TORCH.case(f16(2, 16), finds=finds("l2_norm"))
def l2_norm_held_from_zero(x):
    norm = jnp.sqrt(jnp.sum(jnp.abs(x) ** 2, axis=1, keepdims=True))
    return x / jnp.broadcast_to(jnp.maximum(norm, 1e-4), x.shape)


NUMPY.add("l2_norm_first_axis", lambda x: x / (jnp.sqrt((x * x).sum(0)) + 1e-6), bf16(16, 4), finds=finds("l2_norm"))


@HAIKU.case(X, finds=finds("l2_norm", epsilon=1e-6))
def l2_norm_maximum_inside(x):
    return x * lax.rsqrt(jnp.maximum(jnp.sum(x**2, -1, keepdims=True), 1e-6))
