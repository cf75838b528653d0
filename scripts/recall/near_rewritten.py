"""What is none of the ops in the forms that are written apart: a rest that is joined, a sum that divides behind the
product, a scale and a shift, statistics that are repeated, one row of a cache."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import f32, finds, i32
from recall.near_softmaxes import NEAR

NO_ROPE, NO_ATTENTION = (finds("rope"),), (finds("attention"),)
NO_CACHE, NO_LOOKUP = (finds("kv_cache_update"),), (finds("embedding_lookup"),)
NO_GROUP_NORM, NO_BATCH_NORM, NO_GELU = (finds("group_norm"),), (finds("batch_norm"),), (finds("gelu"),)

X, HALF = f32(4, 8), f32(4, 2)


def parts(x):
    return x[..., :2], x[..., 2:4], x[..., 4:]


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_of_the_first_elements(x, cos, sin):
    a, b, _ = parts(x)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., :4]], -1)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_doubled(x, cos, sin):
    a, b, rest = parts(x)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin, rest * 2], -1)


@NEAR.case(X, X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_of_another_value(x, y, cos, sin):
    a, b, _ = parts(x)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin, y[..., 4:]], -1)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_between_signs_that_are_wrong(x, cos, sin):
    a, b, rest = parts(x)
    return jnp.concatenate([a * cos + b * sin, b * cos + a * sin, rest], -1)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_behind_halves_in_the_other_order(x, cos, sin):
    a, b, rest = parts(x)
    return jnp.concatenate([b * cos + a * sin, a * cos - b * sin, rest], -1)


@NEAR.case(X, HALF, HALF, refuses=NO_ROPE)
def rope_rest_turned_round(x, cos, sin):
    a, b, rest = parts(x)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin, rest[..., ::-1]], -1)


CACHE, ROW, PLACE = f32(2, 16, 4), f32(2, 4), i32()


@NEAR.case(CACHE, ROW, PLACE, refuses=NO_CACHE)
def kv_cache_update_row_added(cache, new, place):
    return cache.at[:, place].add(new)


@NEAR.case(CACHE, ROW, refuses=NO_CACHE)
def kv_cache_update_row_at_a_constant(cache, new):
    return cache.at[:, jnp.int32(3)].set(new)


@NEAR.case(CACHE, PLACE, refuses=NO_CACHE)
def kv_cache_update_row_of_itself(cache, place):
    return cache.at[:, place].set(cache[:, 0] * 2)


@NEAR.case(ROW, PLACE, refuses=NO_CACHE)
def kv_cache_update_row_of_zeros(new, place):
    return jnp.zeros((2, 16, 4)).at[:, place].set(new)


@NEAR.case(CACHE, f32(2, 3), PLACE, refuses=NO_CACHE)
def kv_cache_update_part_of_a_row(cache, new, place):
    return cache.at[:, place, :3].set(new)


@NEAR.case(f32(4, 8), refuses=NO_GELU)
def gelu_root_of_another_number(x):
    return 0.5 * x * (1 + jnp.tanh(jnp.sqrt(jnp.pi / 5) * (x + 0.044715 * x**3)))


@NEAR.case(f32(4, 8), refuses=NO_GELU)
def gelu_without_the_root(x):
    return 0.5 * x * (1 + jnp.tanh(jnp.float32(2 / jnp.pi) * (x + 0.044715 * x**3)))


SQUARE = f32(8, 8)


def exponentials(q, k, axis=-1):
    scores = q @ k.T / 4
    return jnp.exp(scores - scores.max(axis, keepdims=True))


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_by_the_sums_of_columns(q, k, v):
    weights = exponentials(q, k)
    return (weights @ v) / weights.sum(0)[:, None]


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_along_the_values(q, k, v):
    weights = exponentials(q, k)
    return (weights @ v) / weights.sum(-1)[None]


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_by_the_sum_of_the_result(q, k, v):
    out = exponentials(q, k) @ v
    return out / out.sum(-1, keepdims=True)


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_by_another_sum(q, k, v):
    return (exponentials(q, k) @ v) / jnp.exp(q @ k.T / 4).sum(-1, keepdims=True)


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_less_the_maximum_of_columns(q, k, v):
    weights = exponentials(q, k, 0)
    return (weights @ v) / weights.sum(-1, keepdims=True)


@NEAR.case(SQUARE, SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divided_by_the_transposed_weights(q, k, v):
    weights = exponentials(q, k)
    return (weights.T @ v) / weights.sum(-1, keepdims=True)


@NEAR.case(SQUARE, SQUARE, refuses=NO_ATTENTION)
def attention_divides_its_sum(q, k):
    weights = exponentials(q, k)
    return weights.sum(-1, keepdims=True) / (weights @ k)


TABLE, TOKENS = f32(16, 8), i32(2, 6)


@NEAR.case(TABLE, TOKENS, refuses=NO_LOOKUP)
def embedding_lookup_part_of_a_row_mapped(table, tokens):
    return jax.vmap(jax.vmap(lambda t: lax.dynamic_slice(table, (t, 1), (1, 7))[0]))(tokens)


@NEAR.case(TABLE, TOKENS, refuses=NO_LOOKUP)
def embedding_lookup_two_rows_mapped(table, tokens):
    return jax.vmap(jax.vmap(lambda t: lax.dynamic_slice(table, (t, 0), (2, 8))))(tokens)


@NEAR.case(TABLE, TOKENS, refuses=NO_LOOKUP)
def embedding_lookup_columns_mapped(table, tokens):
    return jax.vmap(jax.vmap(lambda t: lax.dynamic_slice(table, (0, t), (16, 1))[:, 0]))(tokens)


IMAGES, C = f32(2, 4, 4, 4), f32(4)


def statistics(x):
    grouped = x.reshape(2, 4, 4, 2, 2)
    average = grouped.mean((1, 2, 4))
    return average, lax.square(grouped).mean((1, 2, 4)) - lax.square(average)


@NEAR.case(IMAGES, refuses=NO_GROUP_NORM)
def group_norm_statistics_tiled(x):
    average, variance = (jnp.tile(s, (1, 2))[:, None, None] for s in statistics(x))
    return (x - average) * lax.rsqrt(variance + 1e-6)


@NEAR.case(IMAGES, refuses=NO_GROUP_NORM)
def group_norm_variances_tiled(x):
    average, variance = statistics(x)
    average, variance = jnp.repeat(average, 2, 1)[:, None, None], jnp.tile(variance, (1, 2))[:, None, None]
    return (x - average) * lax.rsqrt(variance + 1e-6)


CUBE, ROWS = f32(4, 4, 4), (f32(4), f32(4), f32(4), f32(4))


def along(row, axis):
    return row.reshape([-1 if d == axis else 1 for d in range(3)])


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_mean_by_the_weight(x, weight, bias, mean, variance):
    scale = weight / jnp.sqrt(variance + 1e-5)
    return x * along(scale, 1) + along(bias - mean * weight, 1)


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_mean_added(x, weight, bias, mean, variance):
    scale = weight / jnp.sqrt(variance + 1e-5)
    return x * along(scale, 1) + along(bias + mean * scale, 1)


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_by_two_axes(x, weight, bias, mean, variance):
    scale = weight / jnp.sqrt(variance + 1e-5)
    return x * along(scale, 1) + along(bias - mean * scale, 2)


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_times_the_root(x, weight, bias, mean, variance):
    scale = weight * jnp.sqrt(variance + 1e-5)
    return x * along(scale, 1) + along(bias - mean * scale, 1)


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_shift_turned(x, weight, bias, mean, variance):
    scale = weight / jnp.sqrt(variance + 1e-5)
    return x * along(scale, 1) + along(mean * scale - bias, 1)


@NEAR.case(CUBE, *ROWS, refuses=NO_BATCH_NORM)
def batch_norm_folded_epsilon_outside(x, weight, bias, mean, variance):
    scale = weight / (jnp.sqrt(variance) + 1e-5)
    return x * along(scale, 1) + along(bias - mean * scale, 1)
