"""Loops over the steps of an axis: every count, size and tail, as a while and unrolled."""

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.loops import TiledLoop
from hlo_lower.ops.axes.cut import Steps
from hlo_lower.ops.axes.parts import Bindings, materialize, yield_to
from hlo_lower.verify.run import Executable

COUNT = 7
LOOPS = [
    TiledLoop(COUNT, size, tail, is_unrolled)
    for size in range(1, COUNT + 1)
    for tail in ("smaller", "clamped")
    for is_unrolled in (False, True)
]


def squared_and_summed(build, loop, x, zeros, zero):
    """The loop that writes the squares of x and sums x, tile by tile."""

    def body(inner, start, size, carried, given):
        bound, part = Bindings({"i": start}), Steps("i", COUNT, size).part((COUNT,), 0)
        tile = materialize(inner, given[0], part, bound)
        squares = yield_to(inner, carried[0], part, inner.elementwise("multiply", tile, tile), bound)
        total = inner.op("stablehlo.reduce", [tile, given[1]], [zero.raw.type], {"dimensions": mlir.dense_i64([0])}, 1)
        inner.region(total, 0, [zero.raw.type] * 2, lambda deep, pair: [deep.elementwise("add", *pair)])
        return [squares, inner.elementwise("add", carried[1], total.result())]

    return loop.emit(build, [zeros, zero], [x, zero], body)


@pytest.fixture(scope="module")
def results():
    """What each of the loops gives for 0 to 6, and how often a `while` was built."""
    graph = hl.read(module(f"%x: {COUNT}xi32", "return %x"))
    terminator = graph.main.body.terminator
    with mlir.active(graph.context):
        build, x = Builder.before(terminator), graph.main.body.argument(0)
        zeros, zero = build.constant(0, (COUNT,), "i32"), build.constant(0, (), "i32")
        found = [value for loop in LOOPS for value in squared_and_summed(build, loop, x, zeros, zero)]
        build.op("func.return", found, [])
        terminator.raw.erase()
        mlir.set_signature(graph.main.node.raw)
    text = to_text(graph)
    values = Executable(text, "exact").run([np.arange(COUNT, dtype=np.int32)])
    return text.count("stablehlo.while"), list(zip(values[::2], values[1::2], strict=True))


def test_every_tile_is_written_and_counted(results):
    """The tiles of a loop cover the axis, whatever is left over; accumulators are right where the last tile is smaller,
    and a clamped one counts steps twice, unless it divides. A `while` is built where there are two tiles of the full
    size, and it is not unrolled."""
    squares = np.arange(COUNT, dtype=np.int32) ** 2
    for loop, (written, total) in zip(LOOPS, results[1], strict=True):
        assert np.array_equal(squares, written)
        twice = loop.tail == "clamped" and COUNT % loop.size
        assert bool(twice) is (int(total) != sum(range(COUNT))) or loop.size == COUNT
    assert sum(loop.trips > 1 and not loop.is_unrolled for loop in LOOPS) == results[0]


def test_tails():
    """7 steps by 3: two tiles and one step, or three tiles of which the last is moved back."""
    smaller, clamped = TiledLoop(7, 3), TiledLoop(7, 3, "clamped")
    assert (smaller.trips, smaller.rest, clamped.trips, clamped.rest) == (2, 1, 3, 0)
