"""Traps of where windows lie: out of bounds, dimension numbers in any order, whole overwrites, duplicates."""

import re

import numpy as np
import pytest
from one_scatter import (
    INT_MAX,
    INT_MIN,
    POLICIES,
    Case,
    array,
    dtype_of,
    f32,
    i32,
    numbers,
    ops_of_size,
    points,
    rows,
    run,
    tile,
    windows,
)

import hlo_lower as hl
from hlo_lower.verify.run import Executable


def ends(kind):
    """The ends of a type."""
    return np.iinfo(dtype_of(kind))


ASSIGNED_OR_ADDED = pytest.mark.parametrize("combiner", ["assign", "add"])
PAIRS = numbers(inserted=[0, 1], to=[0, 1])


@pytest.mark.parametrize(("oob", "kept"), [("xla", [0, 0]), ("spec", [1, 2])])
def test_trap_01_policy(oob, kept):
    """XLA's policy drops an overhanging window whole, the specification's only what hangs over."""
    text = Case((3, 3, 2), (1, 2), (1, 2, 2), numbers(window=[1, 2], inserted=[0], to=[0, 1])).text()
    [result] = run(text, f32(np.zeros((3, 3, 2))), i32([[0, 2]]), f32([[[1, 2], [3, 4]]]), oob=oob)
    assert (result[0, 2].tolist(), np.count_nonzero(result)) == (kept, np.count_nonzero(kept))


@pytest.mark.parametrize(
    ("case", "agree"),
    [
        (points(2, 4, combiner="add"), True),
        (rows(2, 4, 3), True),
        (Case((4, 3), (2,), (1, 3), numbers(window=[0, 1], to=[0, 1], ivd=0)), False),
        (windows(2, 2, 5, combiner="add"), False),
    ],
    ids=["points", "whole rows", "a shifted row", "windows"],
)
def test_trap_01_where_the_policies_agree(case, agree):
    """The two policies are the same where the window has extent 1 in every scattered dim, and only there."""
    starts = np.stack(np.meshgrid(*[np.arange(-2, 6)] * int(np.prod(case.indices))), -1).reshape(-1, *case.indices)
    operand, updates = f32(np.zeros(case.operand)), f32(np.ones(case.updates))
    results = [
        [executable.run([operand, i32(start), updates])[0].tolist() for start in starts]
        for executable in map(case.lowered, ("xla", "spec"))
    ]
    assert (results[0] == results[1]) is agree
    for oob in ("xla", "spec"):
        case.check(*starts[::5], oob=oob)


def combined(made, *given, combiners=("assign", "add"), **options):
    """A case for each combiner."""
    return [made(*given, combiner=combiner, **options) for combiner in combiners]


def drawn(case, count=4, most=5):
    """A case with random indices in [-1, most)."""
    rng = np.random.default_rng(0)
    return case, [rng.integers(-1, most, case.indices) for _ in range(count)]


def batched(ivd):
    """Two batching dims that are permuted and lie behind the index vector or in front of it."""
    positions = [2, 3, 4]  # the batch of operand dim 2, the batch of operand dim 0, n
    first, second = (b + 1 if b >= ivd else b for b in (0, 1))
    dims = numbers([], [1], [0, 2], [second, first], [1], ivd)
    return Case((3, 5, 2), (*positions[:ivd], 1, *positions[ivd:]), (2, 3, 4), dims, combiner="subtract")


SUBTRACT = {"element": "i32", "combiner": "subtract"}
UNIQUE, SORTED = ", unique_indices=true", ", indices_are_sorted=true"
ONE_ROW, WINDOWS_FIRST = numbers(window=[1], inserted=[0], to=[0]), numbers(window=[0], to=[0])
MANY = numbers(inserted=[1], batching=[0], indices_batching=[0], to=[1])
BATCHES = [np.random.default_rng(seed).integers(-2, 7, (300, 1)) for seed in range(2)]
WIDER = [("i8", "i32", "add"), ("bf16", "f32", "subtract"), ("i8", "i32", "assign")]
TYPES = [("i1", "add"), ("complex<f32>", "add"), ("i4", "add")]

