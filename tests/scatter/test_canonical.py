"""The canonical form: every way to write a scatter down comes to the same."""

import pytest

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import NotCanonicalError, canonicalize
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

_graphs = []  # a node lives as long as its module


def canonical(dims, operand, indices, updates, element="f32", index_type="i32"):
    """The canonical form of a scatter with these dimension numbers and shapes ("" is a scalar)."""
    types = [
        f"tensor<{s}x{e}>" if s else f"tensor<{e}>"
        for s, e in ((operand, element), (indices, index_type), (updates, element))
    ]
    scalar = f"tensor<{element}>"
    graph = read(
        f"""func.func public @main(%o: {types[0]}, %i: {types[1]}, %up: {types[2]}) -> {types[0]} {{
  %r = "stablehlo.scatter"(%o, %i, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
    {dims.replace("DIMS", "scatter_dims_to_operand_dims")}>}}> ({{
  ^bb0(%c: {scalar}, %u: {scalar}):
    stablehlo.return %u : {scalar}
  }}) : ({", ".join(types)}) -> {types[0]}
  return %r : {types[0]}
}}
"""
    )
    _graphs.append(graph)
    return canonicalize(graph.scatters[0])


@pytest.mark.parametrize(
    ("ivd", "indices"), [(0, "2x3x5"), (1, "3x2x5"), (2, "3x5x2")], ids=["first", "middle", "last"]
)
def test_the_index_vector_may_lie_anywhere(ivd, indices):
    """Wherever the index vector lies, the scatter dims are the others, in order."""
    found = canonical(
        f"update_window_dims = [2], inserted_window_dims = [0], DIMS = [0, 1], index_vector_dim = {ivd}",
        "8x4", indices, "3x5x2",
    )  # fmt: skip
    assert (found.scatter_shape, found.window, found.index_dims) == ((3, 5), (1, 2), (0, 1))
    assert (found.positions, found.rank, found.index_vector_dim) == (15, 2, ivd)


def test_an_implicit_index_vector():
    """An index vector dim equal to the rank means vectors of length one (trap 11)."""
    found = canonical(
        "update_window_dims = [1], inserted_window_dims = [0], DIMS = [0], index_vector_dim = 1", "8x4", "3", "3x4"
    )
    assert (found.scatter_shape, found.window, found.index_dims) == ((3,), (1, 4), (0,))


def test_a_scalar_index():
    """Rank-0 indices are one position."""
    found = canonical("update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]", "8x4", "", "4")
    assert (found.scatter_shape, found.positions, found.window) == ((), 1, (1, 4))


def test_an_empty_index_vector():
    """A vector of length zero places every window at 0 (trap 11)."""
    found = canonical("update_window_dims = [1, 2], index_vector_dim = 1", "8x4", "3x0", "3x8x4")
    assert (found.index_dims, found.positions, found.window) == ((), 3, (8, 4))


def test_interleaved_window_dims():
    """Window dims of the updates may stand between scatter dims: the permutation puts these first (trap 12)."""
    found = canonical(
        "update_window_dims = [0, 2], inserted_window_dims = [1], DIMS = [1, 0], index_vector_dim = 2",
        "8x6x4", "3x5x2", "2x3x4x5",
    )  # fmt: skip
    assert (found.scatter_shape, found.window) == ((3, 5), (2, 1, 4))
    assert (found.update_permutation, found.index_dims) == ((1, 3, 0, 2), (1, 0))


@pytest.mark.parametrize(
    ("ivd", "indices", "batching", "expected"),
    [
        (2, "3x2x1", "0, 1", ((0, 0), (2, 1))),
        (2, "2x3x1", "1, 0", ((0, 1), (2, 0))),
        (0, "1x3x2", "1, 2", ((0, 0), (2, 1))),
        (1, "2x1x3", "2, 0", ((0, 1), (2, 0))),
    ],
)
def test_batching_dims(ivd, indices, batching, expected):
    """A batching dim of the operand takes its position in the scatter dims, the index vector not counted (trap 13)."""
    found = canonical(
        "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0, 2],"
        f" scatter_indices_batching_dims = [{batching}], DIMS = [1], index_vector_dim = {ivd}",
        "3x8x2x4", indices, "x".join(c for n, c in enumerate(indices.split("x")) if n != ivd) + "x4",
    )  # fmt: skip
    assert found.batching == expected
    assert found.window == (1, 1, 1, 4)


@pytest.mark.parametrize(
    ("index_type", "start_type"),
    [("i8", "i32"), ("ui8", "i32"), ("i32", "i32"), ("ui32", "i32"), ("i64", "i64"), ("ui64", "i64")],
)
def test_the_start_type_holds_every_bound(index_type, start_type):
    """Bounds are never built in a narrow type; 64-bit indices keep their width (trap 7)."""
    dims = "update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]"
    assert canonical(dims, "300x4", "1", "4", index_type=index_type).start_type == start_type
    assert canonical(dims, "1073741824x4", "1", "4", index_type=index_type).start_type == "i64"


def test_a_dynamic_shape_has_no_canonical_form():
    """The message names the type."""
    with pytest.raises(NotCanonicalError, match=r"dynamic_shape\(type=.tensor<\?x4xf32>"):
        canonical("update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]", "?x4", "1", "4")


def test_indices_of_index_type_are_refused():
    """The verifier takes them, but nothing converts them, so they are refused and never taken for known ones."""
    text = """func.func public @main(%o: tensor<8xf32>, %i: tensor<1xindex>, %u: tensor<f32>) -> tensor<8xf32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%c: tensor<f32>, %v: tensor<f32>):
    stablehlo.return %v : tensor<f32>
  }) : (tensor<8xf32>, tensor<1xindex>, tensor<f32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""
    graph = read(text)
    with pytest.raises(NotCanonicalError, match="index_elements"):
        canonicalize(graph.scatters[0])
    assert IndexAnalysis(graph).of(Site(graph.scatters[0].operands[1])).full()[1].max() > 1 << 32
