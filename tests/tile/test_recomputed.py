"""Rows of what a scan stacks are computed again where they are read, bit for bit; wrong ways to do so are seen."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_scans import differs

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.facts.memory.liveness import liveness
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile.find import scan_stacks
from hlo_lower.tile.prepare import rematerialization
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.tile.prepare.rematerialization import levels, recompute
from hlo_lower.verify.run import Executable

F32 = jnp.float32


def step(count=4, tokens=16, width=4, inner=64):
    """The gradient of a scan over layers: what the forward scan stacks the backward scan reads, last layer first."""

    def loss(weights, x):
        def layer(x, w):
            mask = jnp.arange(tokens)[:, None] >= jnp.arange(inner)
            return x + jnp.where(mask, jnp.tanh(x @ w[0]), 0.0) @ w[1], None

        y, _ = jax.lax.scan(layer, x, weights)
        return (y * y).sum()

    shapes = ((count, width, inner), (count, inner, width)), (tokens, width)
    types = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, F32), shapes, is_leaf=lambda s: isinstance(s[0], int))
    return jax.jit(jax.grad(loss)).lower(*types).as_text()


def prepared(text):
    """A module, prepared."""
    graph = hl.read(text)
    prepare(graph)
    return graph


def stored(graph):
    """Bytes that are live at most, by the estimate."""
    return liveness(Dataflow(graph, default_subset_rules())).most


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small stacks are worth the trouble."""
    for least in ("LEAST", "REPEATED"):
        monkeypatch.setattr(rematerialization, least, 1 << 10)


def test_what_a_layer_keeps_is_computed_again():
    """The fat stacks go, what goes into each layer stays stacked, and the module is verified to be the same."""
    text = step()
    graph = prepared(text)
    before = stored(graph)
    [told] = recompute(graph, 1)
    assert set(told.stacks) == {"4x16x64xf32"}
    assert 2 * stored(graph) < before
    after = to_text(graph)
    assert "tensor<4x16x64xf32>" not in after
    assert hl.verify(text, after, level="regions").ok


def test_a_mask_is_made_in_the_loops():
    """What costs nothing to make is not carried through the loops whose stacks go."""
    graph = prepared(step())
    carried = [v for n in graph.main.body.nodes if n.name == "stablehlo.while" for v in n.operands]
    assert any(v.shape == (16, 64) for v in carried)
    recompute(graph, 1)
    carried = [v for n in graph.main.body.nodes if n.name == "stablehlo.while" for v in n.operands]
    assert not any(v.shape == (16, 64) for v in carried)


