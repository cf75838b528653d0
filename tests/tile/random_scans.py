"""Random scans of int32 arrays that stack what a later loop reads back row by row, and the same computed again."""

import jax
import jax.numpy as jnp
import numpy as np
from random_graphs import are_equal

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.prepare import rematerialization
from hlo_lower.tile.prepare.normalize import prepare
from hlo_lower.tile.prepare.rematerialization import levels, recompute

TRIPS, ROWS, WIDTH = (1, 2, 3, 5), 3, 4


def program(seed: int) -> str:
    """A module with a loop that carries an array and a number, and stacks arrays that are computed of these, of a row
    of an argument and of its trip; and a later one that reads the stacks in an order of its own: backwards, forwards,
    or where the data says, out of bounds, too. Now and then a stack is returned, read beside the loops, written
    backwards, or has a row that no trip writes."""
    rng = np.random.default_rng(seed)
    trips, reader_trips = (int(n) for n in rng.choice(TRIPS, 2))
    made = [int(n) for n in rng.integers(6, size=4)]
    how, other = (int(n) for n in rng.integers(4, size=2))
    backwards, longer = (bool(n) for n in rng.random(2) < 0.2)

    def values(x, count, row, trip):
        return (
            lambda: x * row + count * trip,
            lambda: jnp.concatenate([x, x[:, ::-1]], 1) * (trip + 2),
            lambda: x @ row.T,
            lambda: jax.lax.fori_loop(0, 2, lambda i, y: y * 3 + row * i, x),
            lambda: jnp.where(row > trip, x, jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)),
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

        zero = jnp.int32(0)
        like = [v() for v in values(first, zero, first, zero)]
        empty = [jnp.full((trips + longer, *like[n].shape), 7) for n in made]
        state = zero, first, jnp.int32(seed % 5), empty
        _, x, count, stacks = jax.lax.while_loop(lambda state: state[0] < trips, forward, state)

        def backward(i, total):
            at = (trips - 1 - i, i, places[i % places.shape[0]], i * 2 - 1)[how]
            rows = [jax.lax.dynamic_index_in_dim(s, at, keepdims=False) for s in stacks]
            return total * 5 + sum(jnp.sum(r) * (k + 2) for k, r in enumerate(rows))

        total = jax.lax.fori_loop(0, reader_trips, backward, count)
        extra = {0: stacks[0], 1: jax.lax.dynamic_index_in_dim(stacks[1], places[0])}.get(other, total)
        return x, total, extra

    shapes = ((trips, ROWS, WIDTH), (ROWS, WIDTH), (3,))
    return jax.jit(f).lower(*(jax.ShapeDtypeStruct(s, jnp.int32) for s in shapes)).as_text()


def recomputed_text(text: str, seed: int, monkeypatch) -> str:
    """The module with stacks of a random number of sizes computed again; the same text where there are none."""
    monkeypatch.setattr(rematerialization, "LEAST", 1)
    graph = hl.read(text)
    prepare(graph)
    count = len(levels(graph))
    if not count:
        return text
    recompute(graph, 1 + seed % count)
    return to_text(graph)


def differs(seed: int, monkeypatch) -> bool | None:
    """Whether anything differs between a random program and the same with stacks computed again; None where none is."""
    text = program(seed)
    after = recomputed_text(text, seed, monkeypatch)
    if after == text:
        return None
    return not are_equal(text, after, "quick", seed)
