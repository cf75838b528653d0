"""Traps of where windows lie: out of bounds, dimension numbers in any order, whole overwrites, duplicates."""

import re

import jax
import numpy as np
import pytest
from one_scatter import (
    INT_MAX,
    INT_MIN,
    POLICIES,
    Case,
    array,
    compiled,
    dtype_of,
    f32,
    i32,
    numbers,
    ops_of_size,
    points,
    rows,
    run,
    tile,
    variadic,
    windows,
)

import hlo_lower as hl
from hlo_lower.verify.run import Executable

ASSIGNED_OR_ADDED = pytest.mark.parametrize("combiner", ["assign", "add"])
PAIRS = numbers(inserted=[0, 1], to=[0, 1])


@pytest.mark.parametrize(("oob", "kept"), [("xla", [0, 0]), ("spec", [1, 2])])
def test_trap_01_policy(oob, kept):
    """XLA's policy drops an overhanging window whole, the specification's only what hangs over."""
    text = Case((3, 3, 2), (1, 2), (1, 2, 2), numbers(window=[1, 2], inserted=[0], to=[0, 1])).text()
    [result] = run(text, f32(np.zeros((3, 3, 2))), i32([[0, 2]]), f32([[[1, 2], [3, 4]]]), oob=oob)
    assert (result[0, 2].tolist(), np.count_nonzero(result)) == (kept, np.count_nonzero(kept))


@pytest.mark.parametrize(
    ("case", "agree"),
    [
        (points(2, 4, combiner="add"), True),
        (rows(2, 4, 3), True),
        (Case((4, 3), (2,), (1, 3), numbers(window=[0, 1], to=[0, 1], ivd=0)), False),
        (windows(2, 2, 5, combiner="add"), False),
    ],
    ids=["points", "whole rows", "a row that is shifted", "windows"],
)
def test_trap_01_where_the_policies_agree(case, agree):
    """The two policies are the same where the window has extent 1 in every scattered dim, and only there."""
    starts = np.stack(np.meshgrid(*[np.arange(-2, 6)] * int(np.prod(case.indices))), -1).reshape(-1, *case.indices)
    operand, updates = f32(np.zeros(case.operand)), f32(np.ones(case.updates))
    results = [
        [executable.run([operand, i32(start), updates])[0].tolist() for start in starts]
        for executable in map(case.lowered, ("xla", "spec"))
    ]
    assert (results[0] == results[1]) is agree
    for oob in ("xla", "spec"):
        case.check(*starts[::5], oob=oob)


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_02_no_clamping(combiner, oob):
    """A window out of bounds is dropped, not moved to the border as dynamic_update_slice would; and nothing but the
    write itself gives a tensor of the buffer's size: the update is guarded."""
    tile(2, 5, combiner=combiner).check([-3], [-2], [-1], [0], [3], [4], [5], [7], oob=oob)
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
    found = Executable(hl.lower(source).text, "exact").run([f32([1, 2, 3, 4]), i32([-1, 2]), f32([10, 20])])
    assert [v.tolist() for v in found] == [[1, 2, 20, 10], [0, 0, 20, 0]]


@POLICIES
@pytest.mark.parametrize("index", ["ui8", "ui32", "ui64"])
def test_trap_06_unsigned_indices(index, oob):
    """The largest unsigned index is far out of bounds, not -1, for points and for a window."""
    largest = np.iinfo(dtype_of(index)).max
    values = array([[largest], [largest - 1], [3], [4]], index)
    tile(2, 5, index=index).check(*values, oob=oob)
    points(2, 4, index=index, combiner="add").check(values[[0, 2]], values[[2, 2]], oob=oob)
    tile(5, 5, index=index).check([largest], [0], [1], oob=oob)  # D - W is 0


