"""Gathers and scatters of one position in tiles: right beside the slices that they read from, which XLA merges."""

import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.all_rules import default_subset_rules
from hlo_lower.ops.axes.indexing import gather_piece
from hlo_lower.tile.emit.emit_loops import Sizes, emit
from hlo_lower.tile.emit.phases import Loop, LoopPlan, cut
from hlo_lower.tile.find.labels import Core, Labels, core_of, label
from hlo_lower.tile.prepare.slice_hoisting import pull_up
from hlo_lower.verify.run import Executable

ROWS, SIZE, MODE = 4, 8, jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS


def picked_and_written(x, start, at, value):
    """Of some columns one element of each row is read, and one is added to."""
    part = jax.lax.dynamic_slice_p.bind(x, 0, start, slice_sizes=(ROWS, SIZE))
    read = jax.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    write = jax.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    added = jax.lax.scatter_add(part, at[:, None], value, write, mode=MODE)
    return added, jax.lax.gather(part, at[:, None], read, (1, 1), mode=MODE)


def expected(x, start, at, value):
    """The same in NumPy."""
    part = x[:, (first := np.clip(start, 0, x.shape[1] - SIZE)) : first + SIZE].copy()
    read = part[np.arange(ROWS), np.clip(at, 0, SIZE - 1)]
    for row in range(ROWS):
        if 0 <= at[row] < SIZE:
            part[row, at[row]] += value[row]
    return part, read


def row_by_row(text, rules):
    """The module with all that it computes in one loop over rows."""
    graph = hl.read(text)
    program = Dataflow(graph, rules)
    seed = program.maker[program.terminator.operand(0)].result()
    plan = cut(program, label(program, core_of(program, seed, 1), 0))
    assert [len(loop.nodes) >= 3 for loop in plan.loops] == [True]
    emit(program, plan, Sizes(1, 1 << 20))
    return to_text(graph)


CALLS = [(5, (0, 7, 3, 2)), (5, (-1, 8, -8, 20)), (-3, (9, -2, 0, 7)), (99, (8, 100, -100, 7))]
"""Where the slice begins, and the position in each row of it: within, at the edges and beyond."""


@pytest.mark.parametrize("is_clamped", [True, False])
def test_one_position_of_each_row_of_a_slice(is_clamped):
    """Row by row the slice, the gather and the scatter give what NumPy gives; without the clamp the gather does not."""
    rules = default_subset_rules().copy()
    if not is_clamped:
        assert rules.by_piece.pop("stablehlo.gather") is gather_piece
    x, value = np.arange(80, dtype="i4").reshape(ROWS, 20), np.array([100, 200, 300, 400], "i4")
    given = [(x, np.int32(start), np.array(at, "i4"), value) for start, at in CALLS]
    text = jax.jit(picked_and_written).lower(*given[0]).as_text()
    run = Executable(row_by_row(text, rules), "default").run
    found = [[np.array_equal(*pair) for pair in zip(run(list(g)), expected(*g), strict=True)] for g in given]
    assert [right[0] for right in found] == [True] * len(CALLS)
    assert all(right[1] for right in found) is is_clamped


@pytest.mark.parametrize("is_unrolled", [True, False])
def test_one_position_after_the_other(is_unrolled):
    """Positions that go one by one into a slice of the module's own: what the first tile writes to is that slice."""

    def f(x, start, at, value):
        part = jax.lax.dynamic_slice_p.bind(x, start, slice_sizes=(16,))
        numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
        return jax.lax.scatter_add(part, at[:, None], value, numbers, mode=MODE)

    x, value = np.arange(100, dtype="i4"), np.array([1000, 2000, 3000, 4000], "i4")
    calls = [(start, at) for start in (-5, 10, 99) for at in ((0, 15, 3, -1), (16, -20, 40, 5), (60, -1, 16, 99))]
    given = [(x, np.int32(start), np.array(at, "i4"), value) for start, at in calls]
    graph = hl.read(jax.jit(f).lower(*given[0]).as_text())
    program = Dataflow(graph, default_subset_rules())
    node = next(node for node in program.nodes if node.name == "stablehlo.scatter")
    labels = Labels(Core(node.result(), 1, frozenset(), frozenset()), steps=len(value))
    labels.axes[node] = next(axis for axis in program.axes(node).axes if axis.combine)
    emit(program, LoopPlan(labels, (Loop([node], [], [node]),)), Sizes(1, 1 << 20, is_unrolled))
    run = Executable(to_text(graph), "default").run
    for arguments, (start, at) in zip(given, calls, strict=True):
        part = x[(first := np.clip(start, 0, 84)) : first + 16].copy()
        for place, added in zip(at, value, strict=True):
            part[place : place + 1] += added * (0 <= place < 16)
        assert np.array_equal(part, run(list(arguments))[0])


def test_one_position_of_a_slice_pulled_up():
    """A gather of one position that comes to read a slice is clamped before it is pulled there."""

    def f(x, start, at):
        large = jax.lax.dynamic_slice_p.bind(x, start, slice_sizes=(64,)) * 3 + 1
        return jax.lax.gather(large, at[None], jax.lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode=MODE)

    x = np.arange(100, dtype="i4")
    graph = hl.read(jax.jit(f).lower(x, np.int32(0), np.int32(0)).as_text())
    assert pull_up(graph, least=1)
    run = Executable(to_text(graph), "default").run
    for at in (-5, 0, 63, 64, 90):
        assert run([x, np.int32(10), np.int32(at)])[0] == (10 + np.clip(at, 0, 63)) * 3 + 1
