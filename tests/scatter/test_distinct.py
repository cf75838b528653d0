"""Distinct places: for each source of proof programs of JAX, a hit and a near miss, judged by what they do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.distinct import find_distinct
from hlo_lower.facts.scatter.layout import lay_out
from hlo_lower.facts.values.region import classify_region
from hlo_lower.facts.values.site import Site

I32, N, B = jnp.int32, 8, 4


def found(function, *arguments):
    """What is known of the last scatter of a function: "P" permutation, "U" unique, "S" sorted."""
    graph = hl.read(jax.jit(function).lower(*arguments).as_text())
    return told(graph, graph.scatters[-1])


def told(graph, node):
    """What is known of a scatter, in letters; a permutation is unique, too."""
    analysis = IndexAnalysis(graph)
    scatter = canonicalize(node)
    interval, affine = analysis.of(Site(scatter.indices)), AffineAnalysis(analysis)
    layout = lay_out(scatter, affine, interval, assigns=not classify_region(scatter.region).reads_current)
    distinct = find_distinct(scatter, layout, affine, interval)
    assert distinct.is_unique or not distinct.is_permutation
    assert (distinct.why is not None) == distinct.is_unique
    letters = zip("PUS", (distinct.is_permutation, distinct.is_unique, distinct.is_sorted), strict=True)
    return "".join(letter for letter, holds in letters if holds)


def inverse(perm):
    """The inverse of a permutation, as it is built by scattering."""
    return jnp.zeros(N, I32).at[perm].set(jnp.arange(N))


PROGRAMS = [
    ("argsort", lambda k, i, m, s: jnp.argsort(k), "PU"),
    ("descending argsort", lambda k, i, m, s: jnp.argsort(k, descending=True), "PU"),
    ("reversed argsort", lambda k, i, m, s: jnp.argsort(k)[::-1], "PU"),
    ("rolled argsort", lambda k, i, m, s: jnp.roll(jnp.argsort(k), 3), "PU"),
    ("mirrored argsort", lambda k, i, m, s: N - 1 - jnp.argsort(k), "PU"),
    ("shifted argsort", lambda k, i, m, s: jnp.argsort(k) + 1, "U"),
    ("part of an argsort", lambda k, i, m, s: jnp.argsort(k)[:3], "U"),
    ("argsort as int8", lambda k, i, m, s: jnp.argsort(k).astype(jnp.int8), "PU"),
    ("behind a barrier", lambda k, i, m, s: jax.lax.optimization_barrier(jnp.argsort(k)), "PU"),
    ("inverse by argsort", lambda k, i, m, s: jnp.argsort(jnp.argsort(k)), "PU"),
    ("inverse by scatter", lambda k, i, m, s: inverse(jnp.argsort(k)), "PU"),
    ("inverse of no permutation", lambda k, i, m, s: inverse(jnp.argsort(k) // 2), ""),
    ("permutation of a permutation", lambda k, i, m, s: jnp.argsort(k)[jnp.argsort(i)], "PU"),
    ("permutation clamped", lambda k, i, m, s: jnp.argsort(k).at[2 * jnp.argsort(i)].get(mode="clip"), ""),
    ("part of a permutation", lambda k, i, m, s: jnp.argsort(k).at[jnp.argsort(i)[:3]].get(mode="clip"), "U"),
    ("top_k", lambda k, i, m, s: jax.lax.top_k(k, 3)[1], "U"),
    ("top_k of all", lambda k, i, m, s: jax.lax.top_k(k, N)[1], "PU"),
    ("random permutation", lambda k, i, m, s: jax.random.permutation(jax.random.key(s), N), "PU"),
    ("strided from a base", lambda k, i, m, s: s + 2 * jnp.arange(3), "U"),
    ("strides that come round", lambda k, i, m, s: s + 4 * jnp.arange(3), ""),
    ("digits", lambda k, i, m, s: s + 4 * jnp.arange(2)[:, None] + 2 * jnp.arange(2)[None], "U"),
    ("digits that overlap", lambda k, i, m, s: s + 2 * jnp.arange(2)[:, None] + 2 * jnp.arange(2)[None], ""),
    ("ring buffer", lambda k, i, m, s: (jnp.clip(s, 0, 99) + jnp.arange(5)) % N, "U"),
    ("whole ring buffer", lambda k, i, m, s: (jnp.clip(s, 0, 99) + jnp.arange(N)) % N, "PU"),
    ("ring buffer that laps", lambda k, i, m, s: (jnp.clip(s, 0, 99) + jnp.arange(9)) % N, ""),
    ("constants", lambda k, i, m, s: np.array([3, 1, 7]), "U"),
    ("equal constants", lambda k, i, m, s: np.array([3, 1, 3]), ""),
    ("ascending constants", lambda k, i, m, s: np.array([1, 3, 3, 6]), "S"),
    ("quotients", lambda k, i, m, s: jnp.arange(N) // 2, "S"),
    ("sums of sizes", lambda k, i, m, s: jnp.cumsum(jnp.clip(i, 1, 3)), "US"),
    ("sums of sizes that may be 0", lambda k, i, m, s: jnp.cumsum(jnp.clip(i, 0, 3)), "S"),
    ("sums of sizes from 0", lambda k, i, m, s: jnp.cumsum(jnp.append(0, jnp.clip(i, 1, 3)[1:])), "US"),
    ("sums of sizes that may be negative", lambda k, i, m, s: jnp.cumsum(jnp.clip(i, -1, 3)), ""),
    ("sums that may wrap around", lambda k, i, m, s: jnp.cumsum(jnp.maximum(i, 1)), ""),
    ("sums of a mask", lambda k, i, m, s: jnp.cumsum(m), "S"),
    ("sums of a mask from -1", lambda k, i, m, s: jnp.cumsum(m) - 1, ""),  # -1 is the last row
    ("sorted", lambda k, i, m, s: jnp.sort(jnp.clip(i, 0, 9)), "S"),
    ("sorted down", lambda k, i, m, s: jnp.sort(jnp.clip(i, 0, 9), descending=True), ""),
    ("cut after sorting", lambda k, i, m, s: jnp.clip(jnp.sort(i), 0, 7), "S"),
    ("dropped out of bounds", lambda k, i, m, s: jnp.where(m, jnp.argsort(k), N), "U"),
    ("dropped below, then normalised", lambda k, i, m, s: jnp.where(m, jnp.argsort(k), -N - 1), ""),  # not followed
    ("dropped at -1", lambda k, i, m, s: jnp.where(m, jnp.argsort(k), -1), ""),
    ("cut to the end", lambda k, i, m, s: jnp.minimum(2 * jnp.argsort(k), N), "U"),
    ("cut to the last row", lambda k, i, m, s: jnp.minimum(2 * jnp.argsort(k), N - 1), ""),
]  # fmt: skip


def arguments(seed):
    """Floats, integers that are often equal or extreme, booleans of 8, and a scalar."""
    random = np.random.RandomState(seed)
    floats = random.choice([0.0, -0.0, 1.0, 2.5, np.nan, -np.inf], N).astype(np.float32)
    integers = random.choice([-(2**31), 2**31 - 1, -9, -2, -1, 0, 1, 2, 3, 7, 8], N).astype(np.int32)
    return floats, integers, random.rand(N) < 0.5, np.int32(random.choice([-(2**31), 2**31 - 1, -9, -1, 0, 3]))


@pytest.mark.parametrize(("indices", "expected"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_where_positions_write(indices, expected):
    """What is proved of the positions holds when the program runs, and what may fail is not claimed."""

    def counts(*given):
        return jnp.zeros((N, 2), I32).at[indices(*given)].add(1, mode="drop")

    assert found(counts, *arguments(0)) == expected
    written = [np.asarray(run(*arguments(seed))) for run in [jax.jit(counts)] for seed in range(6)]
    assert "U" not in expected or max(map(np.max, written)) <= 1
    assert "P" not in expected or min(map(np.min, written)) == 1


def inverses(perms):
    """The inverse of each batch's permutation."""
    return jnp.zeros((B, N), I32).at[jnp.arange(B)[:, None], perms].set(jnp.arange(N))


