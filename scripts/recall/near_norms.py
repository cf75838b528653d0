"""What is no norm of its name, although it has the same parts."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import f32, finds
from recall.near_softmaxes import NEAR

X, W, HALF = f32(8, 8), f32(8), jax.ShapeDtypeStruct((4, 256), jnp.float16)
NO_LAYER_NORM = finds("layer_norm")
NO_RMS_NORM = finds("rms_norm")
NO_GROUP_NORM = finds("group_norm")
NO_BATCH_NORM = finds("batch_norm")
NO_L2_NORM = finds("l2_norm")


def mean(x, axis=-1):
    return x.mean(axis, keepdims=True)


@NEAR.case(X, X, refuses=NO_LAYER_NORM)
def layer_norm_variance_about_another_mean(x, y):
    variance = mean((x - mean(y)) ** 2)
    return (x - mean(x)) * lax.rsqrt(variance + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_variance_of_the_other_axis(x):
    variance = mean((x - mean(x, 0)) ** 2, 0)
    return (x - mean(x, 1)) * lax.rsqrt(variance + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_without_a_root(x):
    centred = x - mean(x)
    return centred / (mean(centred**2) + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_epsilon_outside_of_the_root(x):
    centred = x - mean(x)
    return centred / (jnp.sqrt(mean(centred**2)) + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_unbiased(x):
    return (x - mean(x)) * lax.rsqrt(x.var(-1, ddof=1, keepdims=True) + 1e-5)


@NEAR.case(X, refuses=(NO_LAYER_NORM, NO_RMS_NORM))
def layer_norm_not_centred(x):
    return x * lax.rsqrt(mean((x - mean(x)) ** 2) + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_mean_not_squared(x):
    variance = mean(x**2) - mean(x)
    return (x - mean(x)) * lax.rsqrt(variance + 1e-5)


@NEAR.case(X, refuses=NO_LAYER_NORM)
def layer_norm_twice_the_mean(x):
    return (x - 2 * mean(x)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


@NEAR.case(f32(4, 8, 8), refuses=NO_LAYER_NORM)
def layer_norm_mean_of_two_axes_variance_of_one(x):
    m = x.mean((1, 2), keepdims=True)
    return (x - m) * lax.rsqrt(mean((x - m) ** 2) + 1e-5)


NEAR.add("rms_norm_of_absolute_values", lambda x: x * lax.rsqrt(mean(jnp.abs(x)) + 1e-6), X, refuses=NO_RMS_NORM)


@NEAR.case(X, refuses=NO_RMS_NORM)
def rms_norm_sum_instead_of_mean(x):
    return x * lax.rsqrt(jnp.square(x).sum(-1, keepdims=True) + 1e-6)


NEAR.add("rms_norm_of_a_product", lambda x, y: x * lax.rsqrt(mean(x * y) + 1e-6), X, X, refuses=NO_RMS_NORM)
NEAR.add(
    "rms_norm_applied_to_another_tensor", lambda x, y: y * lax.rsqrt(mean(x * x) + 1e-6), X, X, refuses=NO_RMS_NORM
)
NEAR.add("rms_norm_without_a_root", lambda x: x / (mean(x * x) + 1e-6), X, refuses=NO_RMS_NORM)
NEAR.add("rms_norm_epsilon_outside_of_the_root", lambda x: x / (jnp.sqrt(mean(x * x)) + 1e-6), X, refuses=NO_RMS_NORM)


@NEAR.case(X, refuses=NO_RMS_NORM)
def rms_norm_divided_by_one_less(x):
    return x * lax.rsqrt((x * x).sum(-1, keepdims=True) / 7 + 1e-6)


@NEAR.case(HALF, refuses=NO_RMS_NORM)
def rms_norm_divided_by_a_little_less(x):
    total = lax.reduce(x * x, jnp.float16(0), lax.add, (1,))[:, None]
    return x * lax.rsqrt(total / jnp.float16(254) + jnp.float16(1e-3))


@NEAR.case(X, W, refuses=finds("rms_norm", weight="one_plus"))
def rms_norm_two_plus_weight(x, w):
    return x * lax.rsqrt(mean(x * x) + 1e-6) * (2 + w)


NEAR.add("rms_norm_multiplied_by_the_root", lambda x: x * jnp.sqrt(mean(x * x) + 1e-6), X, refuses=NO_RMS_NORM)
NEAR.add(
    "rms_norm_of_the_other_rows", lambda x: x * lax.rsqrt((x * x).mean(-1) + 1e-6)[None, :], X, refuses=NO_RMS_NORM
)


@NEAR.case(f32(2, 4, 4, 8), refuses=NO_GROUP_NORM)
def group_norm_within_each_pixel(x):
    groups = x.reshape(2, 4, 4, 4, 2)
    normed = (groups - mean(groups)) * lax.rsqrt(groups.var(-1, keepdims=True) + 1e-5)
    return normed.reshape(x.shape)


@NEAR.case(f32(2, 4, 4, 8), refuses=NO_GROUP_NORM)
def group_norm_over_the_batch_too(x):
    groups = x.reshape(2, 4, 4, 4, 2)
    axes = (0, 1, 2, 4)
    normed = (groups - mean(groups, axes)) * lax.rsqrt(groups.var(axes, keepdims=True) + 1e-5)
    return normed.reshape(x.shape)


@NEAR.case(f32(2, 4, 4, 8), W, W, refuses=NO_BATCH_NORM)
def batch_norm_of_training(x, scale, bias):
    axes = (0, 1, 2)
    return (x - mean(x, axes)) * lax.rsqrt(x.var(axes, keepdims=True) + 1e-5) * scale + bias


@NEAR.case(f32(2, 8, 8), W, W, refuses=NO_BATCH_NORM)
def batch_norm_variance_of_another_axis(x, m, variance):
    return (x - m) * lax.rsqrt(variance + 1e-5)[:, None]


@NEAR.case(X, W, W, W, W, refuses=NO_BATCH_NORM)
def batch_norm_without_a_root(x, scale, bias, m, variance):
    return (x - m) * (scale / (variance + 1e-5)) + bias


NEAR.add("l2_norm_of_absolute_values", lambda x: x / jnp.abs(x).sum(-1, keepdims=True), X, refuses=NO_L2_NORM)


@NEAR.case(X, X, refuses=NO_L2_NORM)
def l2_norm_of_another_tensor(x, y):
    return x * lax.rsqrt((y * y).sum(-1, keepdims=True) + 1e-12)


NEAR.add("l2_norm_without_a_root", lambda x: x / (x * x).sum(-1, keepdims=True), X, refuses=NO_L2_NORM)
