"""Small programs of many kinds to mutate, as JAX writes them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hlo_lower.ir import mlir

Program = tuple[Callable[..., Any], tuple[tuple[tuple[int, ...], str], ...]]


def _rope_table(x: Any, position: Any) -> Any:
    half = x.shape[-1] // 2
    table = jnp.arange(64)[:, None] * (10000.0 ** (-jnp.arange(half) / half))[None]
    cos, sin = jnp.cos(table)[position], jnp.sin(table)[position]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def _int8_matmul(a: Any, b: Any, scale: Any) -> Any:
    total = lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return jnp.clip(jnp.round(total.astype(jnp.float32) * scale), -127, 127).astype(jnp.int8)


def _top_p(x: Any, p: Any) -> Any:
    values, order = lax.top_k(jax.nn.softmax(x), x.shape[-1])
    kept = jnp.cumsum(values, -1) - values < p
    return jnp.where(kept, values, 0.0), order


def _while_collatz(n: Any) -> Any:
    def step(carry: Any) -> Any:
        x, count = carry
        return jnp.where(x % 2 == 0, x // 2, 3 * x + 1), count + 1

    return lax.while_loop(lambda c: (c[0] > 1) & (c[1] < 20), step, (n, jnp.int32(0)))


def _twice(x: Any) -> Any:
    return _private(_private(x) + 1.0)


@jax.jit
def _private(x: Any) -> Any:
    return jnp.where(x > 0.5, x * 2.0, x - 1.0)


@jax.jit
def _other_private(x: Any) -> Any:
    return jnp.where(x >= 0.5, x * 2.0, x - 1.0)


def _hash(x: Any) -> Any:
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def _layer_norm(x: Any, g: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * g + b


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / 2.0
    mask = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])[None]
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(jnp.where(mask, scores, -1e30)), v)


def _quantile_bins(x: Any) -> Any:
    edges = jnp.array([-1.5, -0.5, 0.0, 0.25, 1.0, 2.5])
    return jnp.digitize(x, edges)


def _cond(p: Any, x: Any) -> Any:
    return lax.cond(p > 3, lambda a: a + 1.0, lambda a: a * 2.0, x)


def _switch(i: Any, x: Any) -> Any:
    return lax.switch(i, [lambda a: a + 1.0, lambda a: a * 2.0, lambda a: a - 3.0], x)


def _scan_sum(x: Any) -> Any:
    return lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros(x.shape[1:]), x)


def _nan_guard(x: Any) -> Any:
    return jnp.where(jnp.isnan(x), 0.0, jnp.where(jnp.isinf(x), jnp.sign(x) * 9.0, x))


def _floor_divide(a: Any, b: Any) -> Any:
    return a // b, a % b, jnp.abs(a) + jnp.minimum(a, b)


def _conv(x: Any, k: Any) -> Any:
    return lax.conv_general_dilated(x, k, (1, 2), ((1, 0), (1, 1)), rhs_dilation=(1, 1))


def _max_pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 2, 1), ((0, 0), (1, 0), (0, 0), (0, 0)))


def _cache_write(cache: Any, new: Any, position: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (position, jnp.int32(0)))


def _two_keys(a: Any, b: Any, c: Any) -> Any:
    return lax.sort((a, b, c), num_keys=2, is_stable=True)


def _unstable(a: Any, b: Any) -> Any:
    return lax.sort((a, b), num_keys=1, is_stable=False)


def _precise(a: Any, b: Any) -> Any:
    return jnp.dot(a, b, precision="highest")


def _kv_roll(x: Any, shift: Any) -> Any:
    return jnp.roll(x, shift, axis=0), jnp.flip(x, 1), x.T.reshape(x.shape)


def _segments(x: Any, ids: Any) -> Any:
    return jax.ops.segment_max(x, ids, 5), jnp.bincount(ids, length=6)


def _random(key: Any) -> Any:
    return jax.random.bits(jax.random.wrap_key_data(key), (4,)), jax.random.uniform(jax.random.wrap_key_data(key), (3,))


def _argmax(x: Any) -> Any:
    return jnp.argmax(x, -1), jnp.argmin(x, 0), jnp.max(x, 1), jnp.prod(x, 0)


def _scatter_windows(x: Any, starts: Any, new: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    return lax.scatter_add(x, starts, new, numbers)


def _promised(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u), x.at[i].set(u, mode="drop"), x.at[i].max(u)


def _bits(x: Any) -> Any:
    bits = lax.bitcast_convert_type(x, jnp.int32)
    return lax.bitcast_convert_type(jnp.where(bits < 0, bits ^ 0x7FFFFFFF, bits), jnp.float32), bits >> 3


def _poly(x: Any) -> Any:
    return ((x * 3 + 5) * x - 7) & 255, (x << 2) | (x >> 5), lax.population_count(x)


def _triangle(x: Any) -> Any:
    return jnp.tril(x), jnp.triu(x, 1), jnp.where(jnp.eye(x.shape[0], dtype=bool), 0.0, x)


def _clip_index(x: Any, i: Any) -> Any:
    return x[jnp.clip(i, 1, 6)], jnp.take(x, i, mode="clip"), x[i]


F, N = "float32", "int32"
PROGRAMS: dict[str, Program] = {
    "rope_table": (_rope_table, (((3, 8), F), ((3,), N))),
    "int8_matmul": (_int8_matmul, (((3, 16), "int8"), ((16, 3), "int8"), ((), F))),
    "top_p": (_top_p, (((2, 6), F), ((), F))),
    "while_collatz": (_while_collatz, (((), N),)),
    "called_twice": (lambda x: (_twice(x), _other_private(x)), (((5,), F),)),
    "hash": (_hash, (((4,), "uint32"),)),
    "layer_norm": (_layer_norm, (((4, 4), F), ((4,), F), ((4,), F))),
    "attention": (_attention, (((2, 4, 4), F), ((2, 4, 4), F), ((2, 4, 4), F))),
    "digitize": (_quantile_bins, (((6,), F),)),
    "cond": (_cond, (((), N), ((3,), F))),
    "switch": (_switch, (((), N), ((3,), F))),
    "scan": (_scan_sum, (((5, 2), F),)),
    "nan_guard": (_nan_guard, (((6,), F),)),
    "floor_divide": (_floor_divide, (((5,), N), ((5,), N))),
    "floor_divide_i8": (_floor_divide, (((5,), "int8"), ((5,), "int8"))),
    "conv": (_conv, (((1, 2, 4, 5), F), ((2, 2, 2, 2), F))),
    "max_pool": (_max_pool, (((1, 4, 4, 2), F),)),
    "cache_write": (_cache_write, (((8, 4), F), ((2, 4), F), ((), N))),
    "two_keys": (_two_keys, (((24,), N), ((24,), F), ((24,), N))),
    "unstable_sort": (_unstable, (((24,), N), ((24,), F))),
    "precise": (_precise, (((4, 4), F), ((4, 4), F))),
    "roll": (_kv_roll, (((4, 4), F), ((), N))),
    "segments": (_segments, (((7,), F), ((7,), N))),
    "random": (_random, (((2,), "uint32"),)),
    "argmax": (_argmax, (((3, 3), F),)),
    "scatter_windows": (_scatter_windows, (((5, 5), F), ((3, 2), N), ((3, 2, 2), F))),
    "promised": (_promised, (((6,), F), ((4,), N), ((4,), F))),
    "float_bits": (_bits, (((5,), F),)),
    "poly_u8": (_poly, (((6,), "uint8"),)),
    "poly_i64": (_poly, (((6,), "int64"),)),
    "triangle": (_triangle, (((4, 4), F),)),
    "clip_index": (_clip_index, (((8,), F), ((4,), N))),
    "cumulative": (lambda x: (jnp.cumsum(x), jnp.cumprod(x), lax.cummax(x)), (((8,), N),)),
    "softmax_bf16": (lambda x: jax.nn.softmax(x, -1), (((3, 5), "bfloat16"),)),
    "norm_f16": (lambda x: x * lax.rsqrt((x * x).mean(-1, keepdims=True) + jnp.float16(1e-3)), (((3, 4), "float16"),)),
    "complex": (lambda a, b: (a * b - jnp.conj(a), jnp.real(a / b), jnp.abs(b)), (((4,), "complex64"),) * 2),
    "doubles": (lambda x: (x.astype(jnp.float32).astype(jnp.float64) - x, jnp.floor(x * 0.1)), (((5,), "float64"),)),
    "rounding": (lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)), (((6,), F),)),
    "gelu": (lambda x: jax.nn.gelu(x), (((6,), F),)),
    "relu6": (lambda x: jnp.minimum(jnp.maximum(x, 0.0), 6.0), (((6,), F),)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, -1), (((3, 5), F),)),
    "outer_rows": (lambda x, i: x[i[:, None], i[None]] - x.T[i[:, None], i[None]], (((5, 5), F), ((3,), N))),
    "topk_int": (lambda x: lax.top_k(x, 3), (((2, 7), N),)),
    "searchsorted": (lambda a, v: jnp.searchsorted(a, v), (((9,), F), ((4,), F))),
    "one_hot": (lambda i, w: jax.nn.one_hot(i, 6) @ w, (((4,), N), ((6, 6), F))),
    "shifts": (lambda a, b: (a << b, a >> b, lax.shift_right_logical(a, b)), (((6,), N), ((6,), N))),
    "u32_index": (lambda x, i: x[i], (((8,), F), ((3,), "uint32"))),
    "i8_index": (lambda x, i: x.at[i].set(1.0), (((8,), F), ((3,), "int8"))),
    "narrowing": (lambda x: (x.astype(jnp.int8), x.astype(jnp.int16).astype(F), (x & 1) == 0), (((6,), N),)),
    "logic": (lambda a, b, c: (a & b | ~c, (a ^ b) & c, jnp.any(a), jnp.all(b)), (((5,), "bool"),) * 3),
    "fori": (lambda n, x: lax.fori_loop(2, jnp.minimum(n, 9), lambda i, a: a * 0.5 + i, x), (((), N), ((3,), F))),
    "pads": (lambda x: (jnp.pad(x, ((1, 2), (0, 1))), x[1:, ::2], jnp.concatenate([x, x * 2.0])), (((4, 4), F),)),
}
"""By name: a function, and the shapes and types of its arguments."""


def program_text(name: str) -> str:
    """The module of a program, without locations."""
    function, arguments = PROGRAMS[name]
    with jax.enable_x64(any(dtype.endswith("64") and dtype != "complex64" for _, dtype in arguments)):
        structs = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in arguments]
        text = str(jax.jit(function).lower(*structs).as_text())
    return mlir.print_module(mlir.parse_module(text))