BATCHED = [
    ("vmap", jax.vmap(lambda x, k: x.at[jnp.argsort(k)].set(2 * x)), "PU"),
    ("a column of batch numbers", lambda x, k: x.at[jnp.arange(B)[:, None], jnp.argsort(k, 1)].set(2 * x), "PU"),
    ("sorted along the other dim", lambda x, k: x.at[jnp.arange(B)[:, None], jnp.argsort(k, 0)].set(2 * x), ""),
    ("put_along_axis", lambda x, k: jnp.put_along_axis(x, jnp.argsort(k, 1), 1.0, 1, inplace=False), "PU"),
    ("part of each", lambda x, k: x.at[jnp.arange(B)[:, None], jax.lax.top_k(k, 3)[1]].add(1.0), "U"),
    ("flat", lambda x, k: x.reshape(-1).at[(jnp.arange(B)[:, None] * N + jnp.argsort(k, 1)).reshape(-1)].set(1.0), "U"),
    ("too close", lambda x, k: x.ravel().at[(jnp.arange(B)[:, None] * 7 + jnp.argsort(k, 1)).ravel()].set(1.0), ""),
    ("rows of all batches", lambda x, k: x.at[:, jnp.argsort(k[0])].set(2 * x), "PU"),
    ("half of each row", lambda x, k: x.at[jnp.argsort(k[:, 0]), :4].set(1.0), "U"),
    ("a permutation and a window", lambda x, k: x.at[jnp.argsort(k[:, 0])].set(2 * x), "PU"),
    ("two columns, one a permutation", lambda x, k: x.at[jnp.argsort(k[:, 0]), k[:, 1].astype(I32)].set(1.0), "U"),
    ("two permutations apart", lambda x, k: x.at[jnp.argsort(k[:, 0])[:, None], jnp.argsort(k[0])].set(2 * x), "U"),
    ("one of two moves along both", lambda x, k: x.at[jnp.argsort(k[:, 0])[:, None], jnp.argsort(k, 1)].set(1.0), "U"),
    ("an inverse by scatter", lambda x, k: x.at[jnp.arange(B)[:, None], inverses(jnp.argsort(k, 1))].set(2 * x), "PU"),
    ("repeated", lambda x, k: x.at[jnp.broadcast_to(jnp.argsort(k[:, 0])[:, None], (B, 3))].set(1.0), ""),
    ("claimed", lambda x, k: x.at[k[0].astype(I32)].set(1.0, unique_indices=True, indices_are_sorted=True), ""),
    ("neither along one", lambda x, k: x.at[jnp.argsort(k, 0)[:, :4], jnp.argsort(k, 0)[:, :4]].set(1.0), ""),
]  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), [b[1:] for b in BATCHED], ids=[b[0] for b in BATCHED])
def test_batches_and_several_columns(function, expected):
    """Positions of one batch coordinate are compared, and one column may settle what others leave open; flags that
    claim unique and sorted indices prove nothing, and what is spread along a dim repeats."""
    x = np.zeros((B, N), np.float32)
    assert found(function, x, x) == expected


