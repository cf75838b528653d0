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


def run(body, results, window=W, guarded=(0,), masked=()):
    """Run what body builds from the operand %o of 6, the tile %t and the scalar start %s, at every offset."""
    names = ", ".join(f"%r{k}" for k in range(len(results)))
    lines = f"{names} = custom_call @x() : () -> ({', '.join(results)})\nreturn {names}"
    graph = read(module(f"%o: {D}xi32, %t: {window}xi32, %s: i32", lines))
    operand, tile, start = graph.main.body.arguments
    stand_in = graph.main.body.terminator.operand(0).node
    with mlir.active(graph.context):
        values = body(Builder.before(stand_in), operand, tile, DynamicTile((D,), (start,), (window,), guarded, masked))
        for old, new in zip(stand_in.results, values, strict=True):
            old.raw.replace_all_uses_with(new.raw)
        stand_in.raw.erase()
    executable = Executable(to_text(graph), "exact")
    return {
        s: executable.run([np.arange(D, dtype=np.int32), np.arange(10, 10 + window, dtype=np.int32), np.int32(s)])
        for s in OFFSETS
    }


def test_is_inside():
    """A tile is inside exactly where 0 <= start <= D - W; elsewhere the nearest one that is inside takes its place."""

    def body(build, o, t, tile):
        placed, inside = tile.inside(build)
        return [inside, placed.starts[0]]

    found = run(body, ["i1", "i32"])
    assert {s: bool(r[0]) for s, r in found.items()} == {s: 0 <= s <= D - W for s in OFFSETS}
    assert {s: int(r[1]) for s, r in found.items()} == {s: min(max(s, 0), D - W) for s in OFFSETS}


def test_reading_and_writing_back_changes_nothing():
    """Out of bounds too, what is read is read where it would be written."""
    found = run(lambda build, o, t, tile: [tile.yield_to(build, o, tile.materialize(build, o))], [f"{D}xi32"])
    assert all(r[0].tolist() == list(range(D)) for r in found.values())


def write_shifted(build, o, t, tile):
    """Write the covered elements of the shifted tile."""
    shifted = tile.shifted(build)
    old = shifted.tile.materialize(build, o)
    return [shifted.tile.yield_to(build, o, build.select(shifted.is_covered(build), shifted.align(build, t), old))]


@pytest.mark.parametrize("window", [1, W, D - 1, D, D + 1, 3 * D])
def test_a_shifted_tile_covers_what_the_tile_covers(window):
    """Writing the covered elements of the shifted tile writes exactly the elements that lie inside, however long the
    tile is (traps 3 and 4)."""
    found = run(write_shifted, [f"{D}xi32"], window, guarded=(), masked=(0,))
    for s, [result] in found.items():
        expected = [10 + p - s if s <= p < s + window else p for p in range(D)]
        assert result.tolist() == expected, s


def test_a_tile_without_a_masked_dim_is_not_shifted():
    """Where no element is dropped by itself, the shifted tile is the tile, all of it covered; a guarded dim is checked,
    a masked one is not."""
    checks = {}

    def body(build, o, t, tile):
        shifted = tile.shifted(build)
        checks["guarded"] = (
            shifted.tile.starts == tile.starts,
            shifted.is_covered(build),
            shifted.align(build, t) == t,
        )
        masked = DynamicTile((D,), tile.starts, (W,), (), (0,))
        checks["masked"] = (masked.inside(build)[1], masked.shifted(build).is_covered(build) is None)
        return [tile.inside(build)[1]]

    run(body, ["i1"])
    assert checks == {"guarded": (True, None, True), "masked": (None, False)}


@pytest.mark.parametrize("kind", Subset)
def test_a_kind_is_in_the_constraints_of_the_larger_kinds(kind):
    """A point and full are tiles; the others are only themselves."""
    named = {"Tile": Tile, "Point": Point, "Full": Full, "Empty": Empty, "Rows": Rows, "BatchedTile": BatchedTile}
    taking = {name for name, kinds in named.items() if kind in kinds}
    larger = {Subset.POINT: {"Point", "Tile"}, Subset.FULL: {"Full", "Tile"}}
    listed = {Subset.TILE, Subset.EMPTY, Subset.ROWS, Subset.BATCHED_TILE}
    assert taking == larger.get(kind, {kind.value} if kind in listed else set())


def test_parts_are_readable_and_have_the_classifiers_kinds():
    """A part prints as its runs, and its kind is a word of the classifier."""
    whole = TensorSubset.full((2048, 32000))
    assert str(whole) == "[:, :] of 2048x32000"
    tile = whole.along(0, StridedRange(Offset(0, "i", 1), 128))
    assert str(tile) == "[i:+128, :] of 2048x32000"
    assert str(whole.along(1, StridedRange(Offset(1, "i", 8), 8, 2))) == "[:, 8*i+1:+8:2] of 2048x32000"
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
