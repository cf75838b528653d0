"""Traps of duplicates: what flags claim, and who wins."""

import numpy as np
import pytest
from one_scatter import POLICIES, VARIADIC, Case, f32, i32, numbers, points, rows, run, windows

import hlo_lower as hl
from hlo_lower.verify.run import Executable


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_14_unique_claimed(combiner, oob):
    """The result does not rest on unique_indices: a false claim, and slots of -1, do not change it."""
    claimed = rows(4, 5, 2, combiner=combiner, flags="unique_indices = true,")
    claimed.check([-1, -1, -1, 3], [2, 2, 2, 2], [0, 4, 0, 5], oob=oob)
    assert hl.classify(hl.read(claimed.text()))[0].unique == "claimed"


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_14_slots_out_of_bounds_keep_a_claim_true(combiner, oob):
    """Many slots of -1 break no claim of unique indices: with trust_flags, too, they alone are dropped."""
    claimed = rows(5, 6, 2, combiner=combiner, flags="unique_indices = true,")
    lowered = hl.lower(claimed.text(), oob=oob, trust_flags=True)
    executable = Executable(lowered.text, "exact")
    updates = f32(np.arange(1, 11).reshape(5, 2))
    for slots in ([-1, 3, -1, -1, 0], [-1] * 5, [6, 5, 6, 6, -1]):
        expected = np.zeros((6, 2), np.float32)
        for slot, row in zip(slots, updates, strict=True):
            if 0 <= slot < 6:
                expected[slot] = row
        assert (
            executable.run([np.zeros((6, 2), np.float32), i32(slots)[:, None], updates])[0].tolist()
            == expected.tolist()
        )


def test_trap_15_sorted_claimed():
    """The result does not rest on indices_are_sorted."""
    case = Case((4, 5), (3, 2), (3,), numbers(inserted=[0, 1], to_operand=[1, 0]), flags="indices_are_sorted = true,")
    case.check([[0, 3], [1, 2], [0, 3]], [[4, 0], [3, 1], [0, 2]])


def test_trap_15_no_claim_is_passed_on():
    """What is built from sorted indices claims no order of its own: dims may have been permuted."""
    dims = numbers(inserted=[0, 1], to_operand=[1, 0])
    case = Case((40, 50), (30, 2), (30,), dims, flags="indices_are_sorted = true, unique_indices = true,")
    rng = np.random.default_rng(0)
    for text in (case.text(), case.with_indices(rng.integers(0, 40, (30, 2)))):
        lowered = hl.lower(text).text
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
    case, updates = points(5, 4), f32(np.arange(5))
    expected = f32([-1] * 4)
    for index, update in zip(indices, updates, strict=True):
        if 0 <= index < 4:
            expected[index] = update
    assert run(case.with_indices(indices), f32([-1] * 4), updates, oob=oob)[0].tolist() == expected.tolist()


def test_trap_17_one_winner_for_all_operands():
    """Operands of a variadic assignment take the same update."""
    text = VARIADIC.format(s="f32", t="i32", body="stablehlo.return %ua, %ub : tensor<f32>, tensor<i32>")
    order = np.arange(6)
    a, b = run(text, f32(-np.ones(4)), i32(-np.ones(4)), i32([[1], [3], [1], [1], [3], [9]]), f32(order), i32(order))
    assert [a.tolist(), b.tolist()] == [[-1, 3, -1, 4], [-1, 3, -1, 4]]
