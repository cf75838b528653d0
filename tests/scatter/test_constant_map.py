"""Constant windows solved at conversion time, against a loop over the rows of all windows."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from placed import placed
from untyped_mlir import of

import hlo_lower as hl
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.constant_map import Piece, row_major_boxes, solve
from hlo_lower.facts.values.site import Site


def solved(starts, operand, window, order=(0,), *, batching=(), **options):
    """The map of windows at constant starts [N..., K]."""
    starts, names = np.asarray(starts), ["%x", "%y", "%z"][: len(order)]
    shape = starts.shape[:-1]
    lines = (f"{n} = constant {starts[..., k].tolist()} : {of(shape, 'i32')}" for k, n in enumerate(names))
    text = placed("\n".join(lines), names, order, shape, operand, window=window, inserted=[], batching=batching)
    graph = hl.read(text)
    scatter = canonicalize(graph.scatters[0])
    interval = IndexAnalysis(graph).of(Site(scatter.indices))
    return solve(scatter, interval, **{"drops_windows": True, "most_pieces": 16, **options})


def last_writers(starts, operand, window, order=(0,), *, batching=(), drops_windows=True):
    """For each row that is written, (the row of the updates that is written last, how often it is written)."""
    starts = np.asarray(starts)
    sizes = [1 if d in batching else w for d, w in enumerate(window)]
    touched = [d for d, (w, n) in enumerate(zip(window, operand, strict=True)) if w != n]
    writers, row = {}, -1
    for position in np.ndindex(*starts.shape[:-1]):
        start = {d: position[d] for d in batching} | dict(zip(order, starts[position].tolist(), strict=True))
        start = [start.get(d, 0) for d in range(len(operand))]
        dropped = drops_windows and not all(0 <= s <= n - w for s, w, n in zip(start, sizes, operand, strict=True))
        for offset in np.ndindex(*(sizes[d] for d in touched)):
            row += 1
            place = [start[d] + k for d, k in zip(touched, offset, strict=True)]
            inside = all(0 <= p < operand[d] for p, d in zip(place, touched, strict=True))
            if inside and not dropped:
                target = int(np.ravel_multi_index(place, [operand[d] for d in touched]))
                writers[target] = (row, writers.get(target, (0, 0))[1] + 1)
    return writers


def rows_of(pieces):
    """The rows that pieces write: target to source."""
    return {
        piece.target + piece.stride * k: piece.source + (piece.size - 1 - k if piece.is_reversed else k)
        for piece in pieces
        for k in range(piece.size)
    }


@st.composite
def placements(draw):
    """Constant starts of windows in an operand of rank 1 to 3, some out of bounds, some equal, some evenly spaced."""
    rank = draw(st.integers(1, 3))
    operand = tuple(draw(st.integers(2, 7)) for _ in range(rank))
    order = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
    window = [draw(st.integers(1, n)) if draw(st.booleans()) else n for n in operand]
    for d in order:
        window[d] = draw(st.integers(1, max(1, operand[d] - 1)))
    count = draw(st.integers(1, 6))
    columns = []
    for d in order:
        if draw(st.booleans()):
            step, first = draw(st.sampled_from([1, -1, 2, -2, 0])), draw(st.integers(-2, operand[d]))
            columns.append([first + step * k for k in range(count)])
        else:
            columns.append([draw(st.integers(-2, operand[d] + 1)) for _ in range(count)])
    return np.array(columns).T, operand, tuple(window), order


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(placements(), st.booleans())
def test_the_map_is_what_a_loop_over_all_rows_finds(placement, drops_windows):
    """Targets, last writers, uniqueness and pieces are those of a loop, under both policies."""
    found = solved(*placement, drops_windows=drops_windows)
    writers = last_writers(*placement, drops_windows=drops_windows)
    last = {target: row for target, (row, _) in writers.items()}
    assert found is not None
    assert dict(zip(found.targets.tolist(), found.sources.tolist(), strict=True)) == last
    assert found.targets.tolist() == sorted(writers)
    assert found.is_unique == all(count == 1 for _, count in writers.values())
    if found.pieces is not None:
        assert rows_of(found.pieces) == last


@pytest.mark.parametrize(
    ("rows", "pieces"),
    [
        ([4, 3, 2], (Piece(0, 2, 3, is_reversed=True),)),
        ([1, 3, 5, 7], (Piece(0, 1, 4, 2),)),
        ([7, 5, 3, 1], (Piece(0, 1, 4, 2, is_reversed=True),)),
        ([5, 6, 0, 1], (Piece(2, 0, 2), Piece(0, 5, 2))),
        ([3, 3, 3], (Piece(2, 3, 1),)),
        ([-1, 0, 1, 12], (Piece(1, 0, 2),)),
        ([-1, 12], ()),
    ],
)
def test_pieces(rows, pieces):
    """Neighbours make a piece, backwards too; rows at an even distance make one; duplicates leave the last."""
    assert solved(np.array(rows)[:, None], (12, 3), (1, 3)).pieces == pieces


def test_how_many_pieces_there_are():
    """Beyond the number asked for there are none, and the table of sources still says everything. Rows at an even
    distance are one piece up to a size of the operand for each, and single rows beyond it."""
    rows = np.array([0, 2, 3, 9, 6])[:, None]
    assert len(solved(rows, (12, 3), (1, 3), most_pieces=4).pieces) == 4
    found = solved(rows, (12, 3), (1, 3), most_pieces=3)
    assert (found.pieces, found.targets.tolist()) == (None, sorted(last_writers(rows, (12, 3), (1, 3))))
    for dense, strides in ((None, [100]), (100, [100]), (99, [1, 1, 1])):
        found = solved(np.arange(3)[:, None] * 100, (300,), (1,), dense_per_row=dense)
        assert [piece.stride for piece in found.pieces] == strides


def test_special_windows():
    """Rows of explicit batching dims follow from the position. A window as large as its dim that reaches out is not
    solved under oob=spec, where its elements would move within the row; under oob=xla it is dropped."""
    given = np.array([[4], [1], [2]]), (3, 5), (1, 1), (1,)
    targets = solved(*given, batching=(0,)).targets.tolist()
    assert targets == sorted(last_writers(*given, batching=(0,))) == [4, 6, 12]
    overhanging = np.array([[1, 2]]), (6, 4), (2, 4), (0, 1)
    assert solved(*overhanging, drops_windows=False) is None
    assert solved(*overhanging, drops_windows=True).targets.tolist() == []


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_boxes_cover_a_run_in_order(shape, data):
    """A run of row-major positions is cut into boxes that hold its positions, in order, and no others."""
    total = int(np.prod(shape))
    first = data.draw(st.integers(0, total - 1))
    size = data.draw(st.integers(0, total - first))
    numbers, held = np.arange(total).reshape(shape), []
    for starts, extents in row_major_boxes(first, size, shape):
        part = numbers[tuple(slice(s, s + e) for s, e in zip(starts, extents, strict=True))]
        assert part.shape == tuple(extents)
        held.extend(part.reshape(-1).tolist())
    assert held == list(range(first, first + size))
