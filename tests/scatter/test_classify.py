"""Classification: one hit and one near miss for each subset and each fact, under both policies."""

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import Arity, Drops, FloatMode, InBounds, Offsets, OutOfBounds, Unique, Windows
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.reader import read
from hlo_lower.ops.subset import Subset

POLICIES = ("xla", "spec")
ROW = "update_window_dims = [0], inserted_window_dims = [0], DIMS = [0]"
ROWS = "update_window_dims = [1], inserted_window_dims = [0], DIMS = [0], index_vector_dim = 1"
TILE = "update_window_dims = [0, 1], DIMS = [0, 1]"
POINT = "inserted_window_dims = [0, 1], DIMS = [0, 1]"
POINTS = "inserted_window_dims = [0, 1], DIMS = [0, 1], index_vector_dim = 1"
WINDOWS = "update_window_dims = [1, 2], DIMS = [0, 1], index_vector_dim = 1"
BATCHED = (
    "update_window_dims = [1], inserted_window_dims = [1], input_batching_dims = [0],"
    " scatter_indices_batching_dims = [0], DIMS = [1], index_vector_dim = 1"
)


def facts(
    dims, operand="6x4", indices="1", updates="4", index=None, oob="xla", trust=False, unique=False,
    body="stablehlo.return %u : tensor<f32>",
):  # fmt: skip
    """The facts of a scatter of f32; index is a constant or None for the argument %i, or lines that define %j."""
    types = [f"tensor<{s}xf32>" if s else "tensor<f32>" for s in (operand, updates)]
    indices_type = f"tensor<{indices}xi32>" if indices else "tensor<i32>"
    lines = index if "%j" in str(index) else f"%j = stablehlo.constant dense<{index}> : {indices_type}"
    name = "%i" if index is None else "%j"
    graph = read(
        f"""func.func public @main(%o: {types[0]}, %i: {indices_type}, %up: {types[1]}) -> {types[0]} {{
  {"" if index is None else lines}
  %r = "stablehlo.scatter"(%o, {name}, %up) <{{scatter_dimension_numbers = #stablehlo.scatter<
    {dims.replace("DIMS", "scatter_dims_to_operand_dims")}>, unique_indices = {str(unique).lower()}}}> ({{
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    {body}
  }}) : ({types[0]}, {indices_type}, {types[1]}) -> {types[0]}
  return %r : {types[0]}
}}
"""
    )
    return classify(
        canonicalize(graph.scatters[0]),
        IndexAnalysis(graph),
        OutOfBounds(oob),
        FloatMode.EXACT,
        trust_flags=trust,
    )


@pytest.mark.parametrize(
    ("subset", "given"),
    [
        (Subset.TILE, {"dims": ROW}),
        (Subset.POINT, {"dims": POINT, "indices": "2", "updates": ""}),
        (Subset.TILE, {"dims": TILE, "indices": "2", "updates": "1x2"}),
        (Subset.FULL, {"dims": TILE, "indices": "2", "updates": "6x4", "index": 0}),
        (Subset.TILE, {"dims": TILE, "indices": "2", "updates": "6x4"}),
        (Subset.TILE, {"dims": TILE, "indices": "2", "updates": "5x4", "index": 0}),
        (Subset.EMPTY, {"dims": TILE, "indices": "2", "updates": "6x4", "index": 1}),
        (Subset.EMPTY, {"dims": ROW, "index": 6}),
        (Subset.TILE, {"dims": ROW, "index": 5}),
        (Subset.EMPTY, {"dims": ROW, "index": -1}),
        (Subset.EMPTY, {"dims": ROWS, "indices": "0x1", "updates": "0x4"}),
        (Subset.EMPTY, {"dims": ROW, "operand": "6x0", "updates": "0"}),
        (Subset.EMPTY, {"dims": TILE, "indices": "2", "updates": "0x2"}),
        (Subset.EMPTY, {"dims": ROW, "body": "stablehlo.return %c : tensor<f32>"}),
        (Subset.FILTER, {"dims": ROWS, "indices": "3x1", "updates": "3x4"}),
        (Subset.TILE, {"dims": ROWS, "indices": "1x1", "updates": "1x4"}),
        (Subset.WINDOWS, {"dims": ROWS, "indices": "3x1", "updates": "3x3"}),
        (Subset.POINTS, {"dims": POINTS, "indices": "3x2", "updates": "3"}),
        (Subset.WINDOWS, {"dims": WINDOWS, "indices": "3x2", "updates": "3x2x2"}),
        (Subset.BATCHED_TILE, {"dims": BATCHED, "operand": "3x6x4", "indices": "3x1", "updates": "3x4"}),
        (
            Subset.FILTER,
            {
                "dims": BATCHED.replace("[1], ins", "[2], ins").replace("dim = 1", "dim = 2"),
                "operand": "3x6x4",
                "indices": "3x2x1",
                "updates": "3x2x4",
            },
        ),
    ],
)
def test_subset(subset, given):
    """The subset follows from shapes and dimension numbers, and from bounds where these decide it."""
    assert facts(**given).subset is subset


