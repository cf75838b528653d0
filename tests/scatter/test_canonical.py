"""The canonical form: every way to write a scatter down comes to the same."""

import pytest
from untyped_mlir import module

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import NotCanonicalError, canonicalize
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

_graphs = []  # a node lives as long as its module
ROW = "window=[0], inserted=[0], to=[0]"
BATCHED = "window=[2], inserted=[1], batching=[0, 2], indices_batching=[{}], to=[1], ivd={}"


def scatter(numbers, operand, indices, updates):
    """A scatter with these dimension numbers and types."""
    lines = f"%r = scatter(%o, %i, %u) <{numbers}> {{assign}}"
    _graphs.append(read(module(f"%o: {operand}, %i: {indices}, %u: {updates}", lines)))
    return _graphs[-1].scatters[0]


@pytest.mark.parametrize(
    ("numbers", "types", "expected"),
    [
        # wherever the index vector lies, the scatter dims are the others, in order
        *(
            (
                f"window=[2], inserted=[0], to=[0, 1], ivd={ivd}", ("8x4xf32", indices, "3x5x2xf32"),
                {"scatter_shape": (3, 5), "window": (1, 2), "index_dims": (0, 1), "positions": 15, "rank": 2,
                 "index_vector_dim": ivd},
            )
            for ivd, indices in enumerate(("2x3x5xi32", "3x2x5xi32", "3x5x2xi32"))
        ),
        # an index vector dim equal to the rank means vectors of length one (trap 11)
        ("window=[1], inserted=[0], to=[0], ivd=1", ("8x4xf32", "3xi32", "3x4xf32"),
         {"scatter_shape": (3,), "window": (1, 4), "index_dims": (0,)}),
        # rank-0 indices are one position
        (ROW, ("8x4xf32", "i32", "4xf32"), {"scatter_shape": (), "positions": 1, "window": (1, 4)}),
        # a vector of length zero places every window at 0 (trap 11)
        ("window=[1, 2], ivd=1", ("8x4xf32", "3x0xi32", "3x8x4xf32"),
         {"index_dims": (), "positions": 3, "window": (8, 4)}),
        # window dims of the updates may stand between scatter dims: the permutation puts these first (trap 12)
        ("window=[0, 2], inserted=[1], to=[1, 0], ivd=2", ("8x6x4xf32", "3x5x2xi32", "2x3x4x5xf32"),
         {"scatter_shape": (3, 5), "window": (2, 1, 4), "update_permutation": (1, 3, 0, 2), "index_dims": (1, 0)}),
        # a batching dim of the operand takes its position in the scatter dims, the index vector not counted (trap 13)
        *(
            (BATCHED.format(dims, ivd), ("3x8x2x4xf32", indices, updates),
             {"batching": batching, "window": (1, 1, 1, 4)})
            for ivd, indices, updates, dims, batching in (
                (2, "3x2x1xi32", "3x2x4xf32", "0, 1", ((0, 0), (2, 1))),
                (2, "2x3x1xi32", "2x3x4xf32", "1, 0", ((0, 1), (2, 0))),
                (0, "1x3x2xi32", "3x2x4xf32", "1, 2", ((0, 0), (2, 1))),
                (1, "2x1x3xi32", "2x3x4xf32", "2, 0", ((0, 1), (2, 0))),
            )
        ),
        # bounds are never built in a narrow type; 64-bit indices keep their width (trap 7)
        *(
            (ROW, (f"{size}x4xf32", f"1x{index}", "4xf32"),
             {"start_type": "i64" if "64" in index or size > 300 else "i32"})
            for index in ("i8", "ui8", "i32", "ui32", "i64", "ui64") for size in (300, 1073741824)
        ),
    ],
)  # fmt: skip
def test_the_canonical_form(numbers, types, expected):
    """What is written in these dimension numbers."""
    found = canonicalize(scatter(numbers, *types))
    assert {name: getattr(found, name) for name in expected} == expected


def test_what_has_no_canonical_form():
    """The message names a dynamic type; indices of `index` are refused, never taken for known ones."""
    with pytest.raises(NotCanonicalError, match=r"dynamic_shape\(type=.tensor<\?x4xf32>"):
        canonicalize(scatter(ROW, "?x4xf32", "1xi32", "4xf32"))
    node = scatter("inserted=[0], to=[0]", "8xf32", "1xindex", "f32")
    with pytest.raises(NotCanonicalError, match="index_elements"):
        canonicalize(node)
    assert IndexAnalysis(_graphs[-1]).of(Site(node.operands[1])).full()[1].max() > 1 << 32