@POLICIES
@pytest.mark.parametrize(("index", "far"), [("i8", 127), ("ui8", 255), ("i16", 299)])
def test_trap_07_narrow_index_types(index, far, oob):
    """An operand dim larger than the index type can say is bounded in a wider one (openxla/xla#48718)."""
    tile(3, 300, index=index).check([0], [far], [far - 1], [np.iinfo(dtype_of(index)).min], oob=oob)
    points(2, 300, index=index).check([far, 5], [far, far], oob=oob)


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_07_more_positions_than_the_index_type_can_count(combiner, oob):
    """Batch coordinates and positions beyond 127 are counted in a wider type than the indices' i8."""
    dims = numbers(inserted=[1], batching=[0], indices_batching=[0], to=[1])
    batched = Case((300, 5), (300, 1), (300,), dims, index="i8", combiner=combiner)
    rng = np.random.default_rng(0)
    batched.check(*(rng.integers(-2, 7, batched.indices) for _ in range(2)), oob=oob)
    points(200, 9, index="i8", combiner=combiner).check(rng.integers(-2, 11, 200), oob=oob)


@POLICIES
def test_trap_08_each_component_is_checked(oob):
    """An index with a component out of bounds is dropped even where its linearised position is inside."""
    wrong = [[[0, 4], [1, -1]], [[-1, 5], [2, 3]], [[1, 2], [3, -4]], [[2**30, 4], [2**30, 0]]]
    Case((3, 4), (2, 2), (2,), PAIRS).check(*wrong, oob=oob)


def test_trap_08_positions_of_a_large_operand_need_64_bits():
    """Where an operand has more elements than i32 can number, a flat position is an i64 or is not computed."""
    case = Case((65536, 65536), (2, 2), (2,), PAIRS, "i8")
    lowered = hl.lower(case.text([[65535, 65535], [65535, 65533]])).text
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
    info = np.iinfo(dtype_of(index))
    ends = [info.min, info.min + 1, info.max - 1, info.max]
    tile(3, 5, index=index).check(*([e] for e in ends), oob=oob)
    windows(2, 3, 5, index=index, combiner="add").check([ends[0], 1], [2, ends[3]], [ends[2], 4], oob=oob)


ONE_ROW = numbers(window=[1], inserted=[0], to=[0])


@POLICIES
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case((3, 2), (1, 1), (1, 0), ONE_ROW), id="window 0"),
        pytest.param(points(0, 3), id="N 0"),
        pytest.param(rows(2, 3, 0), id="rows of 0"),
        pytest.param(Case((3, 0), (2, 1), (2, 0), ONE_ROW), id="operand 0"),
        pytest.param(tile(0, 3, combiner="add"), id="tile 0"),
    ],
)
def test_trap_10_nothing_to_write(case, oob):
    """A window without elements, no window, and an operand without elements leave the operand."""
    case.check(np.zeros(case.indices), np.ones(case.indices), oob=oob)


# --- dimension numbers ---

SUBTRACT = {"element": "i32", "combiner": "subtract"}
TRAP_11 = {
    "K 0": Case((3,), (4, 0), (4,), numbers(inserted=[0]), **SUBTRACT),
    "K 0, windows": Case((3, 2), (4, 0), (4, 2, 1), numbers(window=[1, 2]), **SUBTRACT),
    "in front": Case((3, 4), (2, 5), (5,), numbers(inserted=[0, 1], to=[0, 1], ivd=0)),
    "middle": Case((3, 4), (2, 2, 3), (2, 3), PAIRS),
    "implicit": Case((4,), (2, 3), (2, 3), numbers(inserted=[0], to=[0], ivd=2), combiner="add"),
    "rank 0 indices": Case((4, 2), (), (2,), numbers(window=[0], inserted=[0], to=[0], ivd=0)),
    "rank 0 operand": Case((), (3, 0), (3,), numbers(), **SUBTRACT),
}
TRAP_12 = {
    "interleaved": Case((4, 2, 3), (2, 3, 1), (2, 2, 3, 3), numbers([1, 3], [0], to=[0], ivd=2)),
    "permuted": Case((4, 5), (3, 2), (3, 2), numbers([1], [0], to=[1, 0])),
    "pinned": Case((3, 5), (4, 1), (4,), numbers(inserted=[0, 1], to=[1])),
    "not the inserted ones": Case((5, 4, 3), (2, 2), (2, 3, 2), numbers([1, 2], [1], to=[2, 0]), combiner="add"),
}