def test_a_scalar_operand_with_one_update_is_full():
    """Rank 0 and one window, or several assigned ones of which the last counts, is full; added ones are points."""
    assert facts("", operand="", indices="0", updates="").subset is Subset.FULL
    assert facts("index_vector_dim = 1", operand="", indices="3x0", updates="3").subset is Subset.FULL
    assert facts("index_vector_dim = 1", operand="", indices="3x0", updates="3", body=ADD).subset is Subset.POINTS


def clamp(high, low=0, shape="2"):
    """Lines that clamp the argument."""
    t = f"tensor<{shape}xi32>"
    return f"""%lo = stablehlo.constant dense<{low}> : tensor<i32>
  %hi = stablehlo.constant dense<{high}> : tensor<i32>
  %j = stablehlo.clamp %lo, %i, %hi : (tensor<i32>, {t}, tensor<i32>) -> {t}"""


@pytest.mark.parametrize(
    ("windows", "index"),
    [
        (Windows.INSIDE, "[3, 2]"),
        (Windows.OVERHANGS, "[4, 2]"),
        (Windows.OVERHANGS, "[-1, 0]"),
        (Windows.OVERHANGS, "[-2, 3]"),
        (Windows.OUTSIDE, "[-3, 0]"),
        (Windows.OUTSIDE, "[6, 0]"),
        (Windows.OUTSIDE, "[5, 4]"),
        (Windows.INSIDE, clamp(2)),
        (Windows.UNKNOWN, clamp(3)),
        (Windows.UNKNOWN, clamp(2, -1)),
        (Windows.OUTSIDE, clamp(9, 6)),
        (Windows.UNKNOWN, None),
    ],
)
def test_windows_of_one_tile(windows, index):
    """A 3x2 window in 6x4 is inside, overhangs, lies outside, or that is not known."""
    assert facts(TILE, indices="2", updates="3x2", index=index).windows is windows


def test_windows_of_extent_one_are_whole():
    """A window of extent 1 in the indexed dim is either inside or outside, a longer one may overhang."""
    assert facts(ROW).windows is Windows.WHOLE
    assert facts(ROWS, indices="3x1", updates="3x4").windows is Windows.WHOLE
    assert facts(ROWS, indices="3x1", updates="3x4", index="[[0], [5], [6]]").windows is Windows.WHOLE
    assert facts(WINDOWS, indices="3x2", updates="3x1x1").windows is Windows.WHOLE
    assert facts(WINDOWS, indices="3x2", updates="3x2x1").windows is Windows.UNKNOWN


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
    found = facts(TILE, indices="2", updates="3x2", index=index, oob=oob)
    assert (found.in_bounds, found.drops) == (in_bounds, drops)


def test_extent_one_drops_windows_under_either_policy():
    """Where a window cannot overhang, dropping its elements is dropping it."""
    assert [facts(ROW, oob=oob).drops for oob in ("xla", "spec")] == [Drops.WINDOWS] * 2


