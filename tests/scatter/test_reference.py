"""The NumPy scatter by hand, where the specification gives the answer; tests/fuzz compares it with XLA and judges."""

import numpy as np
import pytest

from hlo_lower.verify.judges.definitions import ScatterNumbers, _Placed, count_hits, scatter

F32 = (np.dtype(np.float32),)
I32 = np.dtype(np.int32)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to=(), ivd=1):
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to), ivd)


def assign(currents, updates):
    return updates


def add(currents, updates):
    return [c + u for c, u in zip(currents, updates, strict=True)]


ROWS = numbers(window=[1], inserted=[0], to=[0])
POINTS = numbers(inserted=[0], to=[0])
TILE = numbers(window=[0], to=[0], ivd=0)
I64 = np.iinfo(np.int64)
EMPTY = np.zeros((3, 0), np.int32)
CASES = {
    "of two rows at one index the later one stays": (
        [[0, 0], [0, 0]], [[0], [0]], [[1, 2], [5, 6]], ROWS, assign, [[5, 6], [0, 0]],
    ),
    "two updates to one element are both added": ([0, 0, 4], [[1], [1]], [1, 2], POINTS, add, [0, 3, 4]),
    "K = 0: three updates to one place compound (trap 11)": (
        [0, 0], EMPTY, [1, 2, 3], numbers(inserted=[0]), add, [6, 0],
    ),
    "a window of extent 0 writes nothing (trap 10)": ([[1, 2]], [[0]], np.zeros((1, 0)), ROWS, assign, [[1, 2]]),
    "a rank-0 operand compounds N updates (trap 11)": (4, EMPTY, [1, 2, 3], numbers(), add, 10),
    "ivd = rank of the indices means vectors of one component": (
        [0, 0, 0, 0], [1, 3], [7, 9], POINTS, assign, [0, 7, 0, 9],
    ),
    "an index vector in front, its components permuted (traps 11, 12)": (
        np.zeros((3, 2)), [[0, 1], [1, 2]], [7, 9], numbers(inserted=[0, 1], to=[1, 0], ivd=0), assign,
        [[0, 0], [7, 0], [0, 9]],
    ),
    # two windows of three at 0 and 1: updates[w, n]
    "where window dims come first, a whole window is written before the next position (trap 45)": (
        np.zeros(4), [[0], [1]], [[1, 4], [2, 5], [3, 6]], numbers(window=[0], to=[0]), assign, [1, 4, 5, 6],
    ),
    # a batch coordinate is the position's
    **{
        f"batching dims count without the index vector at {ivd} (trap 13)": (
            np.zeros((2, 3)), np.moveaxis(np.asarray([[[2], [0]], [[1], [1]]]), 2, ivd), [[5, 6], [7, 8]],
            numbers([], [1], [0], [int(ivd == 0)], [1], ivd), add, [[6, 0, 5], [0, 15, 0]],
        )
        for ivd in (0, 1, 2)
    },
    # a negative index does not wrap, and the extremes of i64 do not overflow (traps 5, 9)
    **{
        f"an index of {index} is dropped": ([1, 2, 3], np.asarray([[index]]), [9], POINTS, assign, [1, 2, 3])
        for index in (-1, 3, I64.min, I64.max)
    },
    **{
        f"the largest {dtype.__name__} is far out, not -1 (trap 6)": (
            [1, 2, 3], np.asarray([np.iinfo(dtype).max], dtype), [7, 8], TILE, assign, [1, 2, 3],
        )
        for dtype in (np.uint8, np.uint32, np.uint64)
    },
}  # fmt: skip


def result(operand, indices, updates, dims, combine, oob):
    """The one result of a scatter of int32."""
    arrays = [np.asarray(a, np.int32) for a in (operand, updates)]
    [found] = scatter([arrays[0]], np.asarray(indices), [arrays[1]], dims, combine, [I32], oob=oob)
    return found.tolist()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_the_specification_says(case):
    """The answer by hand, which is one under both policies."""
    *given, expected = case
    assert [result(*given, oob) for oob in ("xla", "spec")] == [expected, expected]


