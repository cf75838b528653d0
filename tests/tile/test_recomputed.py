"""Rows of what a scan stacks are computed again where they are read, bit for bit; wrong ways to do so are seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_graphs import are_equal
from small_tiles import live, prepared

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.op_axes import default_subset_rules
from hlo_lower.tile.find import scan_stacks
from hlo_lower.tile.prepare import loop_carries, rematerialization
from hlo_lower.tile.prepare.rematerialization import levels, recompute
from hlo_lower.verify.run import Executable

I32, F32 = jnp.int32, jnp.float32


def text_of(function, *shapes):
    """The module of a function of arrays: shapes of int32, or pairs of a shape and a type."""
    pairs = (shape if shape and isinstance(shape[0], tuple) else (shape, I32) for shape in shapes)
    return jax.jit(function).lower(*(jax.ShapeDtypeStruct(*pair) for pair in pairs)).as_text()


def gradient_step():
    """The gradient of a scan over layers: what the forward scan stacks the backward scan reads, last layer first."""

    def loss(first, second, x):
        def layer(x, w):
            mask = jnp.arange(16)[:, None] >= jnp.arange(64)
            return x + jnp.where(mask, jnp.tanh(x @ w[0]), 0.0) @ w[1], None

        y, _ = jax.lax.scan(layer, x, (first, second))
        return (y * y).sum()

    return text_of(jax.grad(loss, (0, 1)), ((4, 4, 64), F32), ((4, 64, 4), F32), ((16, 4), F32))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small stacks are worth the trouble."""
    for module, least in ((rematerialization, "LEAST"), (loop_carries, "REPEATED")):
        monkeypatch.setattr(module, least, 1 << 10)


def carries_a_mask(graph):
    """Whether a loop carries an array of the shape of the mask."""
    loops = (node for node in graph.main.body.nodes if node.name == "stablehlo.while")
    return any(value.shape == (16, 64) for node in loops for value in node.operands)


