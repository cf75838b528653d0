"""Parts of tensors: what they are called, and how tiles are read, written, checked and shifted at every offset."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.parts import (
    Bindings,
    DynamicTile,
    Offset,
    StridedRange,
    TensorSubset,
    accumulate,
    materialize,
    yield_to,
)
from hlo_lower.ops.subset import BatchedTile, Empty, Full, Point, Rows, Subset, Tile
from hlo_lower.verify.run import Executable

D, W = 6, 3
OFFSETS = [-(2**31), -D - 1, -W, -2, -1, 0, 1, D - W, D - W + 1, D - 1, D, D + 1, 2**31 - 1]


def run(body, window=W, guarded=(0,), masked=()):
    """Run what body builds from the operand %o of 6, the tile %t and the scalar start %s, at every offset."""
    graph = read(module(f"%o: {D}xi32, %t: {window}xi32, %s: i32", "return %o"))
    operand, tile, start = graph.main.body.arguments
    terminator = graph.main.body.terminator
    with mlir.active(graph.context):
        build = Builder.before(terminator)
        values = body(build, operand, tile, DynamicTile((D,), (start,), (window,), guarded, masked))
        build.op("func.return", values, [])
        terminator.raw.erase()
        mlir.set_signature(graph.main.node.raw)
    executable, given = Executable(to_text(graph), "exact"), np.arange(10, 10 + window, dtype=np.int32)
    return {s: executable.run([np.arange(D, dtype=np.int32), given, np.int32(s)]) for s in OFFSETS}


def test_inside_and_back():
    """A tile is inside exactly where 0 <= start <= D - W; elsewhere the nearest one that is inside takes its place. Out
    of bounds too, what is read is read where it would be written: written back it changes nothing."""

    def body(build, o, t, tile):
        placed, inside = tile.inside(build)
        return [inside, placed.starts[0], tile.yield_to(build, o, tile.materialize(build, o))]

    for s, (inside, start, same) in run(body).items():
        assert (bool(inside), int(start)) == (0 <= s <= D - W, min(max(s, 0), D - W))
        assert same.tolist() == list(range(D))


def write_shifted(build, o, t, tile):
    """Write the covered elements of the shifted tile."""
    shifted = tile.shift(build)
    old = shifted.tile.materialize(build, o)
    return [shifted.tile.yield_to(build, o, build.select(shifted.is_covered(build), shifted.align(build, t), old))]


@pytest.mark.parametrize("window", [1, W, D - 1, D, D + 1, 3 * D])
def test_a_shifted_tile_covers_what_the_tile_covers(window):
    """Writing the covered elements of the shifted tile writes exactly the elements that lie inside, however long the
    tile is (traps 3 and 4)."""
    for s, [result] in run(write_shifted, window, guarded=(), masked=(0,)).items():
        assert result.tolist() == [10 + p - s if s <= p < s + window else p for p in range(D)], s


def test_a_tile_without_a_masked_dim_is_not_shifted():
    """Where no element is dropped by itself, the shifted tile is the tile, all of it covered; a guarded dim is checked,
    a masked one is not."""
    checks = []

    def body(build, o, t, tile):
        shifted, masked = tile.shift(build), DynamicTile((D,), tile.starts, (W,), (), (0,))
        checks.extend((shifted.tile.starts == tile.starts, shifted.is_covered(build), shifted.align(build, t) == t))
        checks.extend((masked.inside(build)[1], masked.shift(build).is_covered(build) is None))
        return [tile.inside(build)[1]]

    run(body)
    assert checks == [True, None, True, None, False]


def test_kinds_and_names():
    """A kind is in the constraints of the larger ones: a point and full are tiles; the others are only themselves. A
    part prints as its runs, and its kind is a word of the classifier."""
    named = {"Tile": Tile, "Point": Point, "Full": Full, "Empty": Empty, "Rows": Rows, "BatchedTile": BatchedTile}
    larger = {Subset.POINT: {"Point", "Tile"}, Subset.FULL: {"Full", "Tile"}}
    for kind in Subset:
        taking = {name for name, kinds in named.items() if kind in kinds}
        assert taking == larger.get(kind, {kind.value} & named.keys())
    whole = TensorSubset.full((2048, 32000))
    tile = whole.along(0, StridedRange(Offset(0, "i", 1), 128))
    strided = whole.along(1, StridedRange(Offset(1, "i", 8), 8, 2))
    assert [*map(str, (whole, tile))] == ["[:, :] of 2048x32000", "[i:+128, :] of 2048x32000"]
    assert str(strided) == "[:, 8*i+1:+8:2] of 2048x32000"
    point, empty = (TensorSubset((3,), (StridedRange(Offset(1), size),)) for size in (1, 0))
    kinds = [part.kind for part in (whole, tile, point, empty)]
    assert kinds == [Subset.FULL, Subset.TILE, Subset.POINT, Subset.EMPTY]


def test_parts_are_read_and_written():
    """slice and dynamic_slice read; dynamic_update_slice writes what it should, and adds it to what was there."""
    graph = read(module("%x: 6x4xi32, %i: i32, %t: 2x4xi32", "return %x"))
    x, i, t = graph.main.body.arguments
    whole, terminator = TensorSubset.full((6, 4)), graph.main.body.terminator
    tile, fixed = whole.along(0, StridedRange(Offset(1, "i", 2), 2)), whole.along(1, StridedRange(Offset(1), 2, 2))
    with mlir.active(graph.context):
        build, bound = Builder.before(terminator), Bindings({"i": i})
        found = [materialize(build, x, part, bound) for part in (tile, fixed)]
        found += [yield_to(build, x, tile, t, bound), accumulate(build, x, tile, t, bound, "add")]
        build.op("func.return", found, [])
        terminator.raw.erase()
        mlir.set_signature(graph.main.node.raw)
    x = np.arange(24, dtype=np.int32).reshape(6, 4)
    results = Executable(to_text(graph), "exact").run([x, np.int32(1), np.full((2, 4), 7, np.int32)])
    written, added = x.copy(), x.copy()
    written[3:5] = 7
    added[3:5] += 7
    expected = [x[3:5], x[:, 1:4:2], written, added]
    assert all(np.array_equal(e, a) for e, a in zip(expected, results, strict=True))