def check_drawn(case, oob, count=4, most=5):
    """Check random indices in [-1, most)."""
    rng = np.random.default_rng(0)
    case.check(*(rng.integers(-1, most, case.indices) for _ in range(count)), oob=oob)


@POLICIES
@pytest.mark.parametrize("name", TRAP_11)
def test_trap_11_index_vector(name, oob):
    """The index vector may lie anywhere, be implicit or be empty; with K = 0 all updates land at 0 and compound."""
    check_drawn(TRAP_11[name], oob)


@POLICIES
@pytest.mark.parametrize("name", TRAP_12)
def test_trap_12_dimension_numbers(name, oob):
    """Scatter dims may interleave window dims, operand dims may be permuted, and an inserted dim without index is 0."""
    check_drawn(TRAP_12[name], oob)


@POLICIES
@pytest.mark.parametrize("ivd", [0, 1, 2, 3])
def test_trap_13_batching(ivd, oob):
    """A batch coordinate is the position's; batching dims may be permuted and lie behind the index vector."""
    positions = [2, 3, 4]  # the batch of operand dim 2, the batch of operand dim 0, n
    first, second = (b + 1 if b >= ivd else b for b in (0, 1))
    dims = numbers([], [1], [0, 2], [second, first], [1], ivd)
    indices = (*positions[:ivd], 1, *positions[ivd:])
    check_drawn(Case((3, 5, 2), indices, (2, 3, 4), dims, combiner="subtract"), oob, 3, 6)


# --- duplicates ---

UNIQUE, SORTED = ", unique_indices=true", ", indices_are_sorted=true"


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_14_unique_claimed(combiner, oob):
    """The result does not rest on unique_indices: a false claim, and slots of -1, do not change it."""
    claimed = rows(4, 5, 2, combiner=combiner, flags=UNIQUE)
    claimed.check([-1, -1, -1, 3], [2, 2, 2, 2], [0, 4, 0, 5], oob=oob)
    assert hl.classify(hl.read(claimed.text()))[0].unique == "claimed"


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_14_slots_out_of_bounds_keep_a_claim_true(combiner, oob):
    """Many slots of -1 break no claim of unique indices: with trust_flags, too, they alone are dropped."""
    text = rows(5, 6, 2, combiner=combiner, flags=UNIQUE).text()
    executable = Executable(hl.lower(text, oob=oob, trust_flags=True).text, "exact")
    updates = f32(np.arange(1, 11).reshape(5, 2))
    for slots in ([-1, 3, -1, -1, 0], [-1] * 5, [6, 5, 6, 6, -1]):
        expected = np.zeros((6, 2), np.float32)
        for slot, row in zip(slots, updates, strict=True):
            if 0 <= slot < 6:
                expected[slot] = row
        [found] = executable.run([np.zeros((6, 2), np.float32), i32(slots)[:, None], updates])
        assert found.tolist() == expected.tolist()


def test_trap_15_sorted_claimed():
    """The result does not rest on indices_are_sorted, and what is built from sorted indices claims no order of its own:
    dims may have been permuted."""
    dims = numbers(inserted=[0, 1], to=[1, 0])
    case = Case((4, 5), (3, 2), (3,), dims, flags=SORTED)
    case.check([[0, 3], [1, 2], [0, 3]], [[4, 0], [3, 1], [0, 2]])
    case = Case((40, 50), (30, 2), (30,), dims, flags=SORTED + UNIQUE)
    for at in (None, np.random.default_rng(0).integers(0, 40, (30, 2))):
        lowered = hl.lower(case.text(at)).text
        assert "indices_are_sorted = true" not in lowered
        assert "unique_indices = true" not in lowered


