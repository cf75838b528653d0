"""Parts of tensors as values, held against the sets of positions that they are."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo_lower as hl
from hlo_lower import mlir
from hlo_lower.graph import Builder, to_text
from hlo_lower.subset import Subset
from hlo_lower.subset.families import default_subset_rules
from hlo_lower.subset.materialize import Bindings, accumulate, materialize, yield_to
from hlo_lower.subset.needs import dependent, needed
from hlo_lower.subset.tensor_subset import Offset, Rows, StridedRange, TensorSubset, run
from hlo_lower.verify.run import Executable


@st.composite
def parts(draw, shape=(5, 4)):
    """A part of runs at static starts."""
    axes = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        stride = draw(st.integers(1, 3))
        axes.append(run(start, draw(st.integers(1, len(range(start, size, stride)))), stride))
    return TensorSubset(tuple(shape), tuple(axes))


def positions(part):
    """The positions of a part, in its order."""
    ranges = [range(a.start.constant, a.start.constant + a.size * a.stride, a.stride) for a in part.axes]
    return list(itertools.product(*ranges))


@settings(max_examples=100, deadline=None)
@given(parts(), parts())
def test_containment_and_disjointness_are_those_of_the_positions(one, other):
    """What is known of two parts with static starts is everything, and it is right."""
    mine, its = set(positions(one)), set(positions(other))
    assert one.contains(other) is (its <= mine)
    assert one.is_disjoint(other) is not bool(mine & its)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_part_of_a_part_is_a_part(data):
    """Composition takes the same elements as one after the other."""
    outer = data.draw(parts())
    inner = data.draw(parts(outer.sizes))
    composed = outer.of(inner)
    picked = positions(outer)
    numbers = np.arange(len(picked)).reshape(outer.sizes)
    expected = [picked[numbers[place]] for place in positions(inner)]
    assert expected == positions(composed)


def test_what_is_not_known_is_none():
    """Tiles at different iterators, and rows that data picks, may overlap or not; a tile at one iterator is itself."""
    whole = TensorSubset.full((8, 3))
    one, other = (whole.along(0, StridedRange(Offset(0, name, 2), 2)) for name in "ij")
    assert one.is_disjoint(other) is None
    assert one.contains(other) is None
    assert whole.contains(one) is True
    assert one.is_disjoint(whole.along(0, StridedRange(Offset(2, "i", 2), 2))) is True
    assert whole.along(0, Rows("ids", 4)).is_disjoint(one) is None


def test_parts_are_readable_and_have_the_classifiers_kinds():
    """A part prints as its runs, and its kind is a word of the classifier."""
    whole = TensorSubset.full((2048, 32000))
    assert str(whole) == "[:, :] of 2048x32000"
    tile = whole.along(0, StridedRange(Offset(0, "i", 1), 128))
    assert str(tile) == "[i:+128, :] of 2048x32000"
    assert (
        str(whole.along(0, Rows("ids", 4)).along(1, StridedRange(Offset(1, "i", 8), 8, 2)))
        == "[{ids}, 8*i+1:+8:2] of 2048x32000"
    )
    rows, point = whole.along(0, Rows("ids", 4)), TensorSubset((3,), (run(1, 1),))
    kinds = [part.kind for part in (whole, tile, rows, point, TensorSubset((3,), (run(0, 0),)))]
    assert kinds == [Subset.FULL, Subset.TILE, Subset.FILTER, Subset.POINT, Subset.EMPTY]


MODULE = """func.func public @main(%x: tensor<6x4xi32>, %i: tensor<i32>, %r: tensor<3x1xi32>, %u: tensor<3x4xi32>,
    %t: tensor<2x4xi32>) -> tensor<6x4xi32> { return %x : tensor<6x4xi32> }"""


def test_parts_are_read_and_written():
    """slice, dynamic_slice and gather read; dynamic_update_slice, scatter and scatter-add write what they should."""
    graph = hl.read(MODULE)
    x, i, r, u, t = graph.main.body.arguments
    whole, terminator = TensorSubset.full((6, 4)), graph.main.body.terminator
    tile, rows = whole.along(0, StridedRange(Offset(1, "i", 2), 2)), whole.along(0, Rows("r", 3))
    fixed = whole.along(1, run(1, 2, 2))
    with mlir.active(graph.context):
        build, bound = Builder.before(terminator), Bindings({"i": i}, {"r": r})
        found = [materialize(build, x, part, bound) for part in (tile, rows, fixed)]
        found += [yield_to(build, x, tile, t, bound), yield_to(build, x, rows, u, bound)]
        found += [accumulate(build, x, tile, t, bound, "add"), accumulate(build, x, rows, u, bound, "add")]
        build.op("func.return", found, [])
        terminator.raw.erase()
        mlir.set_signature(graph.main.node.raw)
    x = np.arange(24, dtype=np.int32).reshape(6, 4)
    u, t = np.arange(12, dtype=np.int32).reshape(3, 4) * 100, np.full((2, 4), 7, np.int32)
    numbers = np.array([[4], [0], [4]], np.int32)
    results = Executable(to_text(graph), "exact").run([x, np.int32(1), numbers, u, t])
    tile_written, rows_written, tile_added, rows_added = (x.copy() for _ in range(4))
    tile_written[3:5], rows_written[0], rows_written[4] = 7, u[1], u[2]
    tile_added[3:5] += 7
    np.add.at(rows_added, [4, 0, 4], u)
    expected = [x[3:5], x[[4, 0, 4]], x[:, 1:4:2], tile_written, rows_written, tile_added, rows_added]
    assert all(np.array_equal(e, a) for e, a in zip(expected, results, strict=True))


def test_operands_and_results_need_each_others_parts():
    """Rows of a product need rows of its first operand and all of the second; columns the other way round."""
    graph = hl.read(
        "func.func public @main(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {\n"
        "%c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"
        " : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>\nreturn %c : tensor<4x6xf32> }"
    )
    rules, dot = default_subset_rules(), graph.main.body.terminator.operand(0).node
    rows = TensorSubset.full((4, 6)).along(0, run(1, 2))
    assert [str(part) for part in needed(rules, dot, rows)] == ["[1:+2, :] of 4x5", "[:, :] of 5x6"]
    columns = TensorSubset.full((5, 6)).along(1, run(0, 3))
    assert str(dependent(rules, dot, 1, columns)) == "[:, 0:+3] of 4x6"
    assert str(dependent(rules, dot, 0, TensorSubset.full((4, 5)).along(1, run(0, 1)))) == "[:, :] of 4x6"
