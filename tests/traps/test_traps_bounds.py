"""Traps of bounds: what lies outside, in which type it is found out, and what is dropped."""

import re

import jax
import numpy as np
import pytest
from one_scatter import (
    DTYPES,
    INT_MAX,
    INT_MIN,
    POLICIES,
    Case,
    f32,
    i32,
    numbers,
    ops_of_size,
    points,
    rows,
    run,
    tile,
    windows,
)

import hlo_lower as hl
from hlo_lower.verify.run import Executable


@pytest.mark.parametrize(("oob", "written"), [("xla", False), ("spec", True)])
def test_trap_01_policy(oob, written):
    """XLA's policy drops an overhanging window whole, the specification's only what hangs over."""
    dims = numbers(window=[1, 2], inserted=[0], to_operand=[0, 1])
    text = Case((3, 3, 2), (1, 2), (1, 2, 2), dims).text()
    operand, updates = f32(np.zeros((3, 3, 2))), f32([[[1, 2], [3, 4]]])
    expected = operand.copy()
    if written:
        expected[0, 2] = [1, 2]
    [result] = run(text, operand, i32([[0, 2]]), updates, oob=oob)
    assert result.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("case", "agree"),
    [
        (points(2, 4, combiner="add"), True),
        (rows(2, 4, 3), True),
        (Case((4, 3), (2,), (1, 3), numbers(window=[0, 1], to_operand=[0, 1], ivd=0)), False),
        (windows(2, 2, 5, combiner="add"), False),
    ],
    ids=["points", "whole rows", "a row that is shifted", "windows"],
)
def test_trap_01_where_the_policies_agree(case, agree):
    """The two policies are the same where the window has extent 1 in every scattered dim, and only there."""
    starts = np.stack(np.meshgrid(*[np.arange(-2, 6)] * int(np.prod(case.indices))), -1).reshape(-1, *case.indices)
    executables = [case.lowered(oob) for oob in ("xla", "spec")]
    operand, updates = f32(np.zeros(case.operand)), f32(np.ones(case.updates))
    results = [[e.run([operand, i32(start), updates])[0].tolist() for start in starts] for e in executables]
    assert (results[0] == results[1]) is agree
    for oob in ("xla", "spec"):
        case.check(*starts[::5], oob=oob)


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_02_no_clamping(combiner, oob):
    """A window out of bounds is dropped, not moved to the border as dynamic_update_slice would."""
    tile(2, 5, combiner=combiner).check([-3], [-2], [-1], [0], [3], [4], [5], [7], oob=oob)


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_02_the_update_is_guarded_not_the_buffer(combiner, oob):
    """What keeps a window out of bounds from being written is as large as the window: nothing but the write itself
    gives a tensor of the buffer's size."""
    lowered = hl.lower(tile(4, 5000, combiner=combiner).text(), oob=oob)
    large = [n for n in ops_of_size(lowered.text, 5000) if n not in ("func.func", "func.return")]
    assert large == ["stablehlo.dynamic_update_slice"]


@pytest.mark.parametrize("combiner", ["assign", "subtract"])
def test_trap_03_elements_of_one_window(combiner):
    """Under oob=spec one window keeps just the elements inside at every start, wider than half the operand or not."""
    tile(4, 5, combiner=combiner).check(*([s] for s in (*range(-6, 7), INT_MIN, INT_MAX)), oob="spec")


@POLICIES
def test_trap_04_rows_are_dropped_one_by_one(oob):
    """Of a run of rows those in range are written, also where the run starts below 0 or ends behind the operand."""
    runs = [np.asarray([s, s + 1, s + 2]) for s in (-4, -2, -1, 0, 2, 3, 4, 5)]
    rows(3, 5, 2).check(*runs, [INT_MIN, INT_MAX, 0], oob=oob)


@POLICIES
def test_trap_05_negative_indices(oob):
    """A negative index is out of bounds: it does not count from the end."""
    points(3, 4).check([-1, -4, 1], [-5, 3, -2], oob=oob)


def test_trap_05_front_ends_wrap_by_themselves():
    """JAX wraps a negative index of `.at` before the scatter, and does not wrap one of a segment sum."""

    def both(x, i, updates):
        return x.at[i].set(updates), jax.ops.segment_sum(updates, i, num_segments=4)

    source = jax.jit(both).lower(f32(np.zeros(4)), i32([0, 0]), f32([0, 0]))
    executable = Executable(hl.lower(source).text, "exact")
    written, summed = executable.run([f32([1, 2, 3, 4]), i32([-1, 2]), f32([10, 20])])
    assert (written.tolist(), summed.tolist()) == ([1, 2, 20, 10], [0, 0, 20, 0])