CHECKED = {
    "trap 02: no window is moved to the border as dynamic_update_slice would": [
        (case, [[-3], [-2], [-1], [0], [3], [4], [5], [7]]) for case in combined(tile, 2, 5)
    ],
    "trap 03: of one window the elements inside are kept at every start": [
        (case, [[s] for s in (*range(-6, 7), INT_MIN, INT_MAX)])
        for case in combined(tile, 4, 5, combiners=("assign", "subtract"))
    ],
    "trap 04: of a run of rows those in range are written, wherever it starts": [
        (rows(3, 5, 2), [*([s, s + 1, s + 2] for s in (-4, -2, -1, 0, 2, 3, 4, 5)), [INT_MIN, INT_MAX, 0]])
    ],
    "trap 05: a negative index does not count from the end": [(points(3, 4), [[-1, -4, 1], [-5, 3, -2]])],
    **{
        f"trap 06: the largest {kind} is far out of bounds, not -1": [
            (tile(2, 5, index=kind), [[ends(kind).max], [ends(kind).max - 1], [3], [4]]),
            (points(2, 4, index=kind, combiner="add"), [[ends(kind).max, 3], [3, 3]]),
            (tile(5, 5, index=kind), [[ends(kind).max], [0], [1]]),  # D - W is 0
        ]
        for kind in ("ui8", "ui32", "ui64")
    },
    # openxla/xla#48718
    **{
        f"trap 07: a dim larger than {kind} can say is bounded in a wider type": [
            (tile(3, 300, index=kind), [[0], [far], [far - 1], [ends(kind).min]]),
            (points(2, 300, index=kind), [[far, 5], [far, far]]),
        ]
        for kind, far in (("i8", 127), ("ui8", 255), ("i16", 299))
    },
    "trap 07: batch coordinates and positions beyond 127 are counted in a wider type than i8": [
        *((case, BATCHES) for case in combined(Case, (300, 5), (300, 1), (300,), MANY, index="i8")),
        *((case, [np.random.default_rng(0).integers(-2, 11, 200)]) for case in combined(points, 200, 9, index="i8")),
    ],
    "trap 08: a component out of bounds counts where the linearised position is inside": [
        (Case((3, 4), (2, 2), (2,), PAIRS), [
            *([[0, 4], [1, -1]], [[-1, 5], [2, 3]], [[1, 2], [3, -4]], [[2**30, 4], [2**30, 0]]),
        ])
    ],
    **{
        f"trap 09: a start next to the end of {kind} is out, and start plus window does not wrap": [
            (tile(3, 5, index=kind), [[low], [low + 1], [high - 1], [high]]),
            (windows(2, 3, 5, index=kind, combiner="add"), [[low, 1], [2, high], [high - 1, 4]]),
        ]
        for kind, low, high in (("i32", INT_MIN, INT_MAX), ("i64", ends("i64").min, ends("i64").max))
    },
    "trap 10: a window, a list or an operand without elements leaves the operand": [
        (case, [np.zeros(case.indices), np.ones(case.indices)])
        for case in (
            Case((3, 2), (1, 1), (1, 0), ONE_ROW), points(0, 3), rows(2, 3, 0), tile(0, 3, combiner="add"),
        )
    ],
    "trap 11: with K = 0 all updates land at 0 and compound": [
        drawn(Case((3,), (4, 0), (4,), numbers(inserted=[0]), **SUBTRACT)),
        drawn(Case((3, 2), (4, 0), (4, 2, 1), numbers(window=[1, 2]), **SUBTRACT)),
    ],
    "trap 11: the index vector may lie anywhere or be implicit": [
        drawn(Case((3, 4), (2, 5), (5,), numbers(inserted=[0, 1], to=[0, 1], ivd=0))),
        drawn(Case((3, 4), (2, 2, 3), (2, 3), PAIRS)),
        drawn(Case((4, 2), (), (2,), numbers(window=[0], inserted=[0], to=[0], ivd=0))),
    ],
    "trap 12: dims interleaved, permuted, pinned at 0, and inserted ones that are not indexed": [
        drawn(Case((4, 5), (3, 2), (3, 2), numbers([1], [0], to=[1, 0]))),
        drawn(Case((3, 5), (4, 1), (4,), numbers(inserted=[0, 1], to=[1]))),
        drawn(Case((5, 4, 3), (2, 2), (2, 3, 2), numbers([1, 2], [1], to=[2, 0]), combiner="add")),
    ],
    "trap 13: a batch coordinate is the position's": [drawn(batched(ivd), 3, 6) for ivd in (0, 1, 2, 3)],
    "trap 14: a false claim of unique indices, and slots of -1, change nothing": [
        (case, [[-1, -1, -1, 3], [2, 2, 2, 2], [0, 4, 0, 5]]) for case in combined(rows, 4, 5, 2, flags=UNIQUE)
    ],
    "trap 15: the result does not rest on indices_are_sorted": [
        (Case((4, 5), (3, 2), (3,), numbers(inserted=[0, 1], to=[1, 0]), flags=SORTED),
         [[[0, 3], [1, 2], [0, 3]], [[4, 0], [3, 1], [0, 2]]])
    ],
    "trap 16: the last assignment in row-major order of positions stays": [
        (points(5, 3), [[1, 1, 1, 1, 1], [0, 2, 0, 2, 0]]),
    ],
    "trap 21: elements that no update reaches are the operand's, no identity": [
        (case, [[1, 1, -1], [6, 7, 8]])
        for kind in ("f32", "i8", "ui8", "i1")
        for case in combined(points, 3, 6, element=kind, combiners=("maximum", "minimum"))
    ],
    "trap 24: operand and updates are converted to a wider region's type first": [
        (made(n, 4, element=narrow, region_element=wide, combiner=combiner), indices)
        for narrow, wide, combiner in WIDER
        for made, n, indices in ((points, 3, [[1, 1, 1], [0, -1, 4]]), (tile, 2, [[1], [3], [9]]))
    ],
    "trap 25: on i1, add is `or`; complex numbers add; four bits are enough": [
        (made(n, 4, element=kind, combiner=combiner), indices)
        for kind, combiner in TYPES
        for made, n, indices in ((points, 6, [[0, 1, 1, 2, 2, 2], [3, 3, 4, -1, 0, 0]]), (tile, 3, [[0], [1], [2]]))
    ],
    "trap 26: booleans are scattered as booleans": [
        (points(3, 5, element="i1"), [[1, 1, 4], [-1, 5, 0]]),
        (tile(2, 5, element="i1"), [[1], [4]]),
    ],
    "trap 36: a window as large as the operand at a runtime start is written at 0 only": [
        (tile(4, 4), [[0], [1], [-1], [INT_MIN]]),
        *((case, [[0, 0], [0, 1], [-1, 0], [1, -1]]) for case in combined(windows, 2, 4, 4)),
    ],
    "trap 45: a whole window is written before the next position's, where window dims come first": [
        (Case((6,), (3, 1), (3, 3), WINDOWS_FIRST), [[0, 1, 2], [2, 1, 0], [3, 3, 1], [-1, 0, 4]]),
        (Case((6,), (3, 1), (3, 3), WINDOWS_FIRST, **SUBTRACT), [[0, 1, 2], [2, 2, -1]]),
    ],
}  # fmt: skip
"""Cases of a trap, each with the indices that it is run with."""