@POLICIES
def test_trap_16_the_last_assignment_wins(oob):
    """Of several assignments to one element the last in row-major order of positions stays."""
    points(5, 3).check([1, 1, 1, 1, 1], [0, 2, 0, 2, 0], oob=oob)
    windows(4, 3, 6).check([1, 2, 0, 1], [3, 3, 2, 4], oob=oob)


@POLICIES
@pytest.mark.parametrize("indices", [[1, 1, 1, 1, 1], [0, 2, 0, 2, 0], [4, 3, 3, -1, 0]])
def test_trap_16_the_last_constant_wins(indices, oob):
    """The same where the indices are constant and the duplicates are settled at conversion time."""
    expected = [-1] * 4
    for number, index in enumerate(indices):
        if 0 <= index < 4:
            expected[index] = number
    [found] = run(points(5, 4).text(indices), f32([-1] * 4), f32(np.arange(5)), oob=oob)
    assert found.tolist() == expected


def test_trap_17_one_winner_for_all_operands():
    """Operands of a variadic assignment take the same update."""
    order = np.arange(6)
    given = f32(-np.ones(4)), i32(-np.ones(4)), i32([[1], [3], [1], [1], [3], [9]]), f32(order), i32(order)
    found = run(variadic("f32", "i32", "return %ua, %ub"), *given)
    assert [v.tolist() for v in found] == [[-1, 3, -1, 4]] * 2


# --- whole and overlapping windows ---


@pytest.mark.parametrize(
    ("element", "wide", "start", "combiner", "rule", "expected"),
    [
        ("i32", "i32", 0, "assign", "updates", [10, 20, 30, 40]),
        ("i32", "i32", 1, "assign", "operand", [1, 2, 3, 4]),
        ("i32", "i32", 0, "add", "elementwise", [11, 22, 33, 44]),
        ("i8", "i32", 0, "assign", "updates", [10, 20, 30, 40]),
        ("i8", "i32", -1, "assign", "operand", [1, 2, 3, 4]),
    ],
)
def test_trap_36_full_overwrite(element, wide, start, combiner, rule, expected):
    """A window as large as the operand replaces it only at start 0 and with an assignment; types are converted."""
    text = tile(4, 4, element=element, region_element=wide, combiner=combiner).text(start * np.ones(1, int))
    assert hl.lower(text).records[0].rule.removeprefix("scatter_to_") == rule
    [result] = run(text, array([1, 2, 3, 4], element), array([10, 20, 30, 40], element))
    assert (result.dtype, result.tolist()) == (np.dtype(dtype_of(wide)), expected)


@POLICIES
def test_trap_36_runtime_start(oob):
    """A window as large as the operand at a runtime start is written at 0 only."""
    tile(4, 4).check([0], [1], [-1], [INT_MIN], oob=oob)


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_36_two_whole_windows(combiner, oob):
    """Windows as large as the operand replace it in their order, and only those that start at 0."""
    case = windows(2, 4, 4, combiner=combiner)
    starts = [[0, 0], [0, 1], [-1, 0], [1, -1]]
    case.check(*starts, oob=oob)
    operand, updates = f32([1, 2, 3, 4]), f32([[10, 20, 30, 40], [100, 200, 300, 400]])
    for start in starts:
        [expected] = case.expected(operand, i32(start)[:, None], updates, oob)
        assert compiled(case.text(start), oob).run([operand, updates])[0].tolist() == expected.tolist()


@POLICIES
def test_trap_45_overlapping_windows(oob):
    """Where window dims precede scatter dims, a whole window is still written before the next position's."""
    dims = numbers(window=[0], to=[0])
    Case((6,), (3, 1), (3, 3), dims).check([0, 1, 2], [2, 1, 0], [3, 3, 1], [-1, 0, 4], oob=oob)
    Case((6,), (3, 1), (3, 3), dims, **SUBTRACT).check([0, 1, 2], [2, 2, -1], oob=oob)
