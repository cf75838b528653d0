"""Random programs of complex numbers, and a target that has no room for these."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from random_programs import MOVES
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


OPS = MOVES | {
    "add": lambda x, y, i, k: x + y,
    "subtract": lambda x, y, i, k: x - y,
    "multiply": lambda x, y, i, k: x * y,
    "divide": lambda x, y, i, k: x / y,
    "negate": lambda x, y, i, k: -x,
    "conj": lambda x, y, i, k: jnp.conj(x) + 1j,
    "sizes": lambda x, y, i, k: lax.complex(jnp.abs(x), jnp.imag(y)),
    "exponential": lambda x, y, i, k: jnp.exp(x * 0.1),
    **{op.__name__: lambda x, y, i, k, op=op: op(x) for op in (jnp.sign, jnp.log, jnp.log1p, jnp.sqrt, jnp.tanh)},
    "select": lambda x, y, i, k: jnp.where(x == y, y, jnp.where(x != 0, x, 3j)),
    "constant": lambda x, y, i, k: x * np.array([1 + 2j, -0.5, 3j, np.inf], np.complex64),
    "real": lambda x, y, i, k: jnp.real(x).astype(jnp.complex64) + y,
    "wide": lambda x, y, i, k: x.astype(jnp.complex128).astype(x.dtype) + y,
    "narrow": lambda x, y, i, k: jnp.imag(y).astype(jnp.int32).astype(jnp.complex64) * x,
    "sort": lambda x, y, i, k: lax.sort((jnp.real(x), x), dimension=1, num_keys=1)[1],
}


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
