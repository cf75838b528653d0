"""Classification: one hit and one near miss for each subset and each fact, under both policies."""

import pytest
from untyped_mlir import module

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import Arity, Drops, FloatMode, InBounds, Offsets, OutOfBounds, Unique, Windows
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.reader import read
from hlo_lower.ops.subset import Subset

FORMS = {
    "row": ("window=[0], inserted=[0], to=[0]", "6x4", "1", "4"),
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
    operand, indices, updates = (
        f"{shape}x{kind}" if shape else kind for shape, kind in zip(shapes, ("f32", "i32", "f32"), strict=True)
    )
    text = str(index)
    defined = (
        "" if index is None else f"%j = {text}" if text.startswith("clamp") else f"%j = constant {text} : {indices}"
    )
    name = "%i" if index is None else "%j"
    flags = f", unique_indices={str(changed.get('unique', False)).lower()}"
    lines = f"{defined}\n%r = scatter(%o, {name}, %up) <{numbers}{flags}> {{{body}}}"
    graph = read(module(f"%o: {operand}, %i: {indices}, %up: {updates}", lines))
    scatter = canonicalize(graph.scatters[0])
    return classify(scatter, IndexAnalysis(graph), OutOfBounds(oob), FloatMode.EXACT, trust_flags=trust)


CONSTANT = " %c, %u:\n%k = constant 1.0 : f32; return %k\n"


@pytest.mark.parametrize(
    ("subset", "given"),
    [
        (Subset.TILE, {"form": "row"}),
        (Subset.POINT, {"form": "point"}),
        (Subset.TILE, {"form": "tile", "updates": "1x2"}),
        (Subset.FULL, {"form": "tile", "updates": "6x4", "index": 0}),
        (Subset.TILE, {"form": "tile", "updates": "6x4"}),
        (Subset.TILE, {"form": "tile", "updates": "5x4", "index": 0}),
        (Subset.EMPTY, {"form": "tile", "updates": "6x4", "index": 1}),
        (Subset.EMPTY, {"form": "row", "index": 6}),
        (Subset.TILE, {"form": "row", "index": 5}),
        (Subset.EMPTY, {"form": "row", "index": -1}),
        (Subset.EMPTY, {"form": "rows", "indices": "0x1", "updates": "0x4"}),
        (Subset.EMPTY, {"form": "row", "operand": "6x0", "updates": "0"}),
        (Subset.EMPTY, {"form": "tile", "updates": "0x2"}),
        (Subset.EMPTY, {"form": "row", "body": " %c, %u:\nreturn %c\n"}),
        (Subset.FILTER, {"form": "rows"}),
        (Subset.TILE, {"form": "rows", "indices": "1x1", "updates": "1x4"}),
        (Subset.WINDOWS, {"form": "rows", "updates": "3x3"}),
        (Subset.POINTS, {"form": "points"}),
        (Subset.WINDOWS, {"form": "windows"}),
        (Subset.BATCHED_TILE, {"form": "batched"}),
        (Subset.FILTER, {"form": "batched rows"}),
        # rank 0 and one window, or several assigned ones of which the last counts, is full; added ones are points
        (Subset.FULL, {"form": "scalar"}),
        (Subset.FULL, {"form": "scalars"}),
        (Subset.POINTS, {"form": "scalars", "body": "add"}),
    ],
)
def test_subset(subset, given):
    """The subset follows from shapes and dimension numbers, and from bounds where these decide it."""
    assert facts(**given).subset is subset


def clamp(high, low=0):
    """The argument between two bounds."""
    return f"clamp {low}, %i, {high}"


@pytest.mark.parametrize(
    ("windows", "index"),
    [
        *((Windows.INSIDE, "[3, 2]"), (Windows.OVERHANGS, "[4, 2]"), (Windows.OVERHANGS, "[-1, 0]")),
        *((Windows.OVERHANGS, "[-2, 3]"), (Windows.OUTSIDE, "[-3, 0]"), (Windows.OUTSIDE, "[6, 0]")),
        *((Windows.OUTSIDE, "[5, 4]"), (Windows.INSIDE, clamp(2)), (Windows.UNKNOWN, clamp(3))),
        *((Windows.UNKNOWN, clamp(2, -1)), (Windows.OUTSIDE, clamp(9, 6)), (Windows.UNKNOWN, None)),
    ],
)
def test_windows_of_one_tile(windows, index):
    """A 3x2 window in 6x4 is inside, overhangs, lies outside, or that is not known."""
    assert facts("tile", index).windows is windows


def test_windows_of_extent_one_are_whole():
    """A window of extent 1 in the indexed dim is either inside or outside, a longer one may overhang."""
    assert facts("row").windows is Windows.WHOLE
    assert facts("rows").windows is Windows.WHOLE
    assert facts("rows", "[[0], [5], [6]]").windows is Windows.WHOLE
    assert facts("windows", updates="3x1x1").windows is Windows.WHOLE
    assert facts("windows", updates="3x2x1").windows is Windows.UNKNOWN


@pytest.mark.parametrize(
    ("index", "oob", "in_bounds", "drops"),
    [
        ("[3, 2]", "xla", InBounds.ALWAYS, Drops.NOTHING),
        ("[3, 2]", "spec", InBounds.ALWAYS, Drops.NOTHING),
        ("[4, 2]", "xla", InBounds.NEVER, Drops.NOTHING),
        ("[4, 2]", "spec", InBounds.UNKNOWN, Drops.ELEMENTS),
        ("[6, 2]", "xla", InBounds.NEVER, Drops.NOTHING),
        ("[6, 2]", "spec", InBounds.NEVER, Drops.NOTHING),
        (None, "xla", InBounds.UNKNOWN, Drops.WINDOWS),
        (None, "spec", InBounds.UNKNOWN, Drops.ELEMENTS),
        (clamp(9, 4), "xla", InBounds.NEVER, Drops.NOTHING),
        (clamp(9, 4), "spec", InBounds.NEVER, Drops.NOTHING),
    ],
)
def test_the_policies_differ_on_overhanging_windows(index, oob, in_bounds, drops):
    """With the policy, windows give in_bounds and what has to be dropped (trap 1)."""
    found = facts("tile", index, oob=oob)
    assert (found.in_bounds, found.drops) == (in_bounds, drops)


@pytest.mark.parametrize(
    ("unique", "given"),
    [
        (Unique.PROVED, {"form": "row"}),
        (Unique.PROVED, {"form": "batched"}),
        (Unique.PROVED, {"form": "rows", "index": "[[0], [2], [1]]"}),
        (Unique.UNKNOWN, {"form": "rows", "index": "[[0], [2], [0]]"}),
        (Unique.UNKNOWN, {"form": "rows"}),
        (Unique.CLAIMED, {"form": "rows", "unique": True}),
        (Unique.PROVED, {"form": "rows", "unique": True, "trust": True}),
        (Unique.UNKNOWN, {"form": "rows", "trust": True}),
        (Unique.UNKNOWN, {"form": "windows", "indices": "2x2", "updates": "2x2x2", "index": "[[0, 0], [1, 1]]"}),
    ],
)
def test_unique(unique, given):
    """Uniqueness is proved by shape or constants, claimed by the flag, and a claim proves only when trusted."""
    assert facts(**given).unique is unique


def test_offsets():
    """Constant starts are known per dim; dims that are not indexed start at 0."""

    def told(found):
        return found.offsets, found.offsets_known, found.guarded_dims, found.masked_dims

    assert told(facts("row", 2)) == (Offsets.CONSTANT, (2, 0), (), ())
    assert told(facts("row")) == (Offsets.RUNTIME, (None, 0), (0,), ())


def test_guarded_and_masked_dims():
    """A window that may reach out of a dim is dropped whole there under oob=xla, element by element under oob=spec."""
    for oob, updates, guarded, masked in (
        ("xla", "3x2", (0, 1), ()),
        ("spec", "3x2", (), (0, 1)),
        ("spec", "3x1", (1,), (0,)),
    ):
        found = facts("tile", oob=oob, updates=updates)
        assert (found.guarded_dims, found.masked_dims) == (guarded, masked)
    # where a window cannot overhang, dropping its elements is dropping it
    assert [facts("row", oob=oob).drops for oob in ("xla", "spec")] == [Drops.WINDOWS] * 2


@pytest.mark.parametrize(
    ("kind", "form", "body"),
    [
        ("insert_slice", "row", "assign"),
        ("insert_slice", "row", CONSTANT),
        ("insert_slice", "batched", "assign"),
        ("reduction_add", "row", "add"),
        ("reduction_add", "rows", "add"),
        ("general", "row", "maximum"),
        ("general", "rows", "assign"),
    ],
)
def test_kind(kind, form, body):
    """insert_slice assigns a regular subset, reduction_add adds, general is the rest."""
    assert facts(form, body=body).kind == kind


def test_arity_and_evidence():
    """A scatter of one operand has its region's combiner; each fact has a value and at least one line of reason."""
    found = facts("row", body="add")
    assert (found.arity, found.combiner) == (Arity.SINGLE, Combiner.ADD)
    for finding in facts("tile", clamp(2)).findings:
        assert finding.value
        assert finding.steps, finding.name
    assert facts("row", clamp(5)).bounds == Code.PROVED("clamped")
    assert facts("row", 3).bounds == Code.PROVED("constant")
    assert facts("row").bounds == Code.GUARDED(Code.ARGUMENT(1, "main", None))
    with pytest.raises(KeyError, match="color"):
        _ = found["color"]