def test_a_search_computes_again(estimated):
    """A search whose bound is below what is stacked computes it again, and tells of it."""
    text = step()
    tiled = hl.tile(text, max_temp=stored(prepared(text)) // 2)
    assert tiled.recomputed
    assert tiled.to_json()["recomputed"][0]["trips"] == 4
    assert "computes again" in "\n".join(tiled.lines())


REFUSED = {
    "a stack that is returned": lambda s, i: (s, s[0]),
    "a stack of which more than a row is read": lambda s, i: s.sum(0),
    "two rows at once": lambda s, i: jax.lax.dynamic_slice_in_dim(s, i, 2),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_kept(what):
    """A stack that is read otherwise than row by row stays."""

    def f(xs, first, i):
        _, stack = jax.lax.scan(lambda x, w: (x * w, jnp.tanh(x) + w), first, xs)
        return REFUSED[what](stack, i)

    types = (jax.ShapeDtypeStruct(s, d) for s, d in (((4, 16, 32), F32), ((16, 32), F32), ((), jnp.int32)))
    assert levels(prepared(jax.jit(f).lower(*types).as_text())) == []


def test_a_carry_that_is_as_large_is_not_stacked():
    """Where what a trip begins with is as large as what it stacks, a stack of the former would save nothing."""

    def f(xs, first, i):
        _, stack = jax.lax.scan(lambda x, w: (x * w, jnp.tanh(x)), first, xs)
        return jax.lax.dynamic_index_in_dim(stack, i)

    types = (jax.ShapeDtypeStruct(s, d) for s, d in (((4, 16, 32), F32), ((16, 32), F32), ((), jnp.int32)))
    graph = prepared(jax.jit(f).lower(*types).as_text())
    assert recompute(graph, 1) == ()


def scanned(then, start=jnp.int32):
    """A module whose scan of 200 trips stacks rows of 64 numbers, made of the few that it carries, and what is then
    computed of the stack, of where to begin, and of a mask that is as large."""

    def f(first, i):
        def layer(x, _):
            return x * 3 + 1, (x[:, None] * jnp.arange(16)).reshape(-1)

        _, stack = jax.lax.scan(layer, first, length=200)
        return then(stack, i, jnp.broadcast_to(jax.lax.iota(jnp.int32, 200)[:, None], stack.shape) + 1)

    types = jax.ShapeDtypeStruct((4,), jnp.int32), jax.ShapeDtypeStruct((), start)
    return jax.jit(f).lower(*types).as_text()


def read_back(seen):
    """A loop that adds up rows of a stack for as long as a number of the stack or of a mask says."""

    def then(stack, i, mask):
        def body(state):
            k, total, s, m = state
            return k + 1, total + jax.lax.dynamic_slice(s, (k, 0), (1, 64)), s, m

        state = i, jnp.zeros((1, 64), jnp.int32), stack, mask
        return jax.lax.while_loop(lambda state: (state[0] < 9) & seen(*state), body, state)[:2]

    return then


def test_a_stack_that_a_condition_reads_is_kept():
    """How long a later loop goes on is not computed in its body."""
    seen = lambda k, total, s, m: jax.lax.dynamic_slice(s, (k, 0), (1, 64))[0, 0] < 100  # noqa: E731
    assert levels(prepared(scanned(read_back(seen)))) == []


def run_of(text, start):
    """What a module gives for some numbers."""
    first = np.arange(4, dtype=np.int32)
    return [np.asarray(result) for result in Executable(text, "exact").run([first, start])]


def test_a_mask_that_a_condition_reads_is_carried():
    """What costs nothing to make stays where the condition of the loop needs it, too."""
    text = scanned(read_back(lambda k, total, s, m: m[5, 6] > k))
    graph = prepared(text)
    assert recompute(graph, 1)
    for start in (np.int32(-3), np.int32(2)):
        pairs = zip(run_of(text, start), run_of(to_text(graph), start), strict=True)
        assert all((before == after).all() for before, after in pairs)


@pytest.mark.parametrize("start", [-128, 100, 127])
def test_a_row_is_told_by_a_type_that_does_not_hold_all(start):
    """There are more rows than numbers of 8 bits."""
    narrow = lambda s, i, m: jax.lax.dynamic_slice_p.bind(s, i, jnp.int8(0), slice_sizes=(1, 64))  # noqa: E731
    text = scanned(narrow, jnp.int8)
    assert "tensor<200x64xi32>, tensor<i8>, tensor<i8>" in text
    graph = prepared(text)
    assert recompute(graph, 1)
    [before], [after] = (run_of(one, np.int8(start)) for one in (text, to_text(graph)))
    assert (before == after).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_random_scans(seed, monkeypatch):
    """Stacks of random scans computed again give the same, bit for bit."""
    assert not differs(seed, monkeypatch)


@pytest.mark.sweep
def test_many_random_scans(monkeypatch):
    """The same for three hundred, of which most have stacks that go."""
    found = [differs(seed, monkeypatch) for seed in range(300)]
    assert True not in found
    assert found.count(False) > 150


def next_trip(monkeypatch):
    """A row is computed from what goes into the trip behind it."""
    right = rematerialization._row_of

    def wrong(build, stack, number, value):
        return right(build, stack, build.elementwise("add", number, build.constant(1, (), number.element_type)), value)

    monkeypatch.setattr(rematerialization, "_row_of", wrong)


def unclamped(monkeypatch):
    """A start is taken as one of the rows, whatever it is."""
    monkeypatch.setattr(rematerialization, "_is_inside", lambda read, trips: True)


def any_row(monkeypatch):
    """A trip writes its own row, whatever it writes at."""
    monkeypatch.setattr(scan_stacks, "is_at_trip", lambda start, counter, trips: True)


def unwritten(monkeypatch):
    """Every row is written, however many there are."""
    monkeypatch.setattr(scan_stacks, "is_full", lambda rows, trips: True)


def first_trip(monkeypatch):
    """Every row is that of the first trip."""
    monkeypatch.setattr(rematerialization, "_trip", lambda build, read, scan, element: build.constant(0, (), element))


SEEN = {next_trip: 0, unclamped: 1, any_row: 3, unwritten: 10, first_trip: 0}


NOW = (next_trip, any_row)


@pytest.mark.parametrize(
    "wrong",
    [w if w in NOW else pytest.param(w, marks=pytest.mark.sweep) for w in SEEN],
    ids=lambda wrong: wrong.__name__,
)
def test_a_wrong_row_is_seen(wrong, monkeypatch):
    """Each way to compute another row gives other results in a program that is right without it."""
    wrong(monkeypatch)
    assert differs(SEEN[wrong], monkeypatch)