@pytest.mark.parametrize(
    ("unique", "given"),
    [
        (Unique.PROVED, {"dims": ROW}),
        (Unique.PROVED, {"dims": BATCHED, "operand": "3x6x4", "indices": "3x1", "updates": "3x4"}),
        (Unique.PROVED, {"dims": ROWS, "indices": "3x1", "updates": "3x4", "index": "[[0], [2], [1]]"}),
        (Unique.UNKNOWN, {"dims": ROWS, "indices": "3x1", "updates": "3x4", "index": "[[0], [2], [0]]"}),
        (Unique.UNKNOWN, {"dims": ROWS, "indices": "3x1", "updates": "3x4"}),
        (Unique.CLAIMED, {"dims": ROWS, "indices": "3x1", "updates": "3x4", "unique": True}),
        (Unique.PROVED, {"dims": ROWS, "indices": "3x1", "updates": "3x4", "unique": True, "trust": True}),
        (Unique.UNKNOWN, {"dims": ROWS, "indices": "3x1", "updates": "3x4", "trust": True}),
        (Unique.UNKNOWN, {"dims": WINDOWS, "indices": "2x2", "updates": "2x2x2", "index": "[[0, 0], [1, 1]]"}),
    ],
)
def test_unique(unique, given):
    """Uniqueness is proved by shape or constants, claimed by the flag, and a claim proves only when trusted."""
    assert facts(**given).unique is unique


def test_offsets():
    """Constant starts are known per dim; dims that are not indexed start at 0."""
    assert (
        facts(ROW, index=2).offsets,
        facts(ROW, index=2).offsets_known,
        facts(ROW, index=2).guarded_dims,
        facts(ROW, index=2).masked_dims,
    ) == (Offsets.CONSTANT, (2, 0), (), ())
    assert (
        facts(ROW).offsets,
        facts(ROW).offsets_known,
        facts(ROW).guarded_dims,
        facts(ROW).masked_dims,
    ) == (Offsets.RUNTIME, (None, 0), (0,), ())


def test_guarded_and_masked_dims():
    """A window that may reach out of a dim is dropped whole there under oob=xla, element by element under oob=spec."""
    given = {"dims": TILE, "indices": "2", "updates": "3x2"}
    dropped = {oob: (facts(oob=oob, **given).guarded_dims, facts(oob=oob, **given).masked_dims) for oob in POLICIES}
    assert dropped == {"xla": ((0, 1), ()), "spec": ((), (0, 1))}
    assert facts(TILE, indices="2", updates="3x1", oob="spec").guarded_dims == (1,)
    assert facts(TILE, indices="2", updates="3x1", oob="spec").masked_dims == (0,)


ADD = "%s = stablehlo.add %c, %u : tensor<f32>\n    stablehlo.return %s : tensor<f32>"
MAX = ADD.replace("add", "maximum")
CONSTANT = "%k = stablehlo.constant dense<1.0> : tensor<f32>\n    stablehlo.return %k : tensor<f32>"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("insert_slice", {"dims": ROW}),
        ("insert_slice", {"dims": ROW, "body": CONSTANT}),
        ("insert_slice", {"dims": BATCHED, "operand": "3x6x4", "indices": "3x1", "updates": "3x4"}),
        ("reduction_add", {"dims": ROW, "body": ADD}),
        ("reduction_add", {"dims": ROWS, "indices": "3x1", "updates": "3x4", "body": ADD}),
        ("general", {"dims": ROW, "body": MAX}),
        ("general", {"dims": ROWS, "indices": "3x1", "updates": "3x4"}),
    ],
)
def test_kind(kind, given):
    """insert_slice assigns a regular subset, reduction_add adds, general is the rest."""
    assert facts(**given).kind == kind


def test_arity():
    """A scatter of one operand is single and has the region's combiner."""
    found = facts(ROW, body=ADD)
    assert (found.arity, found.combiner) == (Arity.SINGLE, Combiner.ADD)


def test_every_fact_has_evidence():
    """Each fact of the record has a value and at least one line of proof or reason."""
    for finding in facts(TILE, indices="2", updates="3x2", index=clamp(2)).findings:
        assert finding.value
        assert finding.steps, finding.name
    assert facts(ROW, index=clamp(5, shape="1")).bounds == Code.PROVED("clamped")
    assert facts(ROW, index=3).bounds == Code.PROVED("constant")
    assert facts(ROW).bounds == Code.GUARDED(Code.ARGUMENT(1, "main", None))


def test_an_unknown_fact_is_a_key_error():
    """Facts answer for the names of their domains only."""
    with pytest.raises(KeyError, match="color"):
        _ = facts(ROW)["color"]
