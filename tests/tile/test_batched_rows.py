"""Rows that a scatter or a gather counts become a batching dim, bit for bit; rows that are not counted stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_graphs import are_equal

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.tile.find.choose import choices
from hlo_lower.tile.prepare import batched_rows
from hlo_lower.tile.prepare.batched_rows import batch_rows
from hlo_lower.tile.prepare.normalize import inline_calls, prepare

I32 = jnp.int32
ROWS = jnp.arange(5)[:, None]
"""A constant, written out in a module."""


def rows():
    """The same, counted in a module."""
    return jax.lax.iota(I32, 5)[:, None]


COUNTED = {
    "rows written in another order": lambda x, i, u: x.at[rows(), i].set(u),
    "rows added to, some out of bounds": lambda x, i, u: x.at[rows(), i * 3 - 4].add(u, mode="drop"),
    "rows read, clamped": lambda x, i, u: x[ROWS, i * 3 - 4].at[0].set(u[0], mode="clip"),
    "columns counted, in dims of three": lambda x, i, u: x[:, None].at[ROWS, 0, i].max(u),
    "two counted dims": lambda x, i, u: x[None].repeat(2, 0).at[jnp.arange(2)[:, None, None], ROWS, i].min(u),
}

NOT_COUNTED = {
    "rows backwards": lambda x, i, u: x.at[ROWS[::-1], i].set(u),
    "fewer rows than there are": lambda x, i, u: x.at[ROWS[:3], i[:3]].set(u[:3]),
    "rows from the second on": lambda x, i, u: x.at[ROWS + 1, i].set(u, mode="drop"),
    "rows of the data": lambda x, i, u: x.at[i[:, :1], i].set(u),
}


def module(function):
    """A module of a function of a table, of columns and of updates."""
    types = (jax.ShapeDtypeStruct(s, I32) for s in ((5, 7), (5, 4), (5, 4)))
    return jax.jit(function).lower(*types).as_text()


def batched(text):
    """The module with its counted rows as batching dims."""
    graph = hl.read(text)
    inline_calls(graph)
    before = to_text(graph)
    batch_rows(graph)
    return before, to_text(graph)


@pytest.mark.parametrize("what", COUNTED)
def test_counted_rows(what):
    """Both versions give the same, whatever the columns are."""
    before, after = batched(module(COUNTED[what]))
    assert "batching_dims = [0" in after
    assert "batching_dims = [0" not in before
    assert are_equal(before, after, "quick", 1)


@pytest.mark.parametrize("what", NOT_COUNTED)
def test_rows_that_are_not_counted(what):
    """Rows that are no positions of their own stay indexed."""
    before, after = batched(module(NOT_COUNTED[what]))
    assert before == after


def test_small_numbers():
    """Positions that wrap around in a narrow type are not counted."""
    text = module(lambda x, i, u: jnp.zeros((200, 7), I32).at[jnp.arange(200)[:, None], i[:1]].set(u[:1]))
    assert batched(text)[0] != batched(text)[1]
    narrow = batched(text)[0].replace("200xi32", "200xi8").replace("200x1xi32", "200x1xi8")
    [iota] = [line for line in narrow.splitlines() if "iota" in line and "200xi8" in line][:1]
    graph = hl.read(f"func.func @main() -> tensor<200xi8> {{\n{iota}\n return {iota.split()[0]} : tensor<200xi8>\n}}")
    assert batched_rows.counted_along(graph.main.body.terminator.operand(0)) is None


@pytest.mark.parametrize("what", ["offset", "another dim"])
def test_a_wrong_row_is_seen(what, monkeypatch):
    """Rows that are taken as counted where they are not give other results."""
    right = batched_rows.counted_along
    monkeypatch.setattr(batched_rows, "counted_along", lambda value: 0 if value.shape[1] == 1 else right(value))
    case = {"offset": "rows from the second on", "another dim": "rows backwards"}[what]
    before, after = batched(module(NOT_COUNTED[case]))
    assert before != after
    assert not are_equal(before, after, "quick", 1)


def test_sorted_back_in_tiles():
    """A mask that is sorted back is cut by rows, and a tile goes through its own updates alone."""

    def keep(x):
        order = jnp.argsort(x, axis=-1)
        mask = jnp.cumsum(jnp.take_along_axis(x, order, -1), -1) < 10
        rows = jnp.arange(x.shape[0])[:, None]
        return jnp.where(jnp.zeros(x.shape, bool).at[rows, order].set(mask), x, -1).max(-1)

    graph = hl.read(jax.jit(keep).lower(jax.ShapeDtypeStruct((32, 64), I32)).as_text())
    prepare(graph)
    plan = choices(Dataflow(graph, default_subset_rules()), 2048)[0].plan
    seed = plan.labels.core.seed
    assert (plan.labels.dims[seed], plan.labels.steps, len(plan.loops)) == (0, 32, 1)
    scatter = next(node for node in plan.loops[0].nodes if node.name == "stablehlo.scatter")
    assert plan.labels.axes[scatter].operands == (0, 0, 0)
    assert np.prod(scatter.operand(1).static_shape) == 32 * 64
