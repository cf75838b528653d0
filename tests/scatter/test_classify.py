"""The canonical form and the classification: a hit and a near miss for each subset and each fact."""

import pytest
from untyped_mlir import module

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import NotCanonicalError, canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import Arity, Drops, FloatMode, InBounds, Offsets, OutOfBounds, Unique, Windows
from hlo_lower.facts.values.region import Combiner
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read
from hlo_lower.ops.subset import Subset

_graphs = []  # a node lives as long as its module


def scatter(numbers, operand, indices, updates, lines="", at="%i", body="{assign}"):
    """A scatter with these dimension numbers and types."""
    text = f"{lines}\n%r = scatter(%o, {at}, %up) <{numbers}> {body}"
    _graphs.append(read(module(f"%o: {operand}, %i: {indices}, %up: {updates}", text)))
    return _graphs[-1].scatters[0]


ROW = "window=[0], inserted=[0], to=[0]"
BATCHED = "window=[2], inserted=[1], batching=[0, 2], indices_batching=[{}], to=[1], ivd={}"


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
                (2, "2x3x1xi32", "2x3x4xf32", "1, 0", ((0, 1), (2, 0))),
                (0, "1x3x2xi32", "3x2x4xf32", "1, 2", ((0, 0), (2, 1))),
                (1, "2x1x3xi32", "2x3x4xf32", "2, 0", ((0, 1), (2, 0))),
            )
        ),
        # bounds are never built in a narrow type; 64-bit indices keep their width (trap 7)
        *((ROW, ("300x4xf32", f"1x{index}", "4xf32"), {"start_type": "i64" if "64" in index else "i32"})
          for index in ("i8", "ui8", "i32", "i64", "ui64")),
        *((ROW, ("1073741824x4xf32", f"1x{index}", "4xf32"), {"start_type": "i64"}) for index in ("i8", "i32", "ui32")),
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


FORMS = {
    "row": (ROW, "6x4", "1", "4"),
    "rows": ("window=[1], inserted=[0], to=[0], ivd=1", "6x4", "3x1", "3x4"),
    "tile": ("window=[0, 1], to=[0, 1]", "6x4", "2", "3x2"),
    "point": ("inserted=[0, 1], to=[0, 1]", "6x4", "2", ""),
    "points": ("inserted=[0, 1], to=[0, 1], ivd=1", "6x4", "3x2", "3"),
    "windows": ("window=[1, 2], to=[0, 1], ivd=1", "6x4", "3x2", "3x2x2"),
    "batched": ("window=[1], inserted=[1], batching=[0], indices_batching=[0], to=[1], ivd=1", "3x6x4", "3x1", "3x4"),
    "batched rows": (
        "window=[2], inserted=[1], batching=[0], indices_batching=[0], to=[1], ivd=2",
        *("3x6x4", "3x2x1", "3x2x4"),
    ),
    "scalar": ("to=[]", "", "0", ""),
    "scalars": ("ivd=1", "", "3x0", "3"),
}
"""Dimension numbers, and the shapes of operand, indices and updates."""


def facts(form, index=None, body="assign", oob="xla", trust=False, **changed):
    """The facts of a scatter of f32; index is a constant, None for the argument %i, or a clamp of it."""
    numbers, *shapes = FORMS[form]
    shapes = [changed.get(name, s) for name, s in zip(("operand", "indices", "updates"), shapes, strict=True)]
    types = [f"{s}x{kind}" if s else kind for s, kind in zip(shapes, ("f32", "i32", "f32"), strict=True)]
    defined = "" if index is None else str(index) if "clamp" in str(index) else f"constant {index} : {types[1]}"
    flags = f", unique_indices={str(changed.get('unique', False)).lower()}"
    where = (f"%j = {defined}", "%j") if defined else ("", "%i")
    found = canonicalize(scatter(numbers + flags, *types, *where, f"{{{body}}}"))
    return classify(found, IndexAnalysis(_graphs[-1]), OutOfBounds(oob), FloatMode.EXACT, trust_flags=trust)


