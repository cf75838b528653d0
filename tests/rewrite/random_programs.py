"""Random programs: ops of two square tensors of one element type and of four indices, drawn one after another.

Each op is a function of x, y, the indices, and a number k that chooses among its variants.
"""

import jax
import jax.export
import jax.numpy as jnp
from jax import lax


def looped(x, y, count):
    """A loop whose number of trips is not known."""
    step = lambda state: (state[0] + 1, state[1] * y - state[1][::-1])  # noqa: E731
    return lax.while_loop(lambda state: state[0] < count, step, (count * 0, x))[1]


@jax.jit
def called(x, y):
    """A function of its own."""
    return x * 2 + y


def padded(x):
    """Edges, and elements between."""
    return lax.pad(x, lax.full_like(x, 3, shape=()), [(1, 1, 1), (0, 2, 0)])[: len(x), : len(x)]


MOVES = {
    "transpose": lambda x, y, i, k: x.T,
    "reshape": lambda x, y, i, k: x.reshape(1, -1).reshape(x.shape)[:, ::-1],
    "slice": lambda x, y, i, k: jnp.concatenate([x[1:], y[::2][:1]], 0),
    "pad": lambda x, y, i, k: padded(x),
    "gather": lambda x, y, i, k: x[i[: len(x)]],
    "columns": lambda x, y, i, k: jnp.take_along_axis(x, jnp.tile(i[: len(x)], (len(x), 1)), 1),
    "dynamic_slice": lambda x, y, i, k: lax.concatenate(
        [lax.dynamic_slice(x, (i[0], i[1]), (len(x) // 2, len(x))), y[len(x) // 2 :]], 0
    ),
    "update": lambda x, y, i, k: lax.dynamic_update_slice(x, y[: len(x) // 2, :1], (i[2], i[3])),
    "scatter": lambda x, y, i, k: x.at[i[: len(x)]].set(y),
    "scatter_add": lambda x, y, i, k: x.at[:, i[0]].add(y.sum(0)),
    "sum": lambda x, y, i, k: x.sum(0) + y,
    "product": lambda x, y, i, k: lax.reduce(x, x.dtype.type(1), lax.mul, (1,)) + y,
    "cumsum": lambda x, y, i, k: lax.cumsum(x, 1),
    "iota": lambda x, y, i, k: x + lax.broadcasted_iota(x.dtype, x.shape, 1),
    "loop": lambda x, y, i, k: looped(x, y, i[1] & 3),
    "branch": lambda x, y, i, k: lax.cond(i[0] > 1, lambda: x * y, lambda: x - y),
    "predicate": lambda x, y, i, k: lax.select(i[0] > 1, x, y),
    "call": lambda x, y, i, k: called(x, y),
    "barrier": lambda x, y, i, k: sum(lax.optimization_barrier((x, y))),
}
"""Ops on any element type."""


def program(rng, ops, length=6):
    """A function of two square tensors and of four indices, and the names of its ops."""
    names = [str(name) for name in rng.choice(list(ops), length)]
    picks = rng.integers(0, 99, (length, 3)).tolist()

    def function(x, y, i):
        values = [x, y]
        for name, (a, b, k) in zip(names, picks, strict=True):
            values.append(ops[name](values[-1 - a % min(3, len(values))], values[b % len(values)], i, k))
        return tuple(values[2:])

    return function, names


def exported(function, *given):
    """A function as a module."""
    with jax.enable_x64(True):
        shapes = (jax.ShapeDtypeStruct(v.shape, v.dtype) for v in given)
        return jax.export.export(jax.jit(function, keep_unused=True))(*shapes)
