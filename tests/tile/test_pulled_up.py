"""Slices and gathers go up through what makes a large value: what comes out, what stays, and wrong ways to do it."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_graphs import are_equal
from small_tiles import are_verified, module_of

import hlo_lower as hl
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.prepare import slice_hoisting
from hlo_lower.tile.prepare.slice_hoisting import pull_up

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from benchmark.memory_workloads import WORKLOADS

TABLE, ONE_ROW = module_of("dequantized.mlir"), module_of("one_row.mlir")


def pulled(text, least=1):
    """What is told of each pick that was pulled up, and the module without them."""
    graph = hl.read(text)
    return pull_up(graph, least=least), to_text(graph)


@pytest.mark.parametrize(("name", "ops", "is_exact"), [("dequantized", 3, True), ("one_row", 2, False)])
def test_before_and_after(name, ops, is_exact, check):
    text = module_of(f"{name}.mlir")
    [told], after = pulled(text)
    check(f"{name}.mlir", after)
    assert (told.ops, told.is_exact) == (ops, is_exact)
    assert are_verified(text, after, "exact" if is_exact else "reassociate")


def test_what_is_not_pulled():
    """More rows than the table has, a value that is not large; and a product of which all is returned, too."""
    more_rows = TABLE.replace("tensor<4x1", "tensor<96x1").replace("<4x16", "<96x16")
    for text, least in ((more_rows, 1), (TABLE, 1 << 20)):
        assert pulled(text, least) == ((), to_text(hl.read(text)))
    text = ONE_ROW.replace("-> tensor<1x96xf32> {", "-> (tensor<1x96xf32>, tensor<64x96xf32>) {")
    text = text.replace("return %row : tensor<1x96xf32>", "return %row, %logits : tensor<1x96xf32>, tensor<64x96xf32>")
    [told], _ = pulled(text)
    assert (told.ops, told.is_exact) == (1, True)


def test_one_row_needs_no_loop(estimated):
    """A search that reaches its bound by pulling alone makes no loop, and tells of what it pulled."""
    tiled = hl.tile(ONE_ROW, max_temp="4KiB", name="row.mlir")
    assert (tiled.reached, tiled.loops, tiled.float_mode) == (True, (), "reassociate")
    assert tiled.lines()[1] == "  pulled up row.mlir:6: stablehlo.dynamic_slice of 1x96xf32 of 64x96xf32, through 2 ops"
    assert tiled.to_json()["pulled"][0]["ops"] == 2


@pytest.mark.sweep
def test_the_table_is_pulled_and_cut_by_rows():
    """Of the step on an int8 table the gathers are pulled up, and loops over its rows do the rest."""
    tiled = hl.tile(WORKLOADS["int8_table"].text((512, 16, 8)), max_temp="16KiB")
    assert tiled.reached
    assert [pull.op for pull in tiled.pulled] == ["stablehlo.gather"]
    assert tiled.loops
    assert all(loop.subset.startswith("[i:+") for loop in tiled.loops)


MOST = 3000
"""Elements of an array, at most."""


def grown(rng, a):
    """An array made of another: elementwise, broadcast, or a product."""
    kind = int(rng.integers(6))
    if kind == 0:
        return jnp.maximum(a * 3, a + 1)
    if kind == 1:
        return jnp.where(a % 3 == 0, a, -a).astype(jnp.int8).astype(jnp.int32)
    if kind in (2, 3) and a.ndim < 4:
        place = int(rng.integers(a.ndim + 1))
        shape = (*a.shape[:place], int(rng.choice((2, 3, 5))), *a.shape[place:])
        return jax.lax.broadcast_in_dim(a, shape, [k for k in range(len(shape)) if k != place])
    if kind == 4 and a.ndim:
        return jnp.broadcast_to(a.max(axis=(k := int(rng.integers(a.ndim))), keepdims=True), a.shape) + k
    if kind == 5 and 1 < a.ndim < 4:
        k, batched = int(rng.integers(1, a.ndim)), bool(rng.integers(2))
        return jax.lax.dot_general(a, jnp.flip(a, k), (((k,), (k,)), ((0,), (0,)) if batched else ((), ())))
    return a + 1


def picked_of_batches(rng, a, data):
    """Rows of each batch, or one row of each, with its dim or without."""
    dims = [int(q) for q in rng.permutation(a.ndim)]
    k, batch = dims[0], sorted(dims[1 : 1 + int(rng.integers(0, a.ndim))])
    mine, how = sorted((k, *batch)), int(rng.integers(3))
    extents = [int(rng.integers(1, 4)) if q == k and how == 0 else a.shape[q] for q in mine if how == 0 or q != k]
    sizes = [1 if q in mine else n for q, n in enumerate(a.shape)]
    kept = [q for q in range(a.ndim) if q not in batch and (how == 2 or q != k)]
    offset = kept if how == 0 else [q - (how == 1 and q > k) for q in kept]
    counted = (k,) if how < 2 else tuple(sorted({k, *(q for q in kept if rng.integers(2))}))
    named = jnp.resize(data, (*extents, len(counted)))
    lists = tuple((mine if how == 0 else batch).index(q) for q in batch)
    numbers = jax.lax.GatherDimensionNumbers(tuple(offset), () if how == 2 else (k,), counted, tuple(batch), lists)
    return jax.lax.gather(a, named, numbers, tuple(sizes), mode=jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def picked(rng, a, data):
    """A slice, a slice at a place that the data says, or a gather, out of bounds now and then."""
    kind = int(rng.integers(6))
    sizes = [int(rng.integers(1, n + 1)) for n in a.shape]
    if kind == 0:
        starts = [int(rng.integers(n - size + 1)) for n, size in zip(a.shape, sizes, strict=True)]
        limits = [start + size for start, size in zip(starts, sizes, strict=True)]
        return jax.lax.slice(a, starts, limits, [int(rng.integers(1, 3)) for _ in a.shape])
    if kind == 1:
        return jax.lax.dynamic_slice_p.bind(a, *(data[k] for k in range(a.ndim)), slice_sizes=tuple(sizes))
    if kind > 3 and a.ndim > 1:
        return picked_of_batches(rng, a, data)
    if kind == 2:  # rows
        k = int(rng.integers(a.ndim))
        counted, gone, offset = (k,), (k,), tuple(d for d in range(a.ndim) if d != k)
        sizes, indices = [1 if d == k else n for d, n in enumerate(a.shape)], data[:3, None]
    else:
        counted = tuple(int(d) for d in rng.permutation(a.ndim)[: min(4, int(rng.integers(1, a.ndim + 1)))])
        gone = tuple(sorted(int(d) for d in range(a.ndim) if rng.integers(2)))
        sizes = [1 if d in gone else size for d, size in enumerate(sizes)]
        rank = 2 + a.ndim - len(gone)
        offset = tuple(sorted(int(d) for d in rng.permutation(rank)[: rank - 2]))
        indices = data[: 2 * len(counted)].reshape(2, 1, len(counted))
    numbers = jax.lax.GatherDimensionNumbers(offset, gone, counted)
    return jax.lax.gather(a, indices, numbers, tuple(sizes), mode=jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def mismatch(seed):
    """How many picks are pulled up in a random program, and whether anything differs by it: in chains of ops on int32
    arrays, and picks of what they make and of what was picked."""

    def f(a, b, data):
        rng = np.random.default_rng(seed)
        found = []
        for array in (a, b):
            for _ in range(int(rng.integers(2, 6))):
                new = grown(rng, array)
                array = new if new.size <= MOST else array
            found.append(picked(rng, array, data))
            if rng.integers(2) and found[-1].ndim:
                found.append(picked(rng, grown(rng, found[-1]), data))
        return found

    shapes = (jax.ShapeDtypeStruct(s, jnp.int32) for s in ((5, 4), (3, 2, 3), (9,)))
    text = jax.jit(f).lower(*shapes).as_text()
    told, after = pulled(text)
    differs = told and not any(are_equal(text, after, rounding, seed) for rounding in ("quick", "unfused"))
    return len(told), bool(differs)


BLOCKS = [pytest.param(range(100 * k, 100 * (k + 1)), marks=pytest.mark.sweep) for k in range(20)]


@pytest.mark.parametrize("seeds", [range(6), *BLOCKS], ids=str)
def test_random_pulls_change_nothing(seeds):
    """Slices and gathers, out of bounds too, of random chains of ops: pulled up they pick the same, bit for bit; in
    most programs there is something to pull."""
    found = [mismatch(seed) for seed in seeds]
    assert sum(count > 0 for count, _ in found) > len(seeds) * 0.6
    assert not any(is_wrong for _, is_wrong in found)


def wrapped(right, build, low, value, high):
    extent = build.elementwise("add", high, build.constant(1, (), high.element_type))
    return build.elementwise("remainder", build.elementwise("maximum", value, low), extent)


def contracted(right, build, pick, value, dims):
    extent = pick.operand(0).shape
    if None not in dims or pick.name == "stablehlo.gather":
        return right(build, pick, value, dims)
    alike = [next((k for k, m in enumerate(extent) if m == n), None) for n in value.shape]
    return right(build, pick, value, tuple(a if d is None else d for d, a in zip(dims, alike, strict=True)))


def first_columns(right, build, indices, columns, *rest):
    return right(build, indices, range(len(columns)), *rest)


def unmoved(right, build, pick, value, dims):
    return build.slice(value, [0] * len(dims), right(build, pick, value, dims).static_shape)


WRONG = {  # what stands for what, and a program in which it gives other results
    "a start out of bounds wraps around": (wrapped, Builder, "clamp", 3),
    "what is picked of a dot's operands is picked along their contracting dims": (
        *(contracted, slice_hoisting, "in_place", 52),
    ),
    "of the index vectors those that come first are taken": (first_columns, slice_hoisting, "_columns", 21),
    "a slice of a broadcast begins at 0": (unmoved, slice_hoisting, "_slice_dims", 4),
}
ROUND, *OTHERS = WRONG


@pytest.mark.parametrize("what", [ROUND, *(pytest.param(w, marks=pytest.mark.sweep) for w in OTHERS)])
def test_a_wrong_pull_is_seen(what, monkeypatch):
    """Each wrong way to pull a pick up gives other results in a program that is right without it."""
    wrong, owner, name, seed = WRONG[what]
    assert mismatch(seed)[1] is False
    right = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args: wrong(right, *args))
    assert mismatch(seed)[1] is True


def product_mismatch(seed):
    """Through how many ops rows of batches of a random product are pulled, and whether anything differs by it."""
    rng = np.random.default_rng([seed, 1])
    rank, summed = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    left = [int(n) for n in rng.choice((2, 3, 8, 12), rank - 1)]
    at = int(rng.integers(1, rank))
    left.insert(at, summed)
    batch = [0] if rank > 2 and at != 0 and rng.integers(2) else []
    right = [*(left[d] for d in batch), summed, *(int(n) for n in rng.choice((3, 8), int(rng.integers(0, 2))))]

    def f(a, b, data):
        made = jax.lax.dot_general(a, b, (((at,), (len(batch),)), (batch, batch)))
        made = made * 3 if rng.integers(2) else made
        return picked_of_batches(rng, made, data)

    shapes = (jax.ShapeDtypeStruct(tuple(s), jnp.int32) for s in (left, right, [9]))
    text = jax.jit(f).lower(*shapes).as_text()
    told, after = pulled(text)
    return sum(pull.ops for pull in told), not are_equal(text, after, "quick", seed)


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 300), marks=pytest.mark.sweep)], ids=str)
def test_rows_of_batches_are_pulled_through_products(seeds):
    """In any form in which a gather may name them: the same, bit for bit."""
    found = [product_mismatch(seed) for seed in seeds]
    assert [seed for seed, (_, is_wrong) in zip(seeds, found, strict=True) if is_wrong] == []
    assert sum(count > 0 for count, _ in found) > len(seeds) * 0.2


def without_row(right):
    """The first column of index vectors, whichever the row is."""
    return lambda build, indices, starts, limits: right(
        build, indices, [0] * len(starts), [n - s for s, n in zip(starts, limits, strict=True)]
    )


def other_lists(right):
    """Of each batch the rows of the last one first, once the gather is pulled up."""
    return lambda build, value, rows, axis, batch=(), vector=None: right(
        build, value, build.reverse(rows, [0]) if batch and vector is not None else rows, axis, batch, vector
    )


WRONG_ROWS = {
    "the first column": (Builder, "slice", without_row, 4),
    "other lists": (Builder, "gather_rows", other_lists, 18),
}


@pytest.mark.parametrize("what", WRONG_ROWS)
def test_wrong_rows_of_batches_are_seen(what, monkeypatch):
    """Rows that are named wrongly give other results."""
    owner, name, wrong, seed = WRONG_ROWS[what]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    assert product_mismatch(seed)[1]
