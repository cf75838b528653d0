"""What only looks like a cache that is written, a lookup, or an order of elements."""

import jax
import jax.numpy as jnp
from jax import lax

from recall.case import f32, finds, i32
from recall.near_softmaxes import NEAR

X = f32(8, 8)
CACHE, NEW = f32(2, 8, 4), f32(2, 1, 4)


@NEAR.case(CACHE, NEW, refuses=finds("kv_cache_update"))
def kv_cache_update_at_a_constant(cache, new):
    return lax.dynamic_update_slice(cache, new, (0, 3, 0))


@NEAR.case(NEW, i32(), refuses=finds("kv_cache_update"))
def kv_cache_update_of_zeros(new, position):
    return lax.dynamic_update_slice(jnp.zeros((2, 8, 4)), new, (0, position, 0))


@NEAR.case(CACHE, f32(1, 1, 4), i32(), refuses=finds("kv_cache_update"))
def kv_cache_update_of_one_entry(cache, new, position):
    return lax.dynamic_update_slice(cache, new, (position, position, 0))


@NEAR.case(f32(6, 2, 4), refuses=finds("kv_cache_update"))
def kv_cache_update_by_a_scan(rows):
    """What a scan gives is stacked step by step."""
    return lax.scan(lambda carry, row: (carry + row, carry * row), rows[0], rows)[1]


@NEAR.case(CACHE, CACHE, NEW, i32(), refuses=finds("kv_cache_update"))
def kv_cache_update_of_a_sum(cache, other, new, position):
    return lax.dynamic_update_slice(cache + other, new, (0, position, 0))


@NEAR.case(CACHE, f32(2, 3, 4), i32(3), refuses=finds("kv_cache_update"))
def kv_cache_update_multiplied(cache, new, positions):
    return cache.at[:, positions].multiply(new)


@NEAR.case(f32(2, 8, 4), NEW, i32(), refuses=finds("kv_cache_update"))
def kv_cache_update_up_to_the_position(cache, new, position):
    return jnp.where((jnp.arange(8) <= position)[None, :, None], new, cache)


@NEAR.case(f32(4, 16, 8), i32(3), refuses=finds("embedding_lookup"))
def embedding_lookup_of_experts(weights, chosen):
    return weights[chosen]


@NEAR.case(X, i32(3), refuses=finds("embedding_lookup"))
def embedding_lookup_of_parts_of_rows(table, tokens):
    return jax.vmap(lambda token: lax.dynamic_slice(table, (token, 0), (1, 4)))(tokens)


@NEAR.case(X, i32(4), refuses=finds("embedding_lookup"))
def embedding_lookup_by_another_one_hot(table, tokens):
    return (tokens[:, None] == jnp.arange(8)[::-1]).astype(jnp.float32) @ table


@NEAR.case(X, i32(8), refuses=finds("take_along_axis"))
def take_along_axis_from_the_last_row(x, labels):
    return x[7 - jnp.arange(8), labels]


@NEAR.case(X, i32(8), i32(8), refuses=finds("take_along_axis"))
def take_along_axis_of_given_rows(x, rows, labels):
    return x[rows, labels]


@NEAR.case(i32(4), refuses=finds("one_hot"))
def one_hot_of_even_places(labels):
    return (labels[:, None] == 2 * jnp.arange(10)).astype(jnp.float32)


@NEAR.case(i32(4), refuses=finds("one_hot"))
def one_hot_of_two(labels):
    return jnp.where(labels[:, None] == jnp.arange(10), 2.0, 0.0)


NEAR.add("top_k_with_the_last_of_equals", lambda x: jnp.argsort(x, axis=-1)[:, ::-1][:, :3], X, refuses=finds("top_k"))


NEAR.add(
    "top_k_by_another", lambda x, y: lax.sort((x, y), dimension=1, num_keys=1)[1][:, :3], X, X, refuses=finds("top_k")
)


@NEAR.case(X, refuses=(finds("top_k", axis=0), finds("top_k", k=8)))
def top_k_of_sorted_columns(x):
    return jnp.sort(x, axis=0)[:, :3]


def _larger(one, other):
    (a, i), (b, j) = one, other
    takes = a >= b
    return jnp.where(takes, a, b), jnp.where(takes, i, j)


def _last(one, other):
    (a, i), (b, j) = one, other
    takes = (a > b) | ((a == b) & (i > j))
    return jnp.where(takes, a, b), jnp.where(takes, i, j)


@NEAR.case(X, refuses=finds("argmax"))
def argmax_by_the_last_of_equals(x):
    return lax.reduce((x, lax.broadcasted_iota(jnp.int32, (8, 8), 1)), (-jnp.inf, 0), _last, (1,))[1]


@NEAR.case(X, refuses=finds("argmax"))
def argmax_of_any_of_equals(x):
    """Which of equal ones is kept depends on the order in which they are combined."""
    return lax.reduce((x, lax.broadcasted_iota(jnp.int32, (8, 8), 1)), (-jnp.inf, 0), _larger, (1,))[1]


@NEAR.case(X, f32(8, 4), refuses=finds("cumsum"))
def cumsum_of_another_half(x, sums):
    """A scan's last step, in which every second element is of another value."""
    firsts = jnp.concatenate([x[:, :1], sums[:, :3] + x[:, 2::2]], axis=1)
    inner = ((0, 0, 0), (0, 1, 1)), ((0, 0, 0), (1, 0, 1))
    return lax.pad(firsts, 0.0, inner[0]) + lax.pad(sums, 0.0, inner[1])


@NEAR.case(X, refuses=(finds("cumsum"), finds("cumprod")))
def cumprod_of_two_steps(x):
    return lax.reduce_window(x, 1.0, lax.mul, (1, 8), (1, 1), ((0, 0), (6, 1)))


NEAR.add("linear_plus_a_residual", lambda x, w, y: x @ w + y, f32(8, 4), f32(4, 6), f32(8, 6), refuses=finds("linear"))


@NEAR.case(f32(3, 8, 4), f32(3, 4, 6), f32(6), refuses=finds("linear"))
def linear_of_experts(x, w, b):
    return jnp.einsum("etd,edf->etf", x, w) + b