@pytest.mark.parametrize(
    ("starts", "extent", "expected"),
    [
        (lambda i: np.array([9, 0, 3]), 3, "U"),
        (lambda i: np.array([9, 0, 2]), 3, ""),
        (lambda i: jnp.clip(i[0], 0, 3) + 3 * jnp.arange(4), 3, "US"),
        (lambda i: jnp.clip(i[0], 0, 3) + 3 * jnp.arange(4), 4, "S"),
        (lambda i: jnp.cumsum(jnp.clip(i, 3, 5)), 3, "US"),
        (lambda i: jnp.cumsum(jnp.clip(i, 2, 5)), 3, "S"),
        (lambda i: 2 * jnp.argsort(i), 2, "U"),
        (lambda i: 2 * jnp.argsort(i), 3, ""),
        # what repeats is outside only if the whole window is
        (lambda i: jnp.where(i > 0, 2 * jnp.argsort(i), -2), 2, "U"),
        (lambda i: jnp.where(i > 0, 2 * jnp.argsort(i), -1), 2, ""),
        (lambda i: jnp.where(i > 0, 2 * jnp.argsort(i), 20), 2, "U"),
    ],
)
def test_windows_need_room(starts, extent, expected):
    """Starts are to be as far apart as a window is long: by constants, strides, or sums of sizes."""

    def function(x, i):
        at = starts(i)[:, None]
        numbers = jax.lax.ScatterDimensionNumbers((1,), (), (0,))
        return jax.lax.scatter_add(x, at, jnp.ones((len(at), extent), I32), numbers, mode="drop")

    assert found(function, np.zeros(20, np.int32), np.zeros(4, np.int32)) == expected


@pytest.mark.parametrize(("second", "expected"), [("%t", "PU"), ("%i", "PU"), ("%s", "")])
def test_a_private_function_is_looked_at_from_all_its_calls(second, expected):
    """Indices that a private function gets are a permutation only if they are at every call."""
    calls = f"%p = call @put(%x, %t) -> 4xi32; %q = call @put(%x, {second}) -> 4xi32; return %p, %q"
    put = "%c = reshape %i -> 4x1xi32; %r = scatter(%x, %c, %x) <inserted=[0], to=[0], ivd=1> {assign}"
    text = module(
        "%x: 4xi32, %k: 4xi32", f"%i = iota dim = 0 : 4xi32; %s, %t = sort(%k, %i) <dimension = 0> {{LT}}\n{calls}"
    )
    graph = hl.read(text + function("private @put", "%x: 4xi32, %i: 4xi32", put))
    assert told(graph, graph.scatters[0]) == expected
