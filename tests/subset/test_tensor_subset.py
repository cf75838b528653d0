"""Parts of tensors as values: what they are called, and how they are read and written."""

import numpy as np
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.writer import to_text
from hlo_lower.ops.axes.parts import Bindings, Offset, StridedRange, TensorSubset, accumulate, materialize, yield_to
from hlo_lower.ops.subset import Subset
from hlo_lower.verify.run import Executable


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


MODULE = """func.func public @main(%x: tensor<6x4xi32>, %i: tensor<i32>, %t: tensor<2x4xi32>) -> tensor<6x4xi32> {
    return %x : tensor<6x4xi32> }"""


def test_parts_are_read_and_written():
    """slice and dynamic_slice read; dynamic_update_slice writes what it should, and adds it to what was there."""
    graph = hl.read(module("%x: 6x4xi32, %i: i32, %t: 2x4xi32", "return %x"))
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
