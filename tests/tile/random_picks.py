"""Random chains of elementwise ops, broadcasts and dots of int32 arrays, of which parts are picked; and wrong pulls."""

import jax
import jax.numpy as jnp
import numpy as np
from random_graphs import are_equal

import hlo_lower as hl
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.prepare import slice_hoisting
from hlo_lower.tile.prepare.slice_hoisting import pull_up

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
        other = jnp.flip(a, k)
        return jax.lax.dot_general(a, other, (((k,), (k,)), ((0,), (0,)) if batched else ((), ())))
    return a + 1


def picked(rng, a, data):
    """A slice, a slice at a place that the data says, or a gather, out of bounds now and then."""
    kind = int(rng.integers(4))
    sizes = [int(rng.integers(1, n + 1)) for n in a.shape]
    if kind == 0:
        starts = [int(rng.integers(n - size + 1)) for n, size in zip(a.shape, sizes, strict=True)]
        limits = [start + size for start, size in zip(starts, sizes, strict=True)]
        return jax.lax.slice(a, starts, limits, [int(rng.integers(1, 3)) for _ in a.shape])
    if kind == 1:
        return jax.lax.dynamic_slice_p.bind(a, *(data[k] for k in range(a.ndim)), slice_sizes=tuple(sizes))
    if kind == 2:  # rows
        k = int(rng.integers(a.ndim))
        others = tuple(d for d in range(a.ndim) if d != k)
        numbers = jax.lax.GatherDimensionNumbers(others, (k,), (k,))
        sizes = [1 if d == k else n for d, n in enumerate(a.shape)]
        return gathered(a, data[:3, None], numbers, sizes)
    counted = tuple(int(d) for d in rng.permutation(a.ndim)[: min(4, int(rng.integers(1, a.ndim + 1)))])
    gone = tuple(sorted(int(d) for d in range(a.ndim) if rng.integers(2)))
    sizes = [1 if d in gone else size for d, size in enumerate(sizes)]
    rank = 2 + a.ndim - len(gone)
    offset = tuple(sorted(int(d) for d in rng.permutation(rank)[: rank - 2]))
    count = len(counted)
    return gathered(
        a, data[: 2 * count].reshape(2, 1, count), jax.lax.GatherDimensionNumbers(offset, gone, counted), sizes
    )


def gathered(a, indices, numbers, sizes):
    """A gather whose indices are clamped by nothing but the op itself."""
    mode = jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return jax.lax.gather(a, indices, numbers, tuple(sizes), mode=mode)


def program(seed):
    """A module: chains of ops, and picks of what they make and of what was picked."""

    def f(a, b, data):
        rng = np.random.default_rng(seed)
        found = []
        for start in (a, b):
            array = start
            for _ in range(int(rng.integers(2, 6))):
                new = grown(rng, array)
                array = new if new.size <= MOST else array
            found.append(picked(rng, array, data))
            if rng.integers(2) and found[-1].ndim:
                found.append(picked(rng, grown(rng, found[-1]), data))
        return found

    shapes = ((5, 4), (3, 2, 3), (9,))
    return jax.jit(f).lower(*(jax.ShapeDtypeStruct(s, jnp.int32) for s in shapes)).as_text()


def mismatch(seed):
    """How many picks were pulled up, and whether anything differs by it."""
    text = program(seed)
    graph = hl.read(text)
    pulled = pull_up(graph, least=1)
    if not pulled:
        return 0, False
    after = to_text(graph)
    return len(pulled), not any(are_equal(text, after, rounding, seed) for rounding in ("quick", "unfused"))


def wrapped(monkeypatch):
    """A start out of bounds wraps around in the place of being clamped."""

    def around(build: Builder, low, value, high):
        extent = build.elementwise("add", high, build.constant(1, (), high.element_type))
        return build.elementwise("remainder", build.elementwise("maximum", value, low), extent)

    monkeypatch.setattr(Builder, "clamp", around)


def contracted(monkeypatch):
    """What is picked of a dot's operands is picked along their contracting dims, too."""
    right = slice_hoisting.in_place

    def wrong(build, pick, value, dims):
        extent = pick.operand(0).shape
        if None not in dims or pick.name == "stablehlo.gather":
            return right(build, pick, value, dims)
        alike = [next((k for k, m in enumerate(extent) if m == n), None) for n in value.shape]
        return right(build, pick, value, tuple(a if d is None else d for d, a in zip(dims, alike, strict=True)))

    monkeypatch.setattr(slice_hoisting, "in_place", wrong)


def first_columns(monkeypatch):
    """Of the index vectors those that come first are taken, whichever dims are left."""
    right = slice_hoisting._columns
    monkeypatch.setattr(
        slice_hoisting,
        "_columns",
        lambda build, indices, columns, *rest: right(build, indices, range(len(columns)), *rest),
    )


def unmoved(monkeypatch):
    """A slice of a broadcast begins at 0."""
    right = slice_hoisting._sliced

    def wrong(build, pick, value, dims):
        found = right(build, pick, value, dims)
        return build.slice(value, [0] * len(dims), found.static_shape)

    monkeypatch.setattr(slice_hoisting, "_sliced", wrong)


WRONG = (wrapped, contracted, first_columns, unmoved)
