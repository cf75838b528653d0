"""Rows that a scatter or a gather counts become a batching dim, bit for bit; rows that are not counted stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_graphs import are_equal
from small_tiles import prepared

import hlo_lower as hl
from hlo_lower.ir.writer import to_text
from hlo_lower.tile.find.choose import choices
from hlo_lower.tile.prepare import batched_rows
from hlo_lower.tile.prepare.normalize import inline_calls

I32 = jnp.int32
ROWS = jnp.arange(5)[:, None]
"""A constant, written out in a module."""

COUNTED = {
    "rows written, counted in the module": lambda x, i, u: x.at[jax.lax.iota(I32, 5)[:, None], i].set(u),
    "rows added to, some out of bounds": lambda x, i, u: x.at[ROWS, i * 3 - 4].add(u, mode="drop"),
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


def batched(function):
    """The module of a function of a table, of columns and of updates; and with its counted rows as batching dims."""
    types = (jax.ShapeDtypeStruct(s, I32) for s in ((5, 7), (5, 4), (5, 4)))
    graph = hl.read(jax.jit(function).lower(*types).as_text())
    inline_calls(graph)
    before = to_text(graph)
    batched_rows.batch_rows(graph)
    return before, to_text(graph)


@pytest.mark.parametrize("what", COUNTED)
def test_counted_rows(what):
    before, after = batched(COUNTED[what])
    assert "batching_dims = [0" in after
    assert "batching_dims = [0" not in before
    assert are_equal(before, after, "quick", 1)


def test_rows_that_are_not_counted_stay():
    for what, function in NOT_COUNTED.items():
        before, after = batched(function)
        assert before == after, what


def test_positions_that_wrap_around_in_a_narrow_type_are_not_counted():
    before, after = batched(lambda x, i, u: jnp.zeros((200, 7), I32).at[jnp.arange(200)[:, None], i[:1]].set(u[:1]))
    assert before != after
    lines = before.replace("200xi32", "200xi8").replace("200x1xi32", "200x1xi8").splitlines()
    iota = next(line for line in lines if "iota" in line and "200xi8" in line)
    graph = hl.read(f"func.func @main() -> tensor<200xi8> {{\n{iota}\n return {iota.split()[0]} : tensor<200xi8>\n}}")
    assert batched_rows.counted_along(graph, graph.main.body.terminator.operand(0)) is None


@pytest.mark.parametrize("what", ["rows from the second on", "rows backwards"])
def test_a_wrong_row_is_seen(what, monkeypatch):
    """Rows that are taken as counted where they are not give other results."""
    wrong = iter([0])  # of the first column, which holds the rows
    monkeypatch.setattr(batched_rows, "counted_along", lambda graph, value: next(wrong, None))
    before, after = batched(NOT_COUNTED[what])
    assert before != after
    assert not are_equal(before, after, "quick", 1)


def test_sorted_back_in_tiles():
    """A mask that is sorted back is cut by rows, and a tile goes through its own updates alone."""

    def keep(x):
        order = jnp.argsort(x, axis=-1)
        mask = jnp.cumsum(jnp.take_along_axis(x, order, -1), -1) < 10
        rows = jnp.arange(x.shape[0])[:, None]
        return jnp.where(jnp.zeros(x.shape, bool).at[rows, order].set(mask), x, -1).max(-1)

    _, program = prepared(jax.jit(keep).lower(jax.ShapeDtypeStruct((32, 64), I32)).as_text())
    plan = choices(program, 2048)[0].plan
    assert (plan.labels.dims[plan.labels.core.seed], plan.labels.steps, len(plan.loops)) == (0, 32, 1)
    scatter = next(node for node in plan.loops[0].nodes if node.name == "stablehlo.scatter")
    assert plan.labels.axes[scatter].operands == (0, 0, 0)
    assert np.prod(scatter.operand(1).static_shape) == 32 * 64