@POLICIES
@pytest.mark.parametrize("name", CHECKED)
def test_each_trap_is_what_the_reference_computes(name, oob):
    """What is lowered gives the reference's result bit for bit, under both policies."""
    for case, indices in CHECKED[name]:
        case.check(*indices, oob=oob)


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_02_the_update_is_guarded_not_the_buffer(combiner, oob):
    """Nothing but the write itself gives a tensor of the buffer's size."""
    lowered = hl.lower(tile(4, 5000, combiner=combiner).text(), oob=oob)
    large = [n for n in ops_of_size(lowered.text, 5000) if n not in ("func.func", "func.return")]
    assert large == ["stablehlo.dynamic_update_slice"]


def test_trap_08_positions_of_a_large_operand_need_64_bits():
    """Where an operand has more elements than i32 can number, a flat position is an i64 or is not computed."""
    case = Case((65536, 65536), (2, 2), (2,), PAIRS, "i8")
    lowered = hl.lower(case.text([[65535, 65535], [65535, 65533]])).text
    assert ops_of_size(lowered, 65536 * 65536)
    flat = set(re.findall(r"dense<(42949672\d\d)> : tensor<(\w+)>", lowered))
    assert flat in (set(), {("4294967295", "i64"), ("4294967293", "i64")})
    assert bool(flat) == ("4294967296xi8" in lowered)
    assert "stablehlo.pad" not in lowered  # two elements are no pass over 4 GiB
    assert "stablehlo.multiply" not in hl.lower(case.text()).text


