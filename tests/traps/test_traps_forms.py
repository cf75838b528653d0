"""Traps of the form: dimension numbers in any order, batching dims, whole overwrites, overlapping windows."""

import numpy as np
import pytest
from one_scatter import DTYPES, INT_MIN, POLICIES, Case, f32, i32, numbers, region, run, tile, windows

import hlo_lower as hl
from hlo_lower.verify.judges.definitions import scatter

EMPTY_VECTOR = Case((3,), (4, 0), (4,), numbers(inserted=[0]), "i32", combiner="subtract")

IN_FRONT = Case((3, 4), (2, 5), (5,), numbers(inserted=[0, 1], to_operand=[0, 1], ivd=0))

IN_THE_MIDDLE = Case((3, 4), (2, 2, 3), (2, 3), numbers(inserted=[0, 1], to_operand=[0, 1], ivd=1))

IMPLICIT = Case((4,), (2, 3), (2, 3), numbers(inserted=[0], to_operand=[0], ivd=2), combiner="add")

NO_RANK = Case((4, 2), (), (2,), numbers(window=[0], inserted=[0], to_operand=[0], ivd=0))

WINDOWS_AT_0 = Case((3, 2), (4, 0), (4, 2, 1), numbers(window=[1, 2]), "i32", combiner="subtract")
SCALAR = Case((), (3, 0), (3,), numbers(), "i32", combiner="subtract")


@POLICIES
@pytest.mark.parametrize(
    "case",
    [EMPTY_VECTOR, WINDOWS_AT_0, IN_FRONT, IN_THE_MIDDLE, IMPLICIT, NO_RANK, SCALAR],
    ids=["K 0", "K 0, windows", "in front", "middle", "implicit", "rank 0 indices", "rank 0 operand"],
)
def test_trap_11_index_vector(case, oob):
    """The index vector may lie anywhere, be implicit or be empty; with K = 0 all updates land at 0 and compound."""
    rng = np.random.default_rng(0)
    case.check(*(rng.integers(-1, 5, case.indices) for _ in range(4)), oob=oob)


@POLICIES
@pytest.mark.parametrize(
    "case",
    [
        Case((4, 2, 3), (2, 3, 1), (2, 2, 3, 3), numbers([1, 3], [0], to_operand=[0], ivd=2)),
        Case((4, 5), (3, 2), (3, 2), numbers([1], [0], to_operand=[1, 0])),
        Case((3, 5), (4, 1), (4,), numbers(inserted=[0, 1], to_operand=[1])),
        Case((5, 4, 3), (2, 2), (2, 3, 2), numbers([1, 2], [1], to_operand=[2, 0]), combiner="add"),
    ],
    ids=["interleaved", "permuted", "pinned", "not the inserted ones"],
)
def test_trap_12_dimension_numbers(case, oob):
    """Scatter dims may interleave window dims, operand dims may be permuted, and an inserted dim without index is 0."""
    rng = np.random.default_rng(0)
    case.check(*(rng.integers(-1, 5, case.indices) for _ in range(4)), oob=oob)


@POLICIES
@pytest.mark.parametrize("ivd", [0, 1, 2, 3])
def test_trap_13_batching(ivd, oob):
    """A batch coordinate is the position's; batching dims may be permuted and lie behind the index vector."""
    where = [2, 3, 4]  # the positions: batch of operand dim 2, batch of operand dim 0, n
    batch = [0, 1]
    indices = (*where[:ivd], 1, *where[ivd:])
    in_indices = [b + 1 if b >= ivd else b for b in batch]
    dims = numbers([], [1], [0, 2], [in_indices[1], in_indices[0]], [1], ivd)
    rng = np.random.default_rng(0)
    case = Case((3, 5, 2), indices, (2, 3, 4), dims, combiner="subtract")
    case.check(*(rng.integers(-1, 6, indices) for _ in range(3)), oob=oob)


FULL = """
module {{
  func.func @main(%op: tensor<4x{t}>, %up: tensor<4x{t}>) -> tensor<4x{w}> {{
    %i = stablehlo.constant dense<{start}> : tensor<1xi32>
    %r = "stablehlo.scatter"(%op, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}}> ({{
      ^bb0(%c: tensor<{w}>, %u: tensor<{w}>):
        {body}
    }}) : (tensor<4x{t}>, tensor<1xi32>, tensor<4x{t}>) -> tensor<4x{w}>
    return %r : tensor<4x{w}>
  }}
}}"""


@pytest.mark.parametrize(
    ("t", "w", "start", "combiner", "rule", "expected"),
    [
        ("i32", "i32", 0, "assign", "scatter_to_updates", [10, 20, 30, 40]),
        ("i32", "i32", 1, "assign", "scatter_to_operand", [1, 2, 3, 4]),
        ("i32", "i32", 0, "add", "scatter_to_elementwise", [11, 22, 33, 44]),
        ("i8", "i32", 0, "assign", "scatter_to_updates", [10, 20, 30, 40]),
        ("i8", "i32", -1, "assign", "scatter_to_operand", [1, 2, 3, 4]),
    ],
)
def test_trap_36_full_overwrite(t, w, start, combiner, rule, expected):
    """A window as large as the operand replaces it only at start 0 and with an assignment; types are converted."""
    text = FULL.format(t=t, w=w, start=start, body=region(combiner, w))
    assert hl.lower(text).records[0].rule.removeprefix("scatter_to_") == rule.removeprefix("scatter_to_")
    dtype = DTYPES[t]
    [result] = run(text, np.asarray([1, 2, 3, 4], dtype), np.asarray([10, 20, 30, 40], dtype))
    assert (result.dtype, result.tolist()) == (np.dtype(DTYPES[w]), expected)


def test_trap_36_runtime_start():
    """A window as large as the operand at a runtime start is written at 0 only."""
    tile(4, 4).check([0], [1], [-1], [INT_MIN])
    tile(4, 4).check([0], [1], [-1], [INT_MIN], oob="spec")


@POLICIES
@pytest.mark.parametrize("combiner", ["assign", "add"])
def test_trap_36_two_whole_windows(combiner, oob):
    """Windows as large as the operand replace it in their order, and only those that start at 0."""
    case = windows(2, 4, 4, combiner=combiner)
    case.check([0, 0], [0, 1], [-1, 0], [1, -1], oob=oob)
    for start in ([0, 0], [0, 1], [-1, 0], [1, -1]):
        text = case.with_indices(start)
        operand, updates = f32([1, 2, 3, 4]), f32([[10, 20, 30, 40], [100, 200, 300, 400]])
        expected = scatter([operand], i32(start)[:, None], [updates], case.dims, case.combine, [operand.dtype], oob=oob)
        assert run(text, operand, updates, oob=oob)[0].tolist() == expected[0].tolist()


@POLICIES
def test_trap_45_overlapping_windows(oob):
    """Where window dims precede scatter dims, a whole window is still written before the next position's."""
    dims = numbers(window=[0], to_operand=[0])
    case = Case((6,), (3, 1), (3, 3), dims)
    case.check([0, 1, 2], [2, 1, 0], [3, 3, 1], [-1, 0, 4], oob=oob)
    assign_and_subtract = Case((6,), (3, 1), (3, 3), dims, "i32", combiner="subtract")
    assign_and_subtract.check([0, 1, 2], [2, 2, -1], oob=oob)