def clamp(high, low=0):
    """The argument between two bounds."""
    return f"clamp {low}, %i, {high}"


CONSTANT = " %c, %u:\n%k = constant 1.0 : f32; return %k\n"
CASES = [  # a form, how it is changed, and facts
    ("row", {}, {"subset": Subset.TILE, "windows": Windows.WHOLE, "unique": Unique.PROVED, "kind": "insert_slice"}),
    ("row", {}, {"offsets": Offsets.RUNTIME, "offsets_known": (None, 0), "guarded_dims": (0,), "masked_dims": ()}),
    ("row", {}, {"bounds": Code.GUARDED(Code.ARGUMENT(1, "main", None))}),
    ("row", {"index": 2}, {"offsets": Offsets.CONSTANT, "offsets_known": (2, 0), "guarded_dims": ()}),
    ("row", {"index": 3}, {"bounds": Code.PROVED("constant")}),
    ("row", {"index": clamp(5)}, {"bounds": Code.PROVED("clamped")}),
    ("row", {"index": 5}, {"subset": Subset.TILE}),
    ("row", {"index": 6}, {"subset": Subset.EMPTY}),
    ("row", {"index": -1}, {"subset": Subset.EMPTY}),
    ("row", {"operand": "6x0", "updates": "0"}, {"subset": Subset.EMPTY}),
    ("row", {"body": " %c, %u:\nreturn %c\n"}, {"subset": Subset.EMPTY}),
    ("row", {"body": CONSTANT}, {"kind": "insert_slice"}),
    ("row", {"body": "add"}, {"kind": "reduction_add", "arity": Arity.SINGLE, "combiner": Combiner.ADD}),
    ("row", {"body": "maximum"}, {"kind": "general"}),
    ("point", {}, {"subset": Subset.POINT}),
    ("points", {}, {"subset": Subset.POINTS}),
    # a window of extent 1 in the indexed dim is either inside or outside, a longer one may overhang
    ("rows", {}, {"subset": Subset.FILTER, "windows": Windows.WHOLE, "unique": Unique.UNKNOWN, "kind": "general"}),
    ("rows", {"body": "add"}, {"kind": "reduction_add"}),
    ("rows", {"index": "[[0], [5], [6]]"}, {"windows": Windows.WHOLE}),
    ("rows", {"indices": "1x1", "updates": "1x4"}, {"subset": Subset.TILE}),
    ("rows", {"indices": "0x1", "updates": "0x4"}, {"subset": Subset.EMPTY}),
    ("rows", {"updates": "3x3"}, {"subset": Subset.WINDOWS}),
    # uniqueness is proved by shape or constants, claimed by the flag, and a claim proves only when trusted
    ("rows", {"index": "[[0], [2], [1]]"}, {"unique": Unique.PROVED}),
    ("rows", {"index": "[[0], [2], [0]]"}, {"unique": Unique.UNKNOWN}),
    ("rows", {"unique": True}, {"unique": Unique.CLAIMED}),
    ("rows", {"unique": True, "trust": True}, {"unique": Unique.PROVED}),
    ("rows", {"trust": True}, {"unique": Unique.UNKNOWN}),
    ("windows", {}, {"subset": Subset.WINDOWS}),
    ("windows", {"updates": "3x1x1"}, {"windows": Windows.WHOLE}),
    ("windows", {"updates": "3x2x1"}, {"windows": Windows.UNKNOWN}),
    ("windows", {"indices": "2x2", "updates": "2x2x2", "index": "[[0, 0], [1, 1]]"}, {"unique": Unique.UNKNOWN}),
    ("batched", {}, {"subset": Subset.BATCHED_TILE, "unique": Unique.PROVED, "kind": "insert_slice"}),
    ("batched rows", {}, {"subset": Subset.FILTER}),
    # rank 0 and one window, or several assigned ones of which the last counts, is full; added ones are points
    ("scalar", {}, {"subset": Subset.FULL}),
    ("scalars", {}, {"subset": Subset.FULL}),
    ("scalars", {"body": "add"}, {"subset": Subset.POINTS}),
    # a 3x2 window in 6x4 is inside, overhangs, lies outside, or that is not known
    ("tile", {"updates": "1x2"}, {"subset": Subset.TILE}),
    ("tile", {"updates": "6x4"}, {"subset": Subset.TILE}),
    ("tile", {"updates": "6x4", "index": 0}, {"subset": Subset.FULL}),
    ("tile", {"updates": "5x4", "index": 0}, {"subset": Subset.TILE}),
    ("tile", {"updates": "6x4", "index": 1}, {"subset": Subset.EMPTY}),
    ("tile", {"updates": "0x2"}, {"subset": Subset.EMPTY}),
    *(
        ("tile", {"index": index}, {"windows": windows})
        for windows, index in (
            *((Windows.INSIDE, "[3, 2]"), (Windows.OVERHANGS, "[4, 2]"), (Windows.OVERHANGS, "[-1, 0]")),
            *((Windows.OVERHANGS, "[-2, 3]"), (Windows.OUTSIDE, "[-3, 0]"), (Windows.OUTSIDE, "[6, 0]")),
            *((Windows.OUTSIDE, "[5, 4]"), (Windows.INSIDE, clamp(2)), (Windows.UNKNOWN, clamp(3))),
            *((Windows.UNKNOWN, clamp(2, -1)), (Windows.OUTSIDE, clamp(9, 6)), (Windows.UNKNOWN, None)),
        )
    ),
    # with the policy, windows give in_bounds and what has to be dropped (trap 1)
    *(
        ("tile", {"index": index, "oob": oob}, {"in_bounds": in_bounds, "drops": drops})
        for index, oob, in_bounds, drops in (
            ("[3, 2]", "xla", InBounds.ALWAYS, Drops.NOTHING),
            ("[3, 2]", "spec", InBounds.ALWAYS, Drops.NOTHING),
            ("[4, 2]", "xla", InBounds.NEVER, Drops.NOTHING),
            ("[4, 2]", "spec", InBounds.UNKNOWN, Drops.ELEMENTS),
            ("[6, 2]", "spec", InBounds.NEVER, Drops.NOTHING),
            (None, "xla", InBounds.UNKNOWN, Drops.WINDOWS),
            (None, "spec", InBounds.UNKNOWN, Drops.ELEMENTS),
            (clamp(9, 4), "xla", InBounds.NEVER, Drops.NOTHING),
            (clamp(9, 4), "spec", InBounds.NEVER, Drops.NOTHING),
        )
    ),
    # a window that may reach out of a dim is dropped whole there under oob=xla, element by element under oob=spec
    ("tile", {"oob": "xla"}, {"guarded_dims": (0, 1), "masked_dims": ()}),
    ("tile", {"oob": "spec"}, {"guarded_dims": (), "masked_dims": (0, 1)}),
    ("tile", {"oob": "spec", "updates": "3x1"}, {"guarded_dims": (1,), "masked_dims": (0,)}),
    # where a window cannot overhang, dropping its elements is dropping it
    *(("row", {"oob": oob}, {"drops": Drops.WINDOWS}) for oob in ("xla", "spec")),
]


@pytest.mark.parametrize(("form", "changed", "expected"), CASES)
def test_facts(form, changed, expected):
    """Facts follow from shapes and dimension numbers, and from bounds where these decide."""
    found = facts(form, **changed)
    assert {name: getattr(found, name) for name in expected} == expected


def test_each_fact_has_evidence():
    """A value and at least one line of reason; there is no fact of another name."""
    found = facts("tile", clamp(2))
    assert [finding.name for finding in found.findings if not finding.value or not finding.steps] == []
    with pytest.raises(KeyError, match="color"):
        _ = found["color"]