def test_what_a_layer_keeps_is_computed_again(estimated):
    """The fat stacks go, what goes into each layer stays stacked; what costs nothing to make, a mask, is made in the
    loops and not carried through them. A search whose bound is below what is stacked does so, and tells of it."""
    text = gradient_step()
    graph, program = prepared(text)
    before = liveness(program).most
    assert carries_a_mask(graph)
    [told] = recompute(graph, 1)
    assert set(told.stacks) == {"4x16x64xf32"}
    assert not carries_a_mask(graph)
    assert 2 * liveness(Dataflow(graph, default_subset_rules())).most < before
    after = to_text(graph)
    assert "tensor<4x16x64xf32>" not in after
    assert hl.verify(text, after, level="regions").ok
    tiled = hl.tile(text, max_temp=live(text) // 2)
    assert tiled.to_json()["recomputed"][0]["trips"] == 4
    assert "computes again" in "\n".join(tiled.lines())


def read_back(seen):
    """A loop that adds up rows of a stack for as long as a number of the stack or of a mask says."""

    def then(stack, i, mask):
        def body(state):
            k, total, s, m = state
            return k + 1, total + jax.lax.dynamic_slice(s, (k, 0), (1, 64)), s, m

        state = i, jnp.zeros((1, 64), I32), stack, mask
        return jax.lax.while_loop(lambda state: (state[0] < 9) & seen(*state), body, state)[:2]

    return then


def scanned(then, start=I32):
    """A module whose scan of 200 trips stacks rows of 64 numbers, made of the few that it carries, and what is then
    computed of the stack, of where to begin, and of a mask that is as large."""

    def f(first, i):
        _, stack = jax.lax.scan(lambda x, _: (x * 3 + 1, (x[:, None] * jnp.arange(16)).reshape(-1)), first, length=200)
        return then(stack, i, jnp.broadcast_to(jax.lax.iota(I32, 200)[:, None], stack.shape) + 1)

    return text_of(f, (4,), ((), start))


def stacked(then, add=True):
    """A module whose scan stacks what is as large as what it carries, and more where it adds its rows."""

    def f(xs, first, i):
        _, stack = jax.lax.scan(lambda x, w: (x * w, jnp.tanh(x) + (w if add else 0)), first, xs)
        return then(stack, i)

    return text_of(f, ((4, 16, 32), F32), ((16, 32), F32), ())


KEPT = {
    "a stack that is returned": lambda: stacked(lambda s, i: (s, s[0])),
    "a stack of which more than a row is read": lambda: stacked(lambda s, i: s.sum(0)),
    "two rows at once": lambda: stacked(lambda s, i: jax.lax.dynamic_slice_in_dim(s, i, 2)),
    "a carry that is as large": lambda: stacked(lambda s, i: jax.lax.dynamic_index_in_dim(s, i), add=False),
    "how long a later loop goes on": lambda: scanned(
        read_back(lambda k, total, s, m: jax.lax.dynamic_slice(s, (k, 0), (1, 64))[0, 0] < 100)
    ),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_is_kept(what):
    """A stack that is read otherwise than row by row, or by a condition, stays; and where what a trip begins with is as
    large as what it stacks, a stack of the former would save nothing."""
    graph, _ = prepared(KEPT[what]())
    assert "carry" in what or levels(graph) == []
    assert recompute(graph, 1) == ()


def narrow(stack, i, mask):
    """A row whose number is of 8 bits."""
    return jax.lax.dynamic_slice_p.bind(stack, i, jnp.int8(0), slice_sizes=(1, 64))


@pytest.mark.parametrize(
    ("then", "starts"),
    [
        (read_back(lambda k, total, s, m: m[5, 6] > k), np.array([-3, 2], "i4")),
        (narrow, np.array([-128, 100, 127], "i1")),
    ],
    ids=["a mask that a condition reads is carried", "a row is told by a type that does not hold all"],
)
def test_rows_are_the_same(then, starts):
    text = scanned(then, starts.dtype)
    graph, _ = prepared(text)
    assert recompute(graph, 1)
    before, after = (Executable(one, "exact") for one in (text, to_text(graph)))
    for start in starts:
        for one, other in zip(*(run.run([np.arange(4, dtype="i4"), start]) for run in (before, after)), strict=True):
            np.testing.assert_array_equal(one, other)


def random_scan(seed):
    """A module with a loop that carries an array and a number, and stacks arrays that are computed of these, of a row
    of an argument and of its trip; and a later one that reads the stacks in an order of its own: backwards, forwards,
    or where the data says, out of bounds, too. Now and then a stack is returned, read beside the loops, written
    backwards, or has a row that no trip writes."""
    rng = np.random.default_rng(seed)
    trips, reader_trips = (int(n) for n in rng.choice((1, 2, 3, 5), 2))
    made = [int(n) for n in rng.integers(6, size=4)]
    how, other = (int(n) for n in rng.integers(4, size=2))
    backwards, longer = (bool(n) for n in rng.random(2) < 0.2)

    def values(x, count, row, trip):
        return (
            lambda: x * row + count * trip,
            lambda: jnp.concatenate([x, x[:, ::-1]], 1) * (trip + 2),
            lambda: x @ row.T,
            lambda: jax.lax.fori_loop(0, 2, lambda i, y: y * 3 + row * i, x),
            lambda: jnp.where(row > trip, x, jax.lax.broadcasted_iota(I32, x.shape, 1)),
            lambda: x,
        )

    def f(xs, first, places):
        def forward(state):
            trip, x, count, stacks = state
            row = jax.lax.dynamic_index_in_dim(xs, trip, keepdims=False)
            new = [values(x, count, row, trip)[n]() for n in made]
            at = trips - 1 - trip if backwards else trip
            stacks = [jax.lax.dynamic_update_index_in_dim(s, v, at, 0) for s, v in zip(stacks, new, strict=True)]
            return trip + 1, x * 3 - row + sum(jnp.sum(v) for v in new), count * 2 + 1, stacks

        like = [v() for v in values(first, I32(0), first, I32(0))]
        empty = [jnp.full((trips + longer, *like[n].shape), 7) for n in made]
        state = I32(0), first, I32(seed % 5), empty
        _, x, count, stacks = jax.lax.while_loop(lambda state: state[0] < trips, forward, state)

        def backward(i, total):
            at = (trips - 1 - i, i, places[i % places.shape[0]], i * 2 - 1)[how]
            rows = [jax.lax.dynamic_index_in_dim(s, at, keepdims=False) for s in stacks]
            return total * 5 + sum(jnp.sum(r) * (k + 2) for k, r in enumerate(rows))

        total = jax.lax.fori_loop(0, reader_trips, backward, count)
        return x, total, {0: stacks[0], 1: jax.lax.dynamic_index_in_dim(stacks[1], places[0])}.get(other, total)

    return text_of(f, (trips, 3, 4), (3, 4), (3,))


def differs(seed, monkeypatch):
    """Whether anything differs in a random program with stacks computed again; None where there are none."""
    monkeypatch.setattr(rematerialization, "LEAST", 1)
    text = random_scan(seed)
    graph, _ = prepared(text)
    if not (count := len(levels(graph))):
        return None
    recompute(graph, 1 + seed % count)
    return not are_equal(text, to_text(graph), "quick", seed)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(300), marks=pytest.mark.sweep)], ids=str)
def test_random_scans(seeds, monkeypatch):
    """Most programs have stacks that go."""
    found = [differs(seed, monkeypatch) for seed in seeds]
    assert True not in found
    assert found.count(False) > len(seeds) // 2


def next_row(build, stack, number, value, right=rematerialization._row_of):
    return right(build, stack, build.elementwise("add", number, build.constant(1, (), number.element_type)), value)


WRONG = {  # and a program in which each gives other results
    "the row behind": (rematerialization, "_row_of", next_row, 0),
    "the row of the trip, whatever it writes at": (scan_stacks, "is_at_trip", lambda *_: True, 3),
    "a start inside, whatever it is": (rematerialization, "_is_inside", lambda *_: True, 1),
    "all rows, however many are written": (scan_stacks, "is_full", lambda *_: True, 10),
    "the first row": (rematerialization, "_trip", lambda build, read, scan, kind: build.constant(0, (), kind), 0),
}


@pytest.mark.parametrize("what", [*list(WRONG)[:2], *(pytest.param(w, marks=pytest.mark.sweep) for w in [*WRONG][2:])])
def test_a_wrong_row_is_seen(what, monkeypatch):
    """Each way to compute another row gives other results in a program that is right without it."""
    owner, name, wrong, seed = WRONG[what]
    monkeypatch.setattr(owner, name, wrong)
    assert differs(seed, monkeypatch)