@POLICIES
@pytest.mark.parametrize("index", ["ui8", "ui32", "ui64"])
def test_trap_06_unsigned_indices(index, oob):
    """The largest unsigned index is far out of bounds, not -1, for points and for a window."""
    largest = np.iinfo(DTYPES[index]).max
    values = np.asarray([[largest], [largest - 1], [3], [4]], DTYPES[index])
    tile(2, 5, index=index).check(*values, oob=oob)
    points(2, 4, index=index, combiner="add").check(values[[0, 2]], values[[2, 2]], oob=oob)
    tile(5, 5, index=index).check([largest], [0], [1], oob=oob)  # D - W is 0


@POLICIES
@pytest.mark.parametrize(("index", "far"), [("i8", 127), ("ui8", 255), ("i16", 299)])
def test_trap_07_narrow_index_types(index, far, oob):
    """An operand dim larger than the index type can say is bounded in a wider one (openxla/xla#48718)."""
    tile(3, 300, index=index).check([0], [far], [far - 1], [np.iinfo(DTYPES[index]).min], oob=oob)
    points(2, 300, index=index).check([far, 5], [far, far], oob=oob)


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_07_more_positions_than_the_index_type_can_count(combiner, oob):
    """Batch coordinates and positions beyond 127 are counted in a wider type than the indices' i8."""
    dims = numbers(inserted=[1], batching=[0], indices_batching=[0], to_operand=[1])
    batched = Case((300, 5), (300, 1), (300,), dims, index="i8", combiner=combiner)
    rng = np.random.default_rng(0)
    batched.check(*(rng.integers(-2, 7, batched.indices) for _ in range(2)), oob=oob)
    points(200, 9, index="i8", combiner=combiner).check(rng.integers(-2, 11, 200), oob=oob)


@POLICIES
def test_trap_08_each_component_is_checked(oob):
    """An index with a component out of bounds is dropped even where its linearised position is inside."""
    dims = numbers(inserted=[0, 1], to_operand=[0, 1])
    wrong = [[[0, 4], [1, -1]], [[-1, 5], [2, 3]], [[1, 2], [3, -4]], [[2**30, 4], [2**30, 0]]]
    Case((3, 4), (2, 2), (2,), dims).check(*wrong, oob=oob)


def test_trap_08_positions_of_a_large_operand_need_64_bits():
    """Where an operand has more elements than i32 can number, a flat position is an i64 or is not computed."""
    dims = numbers(inserted=[0, 1], to_operand=[0, 1])
    case = Case((65536, 65536), (2, 2), (2,), dims, "i8")
    lowered = hl.lower(case.with_indices([[65535, 65535], [65535, 65533]])).text
    assert ops_of_size(lowered, 65536 * 65536)
    flat = set(re.findall(r"dense<(42949672\d\d)> : tensor<(\w+)>", lowered))
    assert flat in (set(), {("4294967295", "i64"), ("4294967293", "i64")})
    assert bool(flat) == ("4294967296xi8" in lowered)
    assert "stablehlo.pad" not in lowered  # two elements are no pass over 4 GiB
    assert "stablehlo.multiply" not in hl.lower(case.text()).text


@POLICIES
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_trap_09_index_overflow(index, oob):
    """A start next to the end of its type is out of bounds; start plus window does not wrap."""
    info = np.iinfo(DTYPES[index])
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    tile(3, 5, index=index).check(*([e] for e in ends), oob=oob)
    windows(2, 3, 5, index=index, combiner="add").check([ends[0], 1], [2, ends[3]], [ends[2], 4], oob=oob)


@POLICIES
@pytest.mark.parametrize(
    "case",
    [
        Case((3, 2), (1, 1), (1, 0), numbers(window=[1], inserted=[0], to_operand=[0])),
        points(0, 3),
        rows(2, 3, 0),
        Case((3, 0), (2, 1), (2, 0), numbers(window=[1], inserted=[0], to_operand=[0])),
        tile(0, 3, combiner="add"),
    ],
    ids=["window 0", "N 0", "rows of 0", "operand 0", "tile 0"],
)
def test_trap_10_nothing_to_write(case, oob):
    """A window without elements, no window, and an operand without elements leave the operand."""
    case.check(np.zeros(case.indices), np.ones(case.indices), oob=oob)