@pytest.mark.parametrize(("oob", "expected"), [("xla", [1, 2, 3]), ("spec", [1, 2, 7])])
def test_an_overhanging_window(oob, expected):
    """The policies differ in an overhanging window, and only there (trap 1)."""
    assert expected == result([1, 2, 3], [2], [7, 8], TILE, assign, oob)


def test_results_and_types_of_regions():
    """A region that returns the two current values swapped swaps them, in new arrays: no result is read after it is
    written. Operand and updates are converted to the region's type before anything is added (trap 24)."""
    operands = [np.asarray([1, 2], np.int32), np.asarray([3, 4], np.int32)]
    updates = [np.zeros(1, np.int32)] * 2
    results = scatter(operands, np.asarray([[0]]), updates, POINTS, lambda c, _: [c[1], c[0]], [I32, I32], oob="xla")
    assert [r.tolist() for r in (*results, *operands)] == [[3, 2], [1, 4], [1, 2], [3, 4]]
    operand, updates = np.asarray([100], np.int8), np.asarray([100, 100], np.int8)
    [found] = scatter([operand], np.asarray([[0], [0]]), [updates], POINTS, add, [I32], oob="xla")
    assert (np.dtype(np.int32), [300]) == (found.dtype, found.tolist())


def test_hits_are_counted():
    """Windows are counted inside, overhanging and outside, and the most written element by whole windows."""
    dims = numbers(window=[1], to=[0])
    hits = count_hits((5,), np.asarray([[0], [1], [4], [-2], [-3], [5], [2**40]]), (7, 2), dims)
    assert (hits.inside, hits.overhanging, hits.outside, hits.most) == (2, 1, 4, 2)
    # repeated windows count each time; without positions or elements nothing is hit
    assert count_hits((4,), np.asarray([[1], [1], [1]]), (3,), POINTS).most == 3
    assert count_hits((4,), np.zeros((0, 1), np.int32), (0,), POINTS).most == 0
    assert count_hits((2, 0), np.asarray([[1], [2]]), (2, 0), ROWS).most == 0


FORMS = {
    "points": ((7,), (9,), numbers(inserted=[0], to=[0]), (9, 1)),
    "rows": ((5, 3), (8, 3), ROWS, (8, 1)),
    "points of two dims, the vector in front": ((3, 4), (9,), numbers(inserted=[0, 1], to=[1, 0], ivd=0), (2, 9)),
    "blocks that begin anywhere": ((6, 4), (7, 2, 3), numbers(window=[1, 2], to=[0, 1]), (7, 2)),
    "columns of a batch": ((2, 5, 3), (2, 4, 3), numbers([2], [1], [0], [0], [1], 2), (2, 4, 1)),
    "a batch behind the vector": ((2, 5), (4, 2), numbers([], [1], [0], [1], [1], 0), (1, 4, 2)),
    "no index at all": ((4,), (3, 4), numbers(window=[1], ivd=1), (3, 0)),
}


@pytest.mark.parametrize("name", FORMS)
def test_windows_in_turns_are_windows_one_by_one(name, monkeypatch):
    """Whichever are applied at once: what each element becomes tells the order, and counts are the same."""
    shape, updates_shape, dims, indices_shape = FORMS[name]
    rng = np.random.default_rng(len(name))

    def ordered(currents, updates):
        return [c * 3 + u for c, u in zip(currents, updates, strict=True)]

    def found():
        hits = [count_hits(shape, one, updates_shape, dims) for one in drawn]
        for oob in ("xla", "spec"):
            for one in drawn:
                yield scatter([operand] * 2, one, [updates, -updates], dims, ordered, [I32, I32], oob=oob)
        yield hits

    dtypes = (np.int8, np.uint8, np.int64, np.uint64)
    drawn = [rng.integers(-2 if np.iinfo(t).min else 0, max(shape) + 2, indices_shape).astype(t) for t in dtypes * 4]
    drawn.append(np.full(indices_shape, np.iinfo(np.uint64).max, np.uint64))
    operand, updates = rng.integers(0, 9, shape), rng.integers(1, 9, updates_shape)
    at_once = list(found())
    monkeypatch.setattr(_Placed, "are_apart", False)
    one_by_one = list(found())
    assert at_once.pop() == one_by_one.pop()
    np.testing.assert_equal(at_once, one_by_one)
