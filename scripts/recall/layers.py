"""cumsum and its kin, linear, dropout of inference, kv_cache_update as people write them."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import Suite, bf16, f16, f32, finds, i32

JAX = Suite("JAX models")
NUMPY = Suite("numpy-like")
TORCH = Suite("torch.export")
LAYERS = Suite("layer libraries")

X = f32(4, 8)


NUMPY.add("cumsum", lambda x: jnp.cumsum(x, axis=1), X, finds=finds("cumsum", axis=1))


@JAX.case(bf16(4, 8), finds=finds("cumsum", axis=0, reverse=True))
def cumsum_reversed(x):
    return lax.cumsum(x, axis=0, reverse=True)


@JAX.case(i32(4, 8), finds=finds("cumsum", axis=1))
def cumsum_by_associative_scan(x):
    return lax.associative_scan(jnp.add, x, axis=1)


@TORCH.case(X, finds=finds("cumsum", axis=1))
def cumsum_by_windows(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 8), (1, 1), ((0, 0), (7, 0)))


NUMPY.add("cumsum_by_triangle", lambda x: x @ jnp.triu(jnp.ones((8, 8))), X, finds=finds("cumsum", axis=1))
NUMPY.add("cumprod", lambda x: jnp.cumprod(x, axis=1), f16(4, 8), finds=finds("cumprod", axis=1))
JAX.add("cummax", lambda x: lax.cummax(x, axis=1), X, finds=finds("cummax", axis=1))
JAX.add("cummin", lambda x: lax.cummin(x, axis=0), X, finds=finds("cummin", axis=0))
JAX.add("cumlogsumexp", lambda x: lax.cumlogsumexp(x, axis=1), X, finds=finds("cumlogsumexp", axis=1))


@TORCH.case(X, finds=finds("cummax", axis=1))
def cummax_by_windows(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 8), (1, 1), ((0, 0), (7, 0)))


W, B = f32(8, 6), f32(6)


@LAYERS.case(f32(2, 4, 8), W, B, finds=finds("linear"))
def linear_of_dot_general(x, kernel, bias):
    return lax.dot_general(x, kernel, (((2,), (0,)), ((), ()))) + jnp.reshape(bias, (1, 1, 6))


@LAYERS.case(f32(2, 8), f32(6, 8), B, finds=finds("linear"))
def linear_mapped(x, weight, bias):
    return jax.vmap(lambda row: weight @ row + bias)(x)


NUMPY.add("linear_plain", lambda x, w, b: x @ w + b, bf16(4, 8), bf16(8, 6), bf16(6), finds=finds("linear"))


@TORCH.case(f32(2, 4, 8), f32(6, 8), B, finds=finds("linear"))
def linear_of_addmm(x, weight, bias):
    flat = x.reshape(8, 8)
    return (bias + jnp.matmul(flat, weight.T)).reshape(2, 4, 6)


@NUMPY.case(f16(2, 4, 8), f16(8, 2, 3), f16(2, 3), finds=finds("linear"))
def linear_to_heads(x, w, b):
    return jnp.einsum("btd,dhk->bthk", x, w) + b


@LAYERS.case(X, finds=finds("dropout"))
def dropout_of_rate_nought(x):
    return jnp.where(jnp.ones(x.shape, bool), x / 1.0, jnp.zeros_like(x))


TORCH.add("dropout_times_one", lambda x: x * 1.0, X, finds=finds("dropout"))


@LAYERS.case(bf16(4, 8), finds=finds("dropout"))
def dropout_by_a_mask_of_ones(x):
    return x * jnp.ones(x.shape, x.dtype) / jnp.asarray(1.0, x.dtype)


@JAX.case(X, finds=finds("dropout"))
def dropout_chosen_by_a_constant(x):
    training = jnp.array(False)
    return lax.select(jnp.broadcast_to(training, x.shape), x * 2.0, x)


CACHE, NEW = f32(2, 32, 4, 16), f32(2, 1, 4, 16)
ROWS = finds("kv_cache_update", axis=1)


@JAX.case(CACHE, NEW, i32(), finds=ROWS)
def kv_cache_update_by_slice(cache, new, position):
    return lax.dynamic_update_slice(cache, new, (0, position, 0, 0))


@JAX.case(CACHE, f32(2, 4, 16), i32(2), finds=ROWS)
def kv_cache_update_of_each_row(cache, new, positions):
    return cache.at[jnp.arange(2), positions].set(new)


@LAYERS.case(bf16(2, 32, 4, 16), bf16(2, 1, 4, 16), i32(2), finds=ROWS)
def kv_cache_update_mapped(cache, new, positions):
    return jax.vmap(lambda c, n, p: lax.dynamic_update_slice(c, n, (p, 0, 0)))(cache, new, positions)


@TORCH.case(f32(2, 4, 32, 16), f32(2, 4, 3, 16), i32(3), finds=finds("kv_cache_update", axis=2))
def kv_cache_update_of_index_copy(cache, new, positions):
    return cache.at[:, :, positions].set(new)


@NUMPY.case(CACHE, NEW, i32(), finds=ROWS)
def kv_cache_update_by_mask(cache, new, position):
    return jnp.where((jnp.arange(32) == position)[None, :, None, None], new, cache)
