"""Random programs of int32 arrays with scatters of every form in front of, within and behind what loops are made of."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import GatherScatterMode, ScatterDimensionNumbers
from random_graphs import (
    Drawn,
    binary,
    broadcast,
    computed,
    dot,
    dynamic,
    gather,
    mask,
    program,
    reduce,
    reshape,
    tiled,
    transpose,
    window,
)

from hlo_lower.ir.mlir import ScatterNumbers
from hlo_lower.ops.axes.rules import SubsetRules
from hlo_lower.verify.judges.reference.scatter import scatter as scatter_in_numpy
from hlo_lower.verify.run import Executable

COMBINED = {
    "set": (jax.lax.scatter, lambda old, new: new),
    "add": (jax.lax.scatter_add, np.add),
    "mul": (jax.lax.scatter_mul, np.multiply),
    "min": (jax.lax.scatter_min, np.minimum),
    "max": (jax.lax.scatter_max, np.maximum),
}
MODES = (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS)
PLACES = ((), (), (1,), (1, 1), (3,), (5,), (2, 2))
"""Shapes of the positions, most of them one."""


def index_vectors(d: Drawn, extents: list[int], shape: tuple[int, ...]) -> jax.Array:
    """Positions that the data says, of some integer type: within, at the edges and beyond, negative, too."""
    data = d.one(1).reshape(-1)
    columns: list[jax.Array] = []
    for extent in extents:
        taken = data[(np.arange(int(np.prod(shape))) * int(d.rng.integers(1, 5)) + int(d.rng.integers(9))) % data.size]
        low, high = ((0, extent), (-2, extent + 2), (-extent, 2 * extent), (extent - 1, extent + 1))[d.rng.integers(4)]
        columns.append(taken % max(1, high - low) + low)
    element = (jnp.int32, jnp.int32, jnp.int32, jnp.int8, jnp.uint8, jnp.uint32)[d.rng.integers(6)]
    return jnp.stack(columns, -1).reshape(*shape, len(extents)).astype(element)


def scattered(d: Drawn, a: jax.Array) -> jax.Array:
    """A scatter: points, rows, columns, windows, of one position or several, batched now and then, by any combiner."""
    dims = [int(k) for k in d.rng.permutation(a.ndim)]
    counted = dims[: int(d.rng.integers(1, a.ndim + 1))]
    rest = sorted(set(dims) - set(counted))
    batched = rest[:1] if rest and d.rng.random() < 0.3 else []
    sizes = [n if d.rng.random() < 0.7 else int(d.rng.integers(1, n + 1)) for n in a.shape]
    sizes = [1 if k in batched or (k in counted and d.rng.random() < 0.7) else n for k, n in enumerate(sizes)]
    inserted = sorted(k for k in counted if sizes[k] == 1 and d.rng.random() < 0.8)
    kept = [sizes[k] for k in range(a.ndim) if k not in (*inserted, *batched)]
    shape = (*(a.shape[k] for k in batched), *PLACES[d.rng.integers(len(PLACES))])
    indices = index_vectors(d, [a.shape[k] for k in counted], shape)
    base = d.one(1).reshape(-1)
    count = int(np.prod((*shape, *kept)))
    updates = (base[np.arange(count) % base.size] + np.arange(count, dtype=np.int32) * 3 - 7).reshape(*shape, *kept)
    windows = tuple(range(len(shape), len(shape) + len(kept)))
    how = list(COMBINED)[d.rng.integers(len(COMBINED))]
    mode = MODES[d.rng.integers(len(MODES))]
    if isinstance(a, jax.core.Tracer):
        places = tuple(range(len(batched)))
        numbers = ScatterDimensionNumbers(windows, tuple(inserted), tuple(counted), tuple(batched), places)
        return COMBINED[how][0](a, indices, updates, numbers, mode=mode)
    return jnp.asarray(in_numpy(a, indices, updates, how, mode, (windows, inserted, batched, counted), sizes))


def in_numpy(a, indices, updates, how, mode, dims, sizes) -> np.ndarray:
    """The same straight from the specification, windows out of bounds dropped whole."""
    windows, inserted, batched, counted = dims
    indices = np.asarray(indices).astype(np.int64)
    if mode is GatherScatterMode.CLIP:
        indices = np.clip(indices, 0, [a.shape[k] - sizes[k] for k in counted])
    places = tuple(range(len(batched)))
    numbers = ScatterNumbers(windows, tuple(inserted), tuple(batched), places, tuple(counted), indices.ndim - 1)
    with np.errstate(over="ignore"):
        [found] = scatter_in_numpy(
            [np.asarray(a)],
            indices,
            [np.asarray(updates)],
            numbers,
            lambda old, new: [COMBINED[how][1](old[0], new[0])],
            [np.dtype(np.int32)],
            oob="xla",
        )
    return found


def one_picked(d: Drawn, a: jax.Array) -> jax.Array:
    """A gather of one window at a place that the data says, which the op itself clamps."""
    k = d.axis(a)
    sizes = tuple(1 if dim == k else n for dim, n in enumerate(a.shape))
    numbers = jax.lax.GatherDimensionNumbers(tuple(range(a.ndim)), (), (k,))
    at = d.one(1).reshape(-1)[:1] * 2 - 1
    return jax.lax.gather(a, at, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)


OPS = (
    *(binary, mask, broadcast, reshape, transpose, window, dot, reduce, reduce, gather, dynamic, one_picked),
    *(scattered,) * 8,
)


def mismatches(seed: int, rules: SubsetRules, draws: int = 1, *, is_numpy: bool = False) -> list[str]:
    """For each drawing of loops in a random program of which one has a scatter in it: what differs, "" for nothing.

    What is right is what the module without loops gives where XLA leaves its algebra alone; or, asked for, what the
    program gives operation by operation, its scatters computed in NumPy. Where XLA computes something else of the
    module as it was given, that may come out of the loops, too.
    """
    text = program(seed, 10, OPS, keep_unused=True)
    drawn = [one for k in range(draws) if (one := with_loops(text, 1000 * seed + 2 * k, rules))[1]]
    if not drawn:
        return []
    right, rng = Executable(text, "unfused"), np.random.default_rng([seed, 2])
    given = [[rng.integers(-3, most, a.shape).astype(np.int32) for a in right.arguments] for most in (9, 3, 40)]
    wanted = [right.run(arguments) for arguments in given]
    if is_numpy:
        wanted = [[np.asarray(a) for a in computed(seed, [*map(jnp.asarray, g)], 10, OPS)] for g in given]
    found: list[str] = []
    for after, told in drawn:
        run = Executable(after, "quick").run
        differing = [(w, g) for w, g in zip(wanted, given, strict=True) if not equal(w, run(g))]
        plain = Executable(text, "quick").run if differing else run
        is_own = all(not equal(w, plain(g)) and equal(plain(g), run(g)) for w, g in differing)
        found.append("" if is_own else told)
    return found


def with_loops(text: str, seed: int, rules: SubsetRules) -> tuple[str, str]:
    """The module with two random plans, one after the other, and what was drawn; "" where no scatter is in a loop."""
    told = list[str]()
    for number in range(2):
        text, how = tiled(text, seed + number, rules)
        told.append(how)
    is_one = any(how != "no loop" and not how.startswith("0 scatters") for how in told)
    return text, "; ".join(told) if is_one else ""


def equal(one, other) -> bool:
    """Whether arrays are equal bit for bit."""
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
