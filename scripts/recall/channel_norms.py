"""group_norm and batch_norm of inference as people write them, channels last and channels first."""

import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds

LINEN = Suite("linen")
HAIKU = Suite("haiku")
EQUINOX = Suite("equinox")
NUMPY = Suite("numpy-like")
TORCH = Suite("torch.export")

IMAGES, CHANNELS_FIRST = f32(2, 4, 4, 8), f32(2, 8, 4, 4)
C = f32(8)
GROUPS = finds("group_norm", num_groups=4, epsilon=1e-5)
BATCH = finds("batch_norm", epsilon=1e-5)


@LINEN.case(IMAGES, C, C, finds=finds("group_norm", num_groups=4, epsilon=1e-6, channel_axis=3))
def group_norm_statistics_repeated(x, scale, bias):
    grouped = x.reshape(2, 4, 4, 4, 2)
    mean = grouped.mean((1, 2, 4))
    variance = jnp.maximum(0.0, lax.square(grouped).mean((1, 2, 4)) - lax.square(mean))
    mean, variance = (jnp.repeat(s, 2, axis=1)[:, None, None, :] for s in (mean, variance))
    return (x - mean) * (lax.rsqrt(variance + 1e-6) * scale) + bias


@HAIKU.case(IMAGES, C, C, finds=GROUPS)
def group_norm_channels_last(x, scale, offset):
    grouped = x.reshape(2, 4, 4, 4, 2)
    mean = jnp.mean(grouped, (1, 2, 4), keepdims=True)
    variance = jnp.var(grouped, (1, 2, 4), keepdims=True)
    normed = (grouped - mean) * lax.rsqrt(variance + 1e-5)
    return normed.reshape(x.shape) * scale + offset


@EQUINOX.case(f32(8, 4, 4), C, C, finds=GROUPS)
def group_norm_of_one_image(x, weight, bias):
    grouped = x.reshape(4, 2, 4, 4)
    mean = jnp.mean(grouped, axis=(1, 2, 3), keepdims=True)
    variance = jnp.var(grouped, axis=(1, 2, 3), keepdims=True)
    normed = ((grouped - mean) / jnp.sqrt(variance + 1e-5)).reshape(8, 4, 4)
    return weight[:, None, None] * normed + bias[:, None, None]


@TORCH.case(CHANNELS_FIRST, C, C, finds=GROUPS)
def group_norm_of_decomposed_native(x, weight, bias):
    flat = x.reshape(2, 4, 32)
    mean = flat.sum(2, keepdims=True) / 32
    centred = flat - mean
    variance = (centred * centred).sum(2, keepdims=True) / 32
    normed = (centred * lax.rsqrt(variance + 1e-5)).reshape(2, 8, 4, 4)
    return normed * weight.reshape(1, 8, 1, 1) + bias.reshape(1, 8, 1, 1)


@NUMPY.case(bf16(2, 8, 6), bf16(8), bf16(8), finds=finds("group_norm", num_groups=2, epsilon=1e-5))
def group_norm_in_f32(x, g, b):
    wide = x.astype(jnp.float32).reshape(2, 2, 4, 6)
    mean, variance = wide.mean((2, 3), keepdims=True), wide.var((2, 3), keepdims=True)
    normed = ((wide - mean) / jnp.sqrt(variance + 1e-5)).reshape(2, 8, 6).astype(jnp.bfloat16)
    return normed * g[:, None] + b[:, None]


@LINEN.case(IMAGES, C, C, C, C, finds=finds("batch_norm", epsilon=1e-5, channel_axis=3))
def batch_norm(x, scale, bias, mean, variance):
    mean, variance = mean.reshape(1, 1, 1, 8), variance.reshape(1, 1, 1, 8)
    factor = lax.rsqrt(variance + 1e-5) * scale.reshape(1, 1, 1, 8)
    return (x - mean) * factor + bias.reshape(1, 1, 1, 8)


@HAIKU.case(IMAGES, C, C, C, C, finds=BATCH)
def batch_norm_inverse_first(x, scale, offset, mean, variance):
    inverse = scale * lax.rsqrt(variance + 1e-5)
    return (x - mean) * inverse + offset


@EQUINOX.case(f32(8, 4, 4), C, C, C, C, finds=finds("batch_norm", epsilon=1e-5, channel_axis=0))
def batch_norm_of_one_image(x, weight, bias, mean, variance):
    normed = (x - mean[:, None, None]) / jnp.sqrt(variance[:, None, None] + 1e-5)
    return normed * weight[:, None, None] + bias[:, None, None]


@TORCH.case(CHANNELS_FIRST, C, C, C, C, finds=finds("batch_norm", epsilon=1e-5, channel_axis=1))
def batch_norm_of_decomposed_no_training(x, weight, bias, mean, variance):
    def expand(s):
        return s[:, None][:, :, None]

    inverse = jnp.reciprocal(jnp.sqrt(variance + 1e-5)) * 1
    return (x - expand(mean)) * expand(inverse) * expand(weight) + expand(bias)


@NUMPY.case(f16(4, 8), f16(8), f16(8), finds=finds("batch_norm", epsilon=1e-3))
def batch_norm_rows_without_weight(x, mean, variance):
    return (x - mean) / jnp.sqrt(variance + 1e-3)


@NUMPY.case(CHANNELS_FIRST, C, C, C, C, finds=BATCH)
def batch_norm_folded_to_scale_and_shift(x, weight, bias, mean, variance):
    scale = weight / jnp.sqrt(variance + 1e-5)
    shift = bias - mean * scale
    return x * scale.reshape(1, 8, 1, 1) + shift.reshape(1, 8, 1, 1)