@POLICIES
@ASSIGNED_OR_ADDED
def test_trap_14_slots_out_of_bounds_keep_a_claim_true(combiner, oob):
    """Many slots of -1 break no claim of unique indices: with trust_flags, too, they alone are dropped."""
    text = rows(5, 6, 2, combiner=combiner, flags=UNIQUE).text()
    assert hl.classify(hl.read(text))[0].unique == "claimed"
    executable = Executable(hl.lower(text, oob=oob, trust_flags=True).text, "exact")
    updates = f32(np.arange(1, 11).reshape(5, 2))
    for slots in ([-1, 3, -1, -1, 0], [-1] * 5, [6, 5, 6, 6, -1]):
        expected = np.zeros((6, 2), np.float32)
        for slot, row in zip(slots, updates, strict=True):
            if 0 <= slot < 6:
                expected[slot] = row
        [found] = executable.run([np.zeros((6, 2), np.float32), i32(slots)[:, None], updates])
        assert found.tolist() == expected.tolist()


def test_trap_15_no_claim_is_passed_on():
    """What is built from sorted indices claims no order of its own: dims may have been permuted."""
    case = Case((40, 50), (30, 2), (30,), numbers(inserted=[0, 1], to=[1, 0]), flags=SORTED + UNIQUE)
    for at in (None, np.random.default_rng(0).integers(0, 40, (30, 2))):
        lowered = hl.lower(case.text(at)).text
        assert "indices_are_sorted = true" not in lowered
        assert "unique_indices = true" not in lowered


@pytest.mark.parametrize(
    ("element", "wide", "start", "combiner", "rule", "expected"),
    [
        ("i32", "i32", 0, "assign", "updates", [10, 20, 30, 40]),
        ("i32", "i32", 1, "assign", "operand", [1, 2, 3, 4]),
        ("i32", "i32", 0, "add", "elementwise", [11, 22, 33, 44]),
        ("i8", "i32", 0, "assign", "updates", [10, 20, 30, 40]),
    ],
)
def test_trap_36_full_overwrite(element, wide, start, combiner, rule, expected):
    """A window as large as the operand replaces it only at start 0 and with an assignment; types are converted."""
    text = tile(4, 4, element=element, region_element=wide, combiner=combiner).text(start * np.ones(1, int))
    assert hl.lower(text).records[0].rule.removeprefix("scatter_to_") == rule
    [result] = run(text, array([1, 2, 3, 4], element), array([10, 20, 30, 40], element))
    assert (result.dtype, result.tolist()) == (np.dtype(dtype_of(wide)), expected)
