"""Random programs with random loops in them compute the same, bit for bit; wrong rules and wrong loops are seen."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import random_graphs as ops
from jax.lax import GatherScatterMode, ScatterDimensionNumbers
from random_graphs import agree, cast, mismatch, program, tiled_by_hand, with_loops
from wrong_loops import MACHINERY, RULES, SEEN, changed

from hlo_lower.ops.axes.op_axes import default_subset_rules

DEFAULT = default_subset_rules()


def blocks(few, count, size):
    """A few seeds, and for the sweep blocks of many."""
    return [few, *(pytest.param(range(size * k, size * (k + 1)), marks=pytest.mark.sweep) for k in range(count))]


@pytest.mark.parametrize("seeds", blocks((0, 8, 11, 24, 4487), 50, 100), ids=str)
def test_random_loops_change_nothing(seeds):
    """Two random plans, one after the other, in programs of random ops: no result differs."""
    assert [seed for seed in seeds if mismatch(seed, DEFAULT)] == []


@pytest.mark.parametrize("seeds", blocks((1, 5, 6), 20, 100), ids=str)
def test_loops_by_hand_change_nothing(seeds):
    """A random op along one to three of its dims, of which some are summed, one loop in the other, with and without
    what is around it: no result differs, and most programs have such loops."""
    found = {seed: (text := program(seed), *tiled_by_hand(text, seed, DEFAULT)) for seed in seeds}
    assert [(seed, how) for seed, (text, after, how) in found.items() if not agree(text, after, seed)] == []
    assert 2 * sum(text != after for text, after, _ in found.values()) > len(found)


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


COMBINED = tuple(getattr(jax.lax, f"scatter{how}") for how in ("", "_add", "_mul", "_min", "_max"))
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
    put, mode = cast(d, COMBINED), cast(d, MODES)
    places = tuple(range(len(batched)))
    numbers = ScatterDimensionNumbers(windows, tuple(inserted), tuple(counted), tuple(batched), places)
    return put(a, indices, updates, numbers, mode=mode)


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


@pytest.mark.parametrize("seeds", blocks((43,), 40, 10), ids=str)
def test_random_loops_around_scatters_change_nothing(seeds):
    """Scatters of points, rows and windows, in bounds, at edges and beyond, are in tiles what they are as a whole."""
    draws, wrong, count = 8 if len(seeds) > 1 else 3, [], 0
    for seed in seeds:
        text = program(seed, 10, SCATTERING, keep_unused=True)
        for k in range(draws):
            after, told = with_loops(text, 1000 * seed + 2 * k, DEFAULT)
            if re.search("[1-9][0-9]* scatters", told):
                count += 1
                wrong += [(seed, told)] * (not agree(text, after, seed))
    assert wrong == []
    assert count
