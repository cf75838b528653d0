"""Random programs with random loops in them compute the same, bit for bit; wrong rules and wrong loops are seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import random_graphs as ops
from jax.lax import GatherScatterMode, ScatterDimensionNumbers
from random_graphs import cast, computed, mismatch, program, tiled
from wrong_loops import MACHINERY, RULES, SEEN, changed

from hlo_lower.ir.mlir import ScatterNumbers
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.verify.judges.definitions import scatter as scatter_in_numpy
from hlo_lower.verify.run import Executable

DEFAULT = default_subset_rules()


def blocks(few, count, size):
    """A few seeds, and for the sweep blocks of many."""
    return [few, *(pytest.param(range(size * k, size * (k + 1)), marks=pytest.mark.sweep) for k in range(count))]


@pytest.mark.parametrize("seeds", blocks((0, 8, 11, 24), 50, 100), ids=str)
def test_random_loops_change_nothing(seeds):
    """Two random plans, one after the other, in programs of random ops: no result differs."""
    assert [seed for seed in seeds if mismatch(seed, DEFAULT)] == []


LONG = ("repeated_tail", "forgotten_sum")


@pytest.mark.parametrize(
    "wrong",
    [pytest.param(w, marks=pytest.mark.sweep) if w.__name__ in LONG else w for w in MACHINERY],
    ids=lambda wrong: wrong.__name__,
)
def test_a_wrong_loop_is_seen(wrong, monkeypatch):
    """Each way to get the loop wrong gives other results in a program that is right without it."""
    seed = SEEN[wrong.__name__]
    assert mismatch(seed, DEFAULT) == ""
    wrong(monkeypatch)
    assert mismatch(seed, DEFAULT) != ""


@pytest.mark.few(2)
@pytest.mark.parametrize("what", RULES)
def test_a_wrong_rule_is_seen(what):
    """Each wrong subset rule gives other results in a program that is right without it."""
    assert mismatch(SEEN[what], DEFAULT) == ""
    assert mismatch(SEEN[what], changed(*RULES[what])) != ""


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


def index_vectors(d, extents, shape):
    """Positions that the data says, of some integer type: within, at the edges and beyond, negative, too."""
    data = d.one(1).reshape(-1)
    columns = []
    for extent in extents:
        taken = data[(np.arange(int(np.prod(shape))) * int(d.rng.integers(1, 5)) + int(d.rng.integers(9))) % data.size]
        low, high = cast(d, ((0, extent), (-2, extent + 2), (-extent, 2 * extent), (extent - 1, extent + 1)))
        columns.append(taken % max(1, high - low) + low)
    element = cast(d, (jnp.int32, jnp.int32, jnp.int32, jnp.int8, jnp.uint8, jnp.uint32))
    return jnp.stack(columns, -1).reshape(*shape, len(extents)).astype(element)


def scattered(d, a):
    """A scatter: points, rows, columns, windows, of one position or several, batched now and then, by any combiner."""
    dims = [int(k) for k in d.rng.permutation(a.ndim)]
    counted = dims[: int(d.rng.integers(1, a.ndim + 1))]
    rest = sorted(set(dims) - set(counted))
    batched = rest[:1] if rest and d.rng.random() < 0.3 else []
    sizes = [n if d.rng.random() < 0.7 else int(d.rng.integers(1, n + 1)) for n in a.shape]
    sizes = [1 if k in batched or (k in counted and d.rng.random() < 0.7) else n for k, n in enumerate(sizes)]
    inserted = sorted(k for k in counted if sizes[k] == 1 and d.rng.random() < 0.8)
    kept = [sizes[k] for k in range(a.ndim) if k not in (*inserted, *batched)]
    shape = (*(a.shape[k] for k in batched), *cast(d, PLACES))
    indices = index_vectors(d, [a.shape[k] for k in counted], shape)
    base = d.one(1).reshape(-1)
    count = int(np.prod((*shape, *kept)))
    updates = (base[np.arange(count) % base.size] + np.arange(count, dtype=np.int32) * 3 - 7).reshape(*shape, *kept)
    windows = tuple(range(len(shape), len(shape) + len(kept)))
    how, mode = cast(d, list(COMBINED)), cast(d, MODES)
    dims = windows, tuple(inserted), tuple(batched), tuple(range(len(batched))), tuple(counted)
    if isinstance(a, jax.core.Tracer):
        windows, inserted, batched, places, counted = dims
        numbers = ScatterDimensionNumbers(windows, inserted, counted, batched, places)
        return COMBINED[how][0](a, indices, updates, numbers, mode=mode)
    return jnp.asarray(in_numpy(a, indices, updates, how, mode, dims, [a.shape[k] - sizes[k] for k in counted]))


def in_numpy(a, indices, updates, how, mode, dims, last):
    """The same straight from the specification, windows out of bounds dropped whole."""
    indices = np.asarray(indices).astype(np.int64)
    if mode is GatherScatterMode.CLIP:
        indices = np.clip(indices, 0, last)
    with np.errstate(over="ignore"):
        [found] = scatter_in_numpy(
            *([np.asarray(a)], indices, [np.asarray(updates)], ScatterNumbers(*dims, indices.ndim - 1)),
            *(lambda old, new: [COMBINED[how][1](old[0], new[0])], [np.dtype(np.int32)]),
            oob="xla",
        )
    return found


def one_picked(d, a):
    """A gather of one window at a place that the data says, which the op itself clamps."""
    k = d.axis(a)
    sizes = tuple(1 if dim == k else n for dim, n in enumerate(a.shape))
    numbers = jax.lax.GatherDimensionNumbers(tuple(range(a.ndim)), (), (k,))
    return jax.lax.gather(a, d.one(1).reshape(-1)[:1] * 2 - 1, numbers, sizes, mode=MODES[2])


SCATTERING = (
    *(ops.binary, ops.mask, ops.broadcast, ops.reshape, ops.transpose, ops.window, ops.dot),
    *(ops.reduce, ops.reduce, ops.gather, ops.dynamic, one_picked),
    *(scattered,) * 8,
)
"""Ops in front of, within and behind loops, many of them scatters."""


def mismatches(seed, draws=1, *, is_numpy=False):
    """For each drawing of loops in a random program of which one has a scatter in it: what differs, "" for nothing.

    What is right is what the module without loops gives where XLA leaves its algebra alone; or, asked for, what the
    program gives operation by operation, its scatters computed in NumPy. Where XLA computes something else of the
    module as it was given, that may come out of the loops, too.
    """
    text = program(seed, 10, SCATTERING, keep_unused=True)
    drawn = [one for k in range(draws) if (one := with_loops(text, 1000 * seed + 2 * k))[1]]
    if not drawn:
        return []
    right, rng = Executable(text, "unfused"), np.random.default_rng([seed, 2])
    given = [[rng.integers(-3, most, a.shape).astype(np.int32) for a in right.arguments] for most in (9, 3, 40)]
    wanted = [right.run(arguments) for arguments in given]
    if is_numpy:
        wanted = [[np.asarray(a) for a in computed(seed, [*map(jnp.asarray, g)], 10, SCATTERING)] for g in given]
    found = []
    for after, told in drawn:
        run = Executable(after, "quick").run
        differing = [(w, g) for w, g in zip(wanted, given, strict=True) if not equal(w, run(g))]
        plain = Executable(text, "quick").run if differing else run
        is_own = all(not equal(w, plain(g)) and equal(plain(g), run(g)) for w, g in differing)
        found.append("" if is_own else told)
    return found


def with_loops(text, seed):
    """The module with two random plans, one after the other, and what was drawn; "" where no scatter is in a loop."""
    told = []
    for number in range(2):
        text, how = tiled(text, seed + number, DEFAULT)
        told.append(how)
    is_one = any(how != "no loop" and not how.startswith("0 scatters") for how in told)
    return text, "; ".join(told) if is_one else ""


def equal(one, other):
    """Whether arrays are equal bit for bit."""
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


@pytest.mark.parametrize("seeds", blocks((43,), 40, 10), ids=str)
def test_random_loops_around_scatters_change_nothing(seeds):
    """Scatters of points, rows and windows, in bounds, at edges and beyond, are in tiles what they are as a whole; one
    program of ten operation by operation, with NumPy's scatters."""
    draws = 8 if len(seeds) > 1 else 3
    drawn = {seed: mismatches(seed, draws, is_numpy=seed % 10 == 0) for seed in seeds}
    assert {seed: told for seed, told in drawn.items() if any(told)} == {}
    assert any(drawn.values())
