"""Random programs of complex numbers, and a target that has no room for these."""

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax import lax
from rewrites import main
from rule_examples import target

NONE = {"complex<f32>": "none", "complex<f64>": "none"}
NO_COMPLEX = target("real_only", refused_dtypes=NONE)
NO_FFT = target("real_only", "fft", refused_dtypes=NONE)

SPECIAL = np.array([0.0, -0.0, 1, -2.25, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1e-20, 0.99999994, 88.7, -7.1], "f4")


def of_parts(real, imag, dtype="complex64"):
    """Complex numbers of two arrays."""
    found = np.empty(np.shape(real), dtype)
    found.real, found.imag = real, imag
    return found


def special(count=2000, seed=0, dtype="complex64"):
    """Every pair of special parts, then numbers of any magnitude."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, count)) * 10.0 ** rng.uniform(-12, 12, (2, count))
    pairs = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    return of_parts(*(np.concatenate(own) for own in zip(pairs, parts, strict=True)), dtype)


def arguments(rng):
    """Two tensors of random numbers, some of them real or zero, and indices."""
    found = [of_parts(*rng.standard_normal((2, 4, 4)).astype(np.float32)) for _ in range(2)]
    for numbers in found:
        numbers.reshape(-1)[::5] = of_parts(*rng.choice(SPECIAL[:4], (2, 4)))
    return *found, rng.integers(0, 4, 4).astype(np.int32)


def looped(x, y, count):
    """A loop whose number of trips is not known."""
    step = lambda state: (state[0] + 1, state[1] * y - state[1][::-1])  # noqa: E731
    return lax.while_loop(lambda state: state[0] < count, step, (jnp.int32(0), x))[1]


@jax.jit
def called(x, y):
    """A function of its own."""
    return jnp.conj(x) * (2 - 1j) + y


OPS = {
    "add": lambda x, y, i: x + y,
    "subtract": lambda x, y, i: x - y,
    "multiply": lambda x, y, i: x * y,
    "divide": lambda x, y, i: x / y,
    "negate": lambda x, y, i: -x,
    "conj": lambda x, y, i: jnp.conj(x) + 1j,
    "sizes": lambda x, y, i: lax.complex(jnp.abs(x), jnp.imag(y)),
    "sign": lambda x, y, i: jnp.sign(x),
    "exponential": lambda x, y, i: jnp.exp(x * 0.1),
    "log": lambda x, y, i: jnp.log(x),
    "log1p": lambda x, y, i: jnp.log1p(x),
    "sqrt": lambda x, y, i: jnp.sqrt(x),
    "tanh": lambda x, y, i: jnp.tanh(x),
    "select": lambda x, y, i: jnp.where(x == y, y, jnp.where(x != 0, x, 3j)),
    "predicate": lambda x, y, i: lax.select(i[0] > 1, x, y),
    "transpose": lambda x, y, i: x.T,
    "reshape": lambda x, y, i: x.reshape(2, 8).reshape(4, 4)[:, ::-1],
    "slice": lambda x, y, i: jnp.concatenate([x[1:3], y[::2]], 0),
    "pad": lambda x, y, i: jnp.pad(x[1:, :3], ((1, 0), (0, 1)), constant_values=1 - 2j),
    "gather": lambda x, y, i: x[i],
    "columns": lambda x, y, i: jnp.take_along_axis(x, jnp.tile(i, (4, 1)), 1),
    "dynamic_slice": lambda x, y, i: jnp.tile(lax.dynamic_slice(x, (i[0], i[1]), (2, 2)), (2, 2)),
    "update": lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :2], (i[2], i[3])),
    "scatter": lambda x, y, i: x.at[i].set(y),
    "scatter_add": lambda x, y, i: x.at[:, i[0]].add(y[0]),
    "sum": lambda x, y, i: x.sum(0) + y,
    "product": lambda x, y, i: lax.reduce(x, np.complex64(1), lax.mul, (1,)) + y,
    "cumsum": lambda x, y, i: lax.cumsum(x, 1),
    "iota": lambda x, y, i: x + lax.broadcasted_iota(jnp.complex64, (4, 4), 1),
    "constant": lambda x, y, i: x * np.array([1 + 2j, -0.5, 3j, np.inf], np.complex64),
    "real": lambda x, y, i: jnp.real(x).astype(jnp.complex64) + y,
    "narrow": lambda x, y, i: jnp.imag(y).astype(jnp.int32).astype(jnp.complex64) * x,
    "loop": lambda x, y, i: looped(x, y, i[1]),
    "branch": lambda x, y, i: lax.cond(i[0] > 1, lambda: x * y, lambda: x - y),
    "call": lambda x, y, i: called(x, y),
    "sort": lambda x, y, i: lax.sort((jnp.real(x), x), dimension=1, num_keys=1)[1],
    "barrier": lambda x, y, i: sum(lax.optimization_barrier((x, y))),
}


def program(rng, length=6):
    """A function of two 4x4 tensors of complex numbers and of four indices, and the names of its ops."""
    names = [str(name) for name in rng.choice(list(OPS), length)]
    picks = rng.integers(0, 99, (length, 2))

    def function(x, y, i):
        values = [x, y]
        for name, (a, b) in zip(names, picks, strict=True):
            values.append(OPS[name](values[-1 - a % min(3, len(values))], values[b % len(values)], i))
        return values[-1], values[-2]

    return function, names


def exported(function, *given):
    """A function as a module."""
    shapes = (jax.ShapeDtypeStruct(v.shape, v.dtype) for v in given)
    return jax.export.export(jax.jit(function, keep_unused=True))(*shapes)


def one_op(name, count, operands=1, element="f32"):
    """A module of one elementwise op of complex numbers."""
    given = f"tensor<{count}xcomplex<{element}>>"
    gives = f"tensor<{count}x{element}>" if name in ("abs", "real", "imag") else given
    names = [f"%x{k}" for k in range(operands)]
    types = ", ".join([given] * operands)
    body = f'%r = "stablehlo.{name}"({", ".join(names)}) : ({types}) -> {gives}'
    return main(", ".join(f"{x}: {given}" for x in names), body, f"%r : {gives}")


def parts(array):
    """The parts of complex numbers, as bits of floats, NaN all alike."""
    found = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    if found.dtype.kind != "f":
        return found
    return np.where(np.isnan(found), np.nan, found).view(f"u{found.itemsize}")
