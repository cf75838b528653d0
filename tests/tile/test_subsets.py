"""The algebra of subsets against NumPy: composition, equality, and the image of a tile under random maps."""

import numpy as np
import pytest

from hlo_lower.ops.axes.parts import Filter, Offset
from hlo_lower.ops.subset import Subset
from hlo_lower.tile.subsets import Moved, Picked, Run, compose, kind_of, positions, sources, tile

ITERATORS = {"i": 2}


def drawn_subset(rng, length, indices, depth=2, most=4):
    """A random subset of a dim of so many positions."""
    if depth and rng.random() < 0.3:
        name = f"index{len(indices)}"
        indices[name] = rng.integers(0, min(length, 6), int(rng.integers(6, 9)))
        part = drawn_subset(rng, len(indices[name]), indices, depth - 1, most)
        stride = int(rng.choice((1, -1)))
        first = int(rng.integers(0, length - 5)) if stride == 1 else int(rng.integers(5, length))
        return Filter(name, part, Offset(first), stride)
    size = int(rng.integers(1, most + 1))
    stride = int(rng.choice((1, 1, 2, -1, -2))) if (size - 1) * 2 < length else 1
    size = min(size, (length - 1) // abs(stride) + 1)
    reach = (size - 1) * abs(stride)
    low = int(rng.integers(0, length - reach))
    start = low if stride > 0 else low + reach
    scale = int(rng.integers(-1, 2))
    return tile(Offset(start - scale * ITERATORS["i"], "i" if scale else "", scale), size, stride)


def drawn_move(rng):
    """A slice, reverse, pad, roll or concatenation, of random sizes."""
    how, n = rng.integers(4), int(rng.integers(6, 12))
    if how == 0:
        stride = int(rng.integers(1, 3))
        return Moved((n - 2) // stride, (Run(0, 0, 1, (n - 2) // stride, stride=stride),))
    if how == 1:
        return Moved(n, (Run(0, 0, n - 1, n, stride=-1),))
    if how == 2:
        low, high, between = (int(k) for k in rng.integers(0, 4, 3))
        return Moved(low + (n - 1) * (between + 1) + 1 + high, (Run(0, low, 0, n, between + 1),))
    sizes = [int(k) for k in rng.integers(1, 6, 3)]
    runs = (Run(k, sum(sizes[:k]), 0, size) for k, size in enumerate(sizes))
    return Moved(sum(sizes), tuple(runs))


def test_a_subset_of_a_subset():
    """Composition is indexing: tiles and filters of tiles and filters, at runtime offsets, strides of either sign."""
    rng, seen = np.random.default_rng(0), set()
    for _ in range(1500):
        indices = {}
        outer = drawn_subset(rng, 16, indices, most=12)
        found = positions(outer, ITERATORS, indices)
        if len(found) < 6:
            outer, found = tile(15, 16, -1), np.arange(16)[::-1]
        inner = drawn_subset(rng, len(found), indices)
        both = compose(outer, inner)
        seen.add((type(outer), type(inner)))
        assert np.array_equal(positions(both, ITERATORS, indices), found[positions(inner, ITERATORS, indices)])
        assert both.size == inner.size
    assert len(seen) == 4


def test_the_image_of_a_tile():
    """What a tile reads through a map is what its positions read, one by one, filling left out; a tile across two
    stretches says where it is to be cut."""
    rng, cut, spaced, filled = np.random.default_rng(1), 0, 0, 0
    for _ in range(3000):
        move = drawn_move(rng)
        size = int(rng.integers(1, min(5, move.length) + 1))
        stride = int(rng.choice((1, -1)))
        start = int(rng.integers(0, move.length - size + 1)) + (size - 1) * (stride < 0)
        part = tile(start, size, stride)
        wanted = [sources(move, {})[p] for p in positions(part, {}, {})]
        first = move.cut(part)
        if first is not None:
            cut += 1
            part, wanted = tile(start, first, stride), wanted[:first]
            assert move.cut(part) is None
        spacing = move.runs[0].spacing
        image = move.image(tile(Offset(start, "i", spacing), part.size, stride))
        found = [(-1, -1)] * part.size
        if image.operand is None:
            filled += 1
        else:
            for k, position in enumerate(positions(image.part, {"i": 0}, {})):
                found[image.lead + image.spacing * k] = (image.operand, int(position))
        spaced += image.spacing > 1
        assert found == wanted, (move, part)
    assert min(cut, spaced, filled) > 100


def test_what_a_filter_reads_and_what_is_the_same():
    """A gather of a reverse of a gather is one filter; equal positions are equal values; what has no image says so."""
    ids, rows = np.array([3, 0, 3, 1]), np.array([5, 2, 4, 0, 1, 3])
    inner = Picked("ids").image(tile(1, 3)).part
    middle = Moved(6, (Run(0, 0, 5, 6, stride=-1),)).image(inner).part
    outer = Picked("rows").image(middle).part
    assert str(outer) == "rows[5 + -1*ids[1:+3]]"
    assert positions(outer, {}, {"ids": ids, "rows": rows}).tolist() == rows[5 - ids[1:4]].tolist()
    roll = Moved(6, (Run(0, 0, 2, 4), Run(0, 4, 0, 2)))
    back = Moved(6, (Run(0, 0, 4, 2), Run(0, 2, 0, 4)))
    there = roll.image(tile(Offset(0, "i", 1), 2)).part
    assert back.image(there).part == tile(Offset(0, "i", 1), 2)
    assert there != tile(Offset(0, "i", 1), 2)
    kinds = [kind_of(part, 6) for part in (tile(0, 6), tile(1, 2), tile(3, 1), inner, tile(0, 0))]
    assert kinds == [Subset.FULL, Subset.TILE, Subset.POINT, Subset.FILTER, Subset.EMPTY]
    with pytest.raises(ValueError, match="a filter of pieces"):
        roll.cut(inner)
    with pytest.raises(ValueError, match="filling at other places"):
        Moved(9, (Run(0, 0, 0, 5, 2),)).image(tile(Offset(0, "i", 1), 2))
